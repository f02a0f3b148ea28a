/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mailbox.h - messages between two programs: in order, none lost, none twice.
 *
 * To the control protocol everything is a message; what a program says to the
 * other program is a user message. Each side of a session has a mailbox, and it
 * outlives the connections of the session.
 *
 * Normally: put() copies a user message in and gives it the next sequence number.
 * While fewer than RBX_WIRE_USER_MESSAGES_MAX are under way, next() tells what to
 * send and sent() that it was. The other side hands the user message to its program
 * and then says USER_MESSAGE_TAKEN with the number of the last one that was handed
 * over; taken() ends all user messages up to it.
 *
 * When a connection is lost nobody knows what has arrived: rewind() has all
 * that was not taken sent again, under the same numbers, and judge() tells the
 * receiver which it has had already. When the other side is gone for good,
 * end() ends what is left with a status that says so. Each user message ends once.
 *
 * The mailbox is the memory of its owner, who also holds the lock that guards
 * it, sends, and calls back: rbx_user_message_ends_tell(), without the lock.
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
	void (*done)(int status, void *user); /* NULL: nobody wants to know */
	void *user;
	uint32_t length_bytes;
	uint8_t bytes[RBX_WIRE_USER_MESSAGE_BYTES_MAX];
};

/* Zeroed, it is empty and ready. */
struct rbx_mailbox {
	/*
	 * The last user message of ours that was put in; ever sent; sent on this
	 * connection; taken by the other program. Each is at most the one
	 * before it, and at most RBX_WIRE_USER_MESSAGES_MAX were sent and not taken.
	 */
	uint64_t put_sequence;
	uint64_t shown_sequence;
	uint64_t sent_sequence;
	uint64_t taken_sequence;
	/* The last user message of theirs that our program has had. */
	uint64_t heard_sequence;
	/* By sequence, a ring. */
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
	RBX_USER_MESSAGE_NEW, /* hand it over, then heard() */
	RBX_USER_MESSAGE_AGAIN, /* it was heard: say so again */
	RBX_USER_MESSAGE_AHEAD, /* one before it is missing: they break the rules */
};

/* Copies a user message of at most RBX_WIRE_USER_MESSAGE_BYTES_MAX. -EAGAIN: full. */
int rbx_mailbox_put(struct rbx_mailbox *box, const void *bytes,
		    uint32_t length_bytes, void (*done)(int status, void *user),
		    void *user);

/* User messages of ours that have not ended. */
uint32_t rbx_mailbox_outstanding(const struct rbx_mailbox *box);

/* Makes the message that is to be sent next; sent() says that it was. False:
 * there is none, or enough are under way. */
bool rbx_mailbox_next(const struct rbx_mailbox *box,
		      struct rbx_wire_message *message);
void rbx_mailbox_sent(struct rbx_mailbox *box);

/* What USER_MESSAGE_TAKEN says. -EPROTO: it is of a user message that was never
 * sent. */
int rbx_mailbox_taken(struct rbx_mailbox *box,
		      const struct rbx_wire_user_message_taken *taken,
		      struct rbx_user_message_ends *ends);

/* The connection is lost. */
void rbx_mailbox_rewind(struct rbx_mailbox *box);

/* The other side is gone: all user messages end with the status. */
void rbx_mailbox_end(struct rbx_mailbox *box, int status,
		     struct rbx_user_message_ends *ends);

/* Of a user message of theirs. */
enum rbx_user_message_verdict rbx_mailbox_judge(const struct rbx_mailbox *box,
						uint64_t sequence);
void rbx_mailbox_heard(struct rbx_mailbox *box);
/* The message that says how far they were heard; refused: by nobody. */
struct rbx_wire_message rbx_mailbox_receipt(const struct rbx_mailbox *box,
					    bool refused);

/* Calls back, in order. */
void rbx_user_message_ends_tell(const struct rbx_user_message_ends *ends);

#endif
