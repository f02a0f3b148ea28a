/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mailbox.c - user messages by sequence number, see mailbox.h.
 *
 * Five numbers hold all state. A user message is in the ring at its sequence number until it
 * ends, so the first and the last number tell how much room is left.
 *
 * The window counts from what was ever sent: before a connection was lost the other side may
 * have read more than it could report. Then its receipt names a number beyond what was sent
 * again.
 */
#include "core/mailbox.h"

static struct rbx_user_message *user_message_at(struct rbx_mailbox *box,
						uint64_t sequence)
{
	return &box->user_messages[sequence % RBX_USER_MESSAGES_MAX];
}

static void numbers_check(const struct rbx_mailbox *box)
{
	RBX_ASSERT(box->taken_sequence <= box->sent_sequence &&
		   box->sent_sequence <= box->shown_sequence &&
		   box->shown_sequence <= box->put_sequence);
	RBX_ASSERT(box->shown_sequence - box->taken_sequence <=
		   RBX_WIRE_USER_MESSAGES_MAX);
	RBX_ASSERT(rbx_mailbox_outstanding(box) <= RBX_USER_MESSAGES_MAX);
}

int rbx_mailbox_put(struct rbx_mailbox *box, const void *bytes,
		    uint32_t length_bytes, void (*done)(int status, void *user),
		    void *user)
{
	struct rbx_user_message *user_message;

	RBX_ASSERT(length_bytes <= RBX_WIRE_USER_MESSAGE_BYTES_MAX);
	if (rbx_mailbox_outstanding(box) == RBX_USER_MESSAGES_MAX)
		return -EAGAIN;
	user_message = user_message_at(box, ++box->put_sequence);
	user_message->done = done;
	user_message->user = user;
	user_message->length_bytes = length_bytes;
	if (length_bytes)
		rbx_port_copy(user_message->bytes, bytes, length_bytes);
	numbers_check(box);
	return 0;
}

uint32_t rbx_mailbox_outstanding(const struct rbx_mailbox *box)
{
	return (uint32_t)(box->put_sequence - box->taken_sequence);
}

bool rbx_mailbox_next(const struct rbx_mailbox *box,
		      struct rbx_wire_message *message)
{
	uint64_t sequence = box->sent_sequence + 1;
	const struct rbx_user_message *user_message =
		&box->user_messages[sequence % RBX_USER_MESSAGES_MAX];

	if (sequence > box->put_sequence ||
	    sequence - box->taken_sequence > RBX_WIRE_USER_MESSAGES_MAX)
		return false;
	*message = (struct rbx_wire_message){
		.type = RBX_WIRE_USER_MESSAGE,
		.user_message = {
			.sequence = sequence,
			.length_bytes = user_message->length_bytes,
		},
	};
	rbx_port_copy(message->user_message.bytes, user_message->bytes,
		      user_message->length_bytes);
	return true;
}

void rbx_mailbox_sent(struct rbx_mailbox *box)
{
	box->sent_sequence++;
	box->shown_sequence = RBX_MAX(box->shown_sequence, box->sent_sequence);
	numbers_check(box);
}

/* Ends our user messages up to a number. */
static void user_messages_end(struct rbx_mailbox *box, uint64_t sequence,
			      int status, struct rbx_user_message_ends *ends)
{
	ends->status = status;
	ends->count = 0;
	while (box->taken_sequence < sequence) {
		const struct rbx_user_message *user_message =
			user_message_at(box, ++box->taken_sequence);

		ends->ends[ends->count++] = (struct rbx_user_message_end){
			.done = user_message->done,
			.user = user_message->user,
		};
	}
	box->sent_sequence = RBX_MAX(box->sent_sequence, sequence);
	box->shown_sequence = RBX_MAX(box->shown_sequence, sequence);
	numbers_check(box);
}

int rbx_mailbox_taken(struct rbx_mailbox *box,
		      const struct rbx_wire_user_message_taken *taken,
		      struct rbx_user_message_ends *ends)
{
	if (taken->sequence > box->shown_sequence)
		return -EPROTO;
	user_messages_end(box, RBX_MAX(taken->sequence, box->taken_sequence),
			  taken->refused ? -EOPNOTSUPP : 0, ends);
	return 0;
}

void rbx_mailbox_rewind(struct rbx_mailbox *box)
{
	box->sent_sequence = box->taken_sequence;
	numbers_check(box);
}

void rbx_mailbox_end(struct rbx_mailbox *box, int status,
		     struct rbx_user_message_ends *ends)
{
	user_messages_end(box, box->put_sequence, status, ends);
}

enum rbx_user_message_verdict rbx_mailbox_judge(const struct rbx_mailbox *box,
						uint64_t sequence)
{
	if (sequence <= box->heard_sequence)
		return RBX_USER_MESSAGE_AGAIN;
	return sequence == box->heard_sequence + 1 ? RBX_USER_MESSAGE_NEW :
						     RBX_USER_MESSAGE_AHEAD;
}

void rbx_mailbox_heard(struct rbx_mailbox *box)
{
	box->heard_sequence++;
}

struct rbx_wire_message rbx_mailbox_receipt(const struct rbx_mailbox *box,
					    bool refused)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_USER_MESSAGE_TAKEN,
		.user_message_taken = {
			.sequence = box->heard_sequence,
			.refused = refused,
		},
	};
}

void rbx_user_message_ends_tell(const struct rbx_user_message_ends *ends)
{
	uint32_t i;

	for (i = 0; i < ends->count; i++)
		if (ends->ends[i].done)
			ends->ends[i].done(ends->status, ends->ends[i].user);
}
