/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mailbox.h - user messages between two programs: in order, none lost, none twice.
 *
 * The control protocol sends control messages. A message from one program to the other is a
 * user message. Each side of a session has a mailbox, which outlives the connections of the
 * session.
 *
 * Normally: put() copies a user message in and gives it the next sequence number. While fewer
 * than RBX_WIRE_USER_MESSAGES_MAX are under way, next() says what to send and sent() notes
 * that it was. The other side gives the user message to its program and answers
 * USER_MESSAGE_TAKEN with the number of the last one that it gave. taken() ends all user
 * messages up to that number.
 *
 * When a connection is lost it is unknown what has arrived. rewind() has all that was not
 * taken sent again, under the same numbers, and judge() tells the receiver which of them it
 * has had already. When the other side is dead, end() ends the rest with a status that says
 * so. Each user message ends once.
 *
 * The mailbox is in the memory of its owner. The owner also holds the lock that guards it,
 * sends, and calls back without the lock: rbx_user_message_ends_tell().
 */
#ifndef RBX_MAILBOX_H
#define RBX_MAILBOX_H

#include "core/limits.h"
#include "wire/message.h"

RBX_STATIC_ASSERT(RBX_CLIENT_RECEIVES == 19,
		  "as wire/PROTOCOL.md says of a client of 7 requests");
RBX_STATIC_ASSERT(RBX_CLIENT_REQUESTS <= RBX_REQUESTS_MAX,
		  "no more than any server allows");

struct rbx_user_message {
	void (*done)(int status, void *user); /* may be NULL */
	void *user;
	uint32_t length_bytes;
	uint8_t bytes[RBX_WIRE_USER_MESSAGE_BYTES_MAX];
};

/* Zeroed, a mailbox is empty and ready. */
struct rbx_mailbox {
	/*
	 * Sequence numbers of the last user message of ours: put in; ever sent; sent on this
	 * connection; taken by the other program. Each is at most the one before it. At most
	 * RBX_WIRE_USER_MESSAGES_MAX are sent and not taken.
	 */
	uint64_t put_sequence;
	uint64_t shown_sequence;
	uint64_t sent_sequence;
	uint64_t taken_sequence;
	/* The last user message of the other side that our program has had. */
	uint64_t heard_sequence;
	/* A ring, by sequence number. */
	struct rbx_user_message user_messages[RBX_USER_MESSAGES_MAX];
};

/* User messages that have ended with the same status, oldest first. */
struct rbx_user_message_ends {
	int status;
	uint32_t count;
	struct rbx_user_message_end {
		void (*done)(int status, void *user);
		void *user;
	} ends[RBX_USER_MESSAGES_MAX];
};

enum rbx_user_message_verdict {
	RBX_USER_MESSAGE_NEW, /* give it to the program, then heard() */
	RBX_USER_MESSAGE_AGAIN, /* the program had it already: send the receipt again */
	RBX_USER_MESSAGE_AHEAD, /* an earlier one is missing: the peer broke the protocol */
};

/* Copies a user message of at most RBX_WIRE_USER_MESSAGE_BYTES_MAX. -EAGAIN: full. */
int rbx_mailbox_put(struct rbx_mailbox *box, const void *bytes,
		    uint32_t length_bytes, void (*done)(int status, void *user),
		    void *user);

/* User messages of ours that have not ended. */
uint32_t rbx_mailbox_outstanding(const struct rbx_mailbox *box);

/* Makes the control message to be sent next; sent() notes that it was. False: there is none,
 * or enough are under way. */
bool rbx_mailbox_next(const struct rbx_mailbox *box,
		      struct rbx_wire_message *message);
void rbx_mailbox_sent(struct rbx_mailbox *box);

/* Handles USER_MESSAGE_TAKEN. -EPROTO: it names a user message that was never sent. */
int rbx_mailbox_taken(struct rbx_mailbox *box,
		      const struct rbx_wire_user_message_taken *taken,
		      struct rbx_user_message_ends *ends);

/* The connection is lost. */
void rbx_mailbox_rewind(struct rbx_mailbox *box);

/* The other side is dead: all user messages end with the status. */
void rbx_mailbox_end(struct rbx_mailbox *box, int status,
		     struct rbx_user_message_ends *ends);

/* Judges a user message of the other side. */
enum rbx_user_message_verdict rbx_mailbox_judge(const struct rbx_mailbox *box,
						uint64_t sequence);
void rbx_mailbox_heard(struct rbx_mailbox *box);
/*
 * The control message that says up to which one they were taken; refused: the program takes
 * none.
 */
struct rbx_wire_message rbx_mailbox_receipt(const struct rbx_mailbox *box,
					    bool refused);

/* Calls the callbacks, in order. */
void rbx_user_message_ends_tell(const struct rbx_user_message_ends *ends);

#endif
