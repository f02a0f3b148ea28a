/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mailbox.h - messages between two programs: in order, none lost, none twice.
 *
 * To the control protocol everything is a message; what a program says to the
 * other program is a letter. Each side of a session has a mailbox, and it
 * outlives the connections of the session.
 *
 * Normally: put() copies a letter in and gives it the next sequence number.
 * While fewer than RBX_WIRE_LETTERS_MAX are under way, next() tells what to
 * send and sent() that it was. The other side hands the letter to its program
 * and then says LETTER_TAKEN with the number of the last one that was handed
 * over; taken() ends all letters up to it.
 *
 * When a connection is lost nobody knows what has arrived: rewind() has all
 * that was not taken sent again, under the same numbers, and judge() tells the
 * receiver which it has had already. When the other side is gone for good,
 * end() ends what is left with a status that says so. Each letter ends once.
 *
 * The mailbox is the memory of its owner, who also holds the lock that guards
 * it, sends, and calls back: rbx_letter_ends_tell(), without the lock.
 */
#ifndef RBX_MAILBOX_H
#define RBX_MAILBOX_H

#include "core/limits.h"
#include "wire/message.h"

RBX_STATIC_ASSERT(RBX_CLIENT_RECEIVES == 19,
		  "as wire/PROTOCOL.md says of a client of 7 requests");
RBX_STATIC_ASSERT(RBX_CLIENT_REQUESTS <= RBX_REQUESTS_MAX,
		  "no more than any server allows");

struct rbx_letter {
	void (*done)(int status, void *user); /* NULL: nobody wants to know */
	void *user;
	uint32_t length_bytes;
	uint8_t bytes[RBX_WIRE_LETTER_BYTES_MAX];
};

/* Zeroed, it is empty and ready. */
struct rbx_mailbox {
	/*
	 * The last letter of ours that was put in; ever sent; sent on this
	 * connection; taken by the other program. Each is at most the one
	 * before it, and at most RBX_WIRE_LETTERS_MAX were sent and not taken.
	 */
	uint64_t put_sequence;
	uint64_t shown_sequence;
	uint64_t sent_sequence;
	uint64_t taken_sequence;
	/* The last letter of theirs that our program has had. */
	uint64_t heard_sequence;
	struct rbx_letter letters[RBX_LETTERS_MAX]; /* by sequence, a ring */
};

/* Letters that have ended with the same status, oldest first. */
struct rbx_letter_ends {
	int status;
	uint32_t count;
	struct rbx_letter_end {
		void (*done)(int status, void *user);
		void *user;
	} ends[RBX_LETTERS_MAX];
};

enum rbx_letter_verdict {
	RBX_LETTER_NEW, /* hand it over, then heard() */
	RBX_LETTER_AGAIN, /* it was heard: say so again */
	RBX_LETTER_AHEAD, /* one before it is missing: they break the rules */
};

/* Copies a letter of at most RBX_WIRE_LETTER_BYTES_MAX. -EAGAIN: full. */
int rbx_mailbox_put(struct rbx_mailbox *box, const void *bytes,
		    uint32_t length_bytes, void (*done)(int status, void *user),
		    void *user);

/* Letters of ours that have not ended. */
uint32_t rbx_mailbox_outstanding(const struct rbx_mailbox *box);

/* Makes the message that is to be sent next; sent() says that it was. False:
 * there is none, or enough are under way. */
bool rbx_mailbox_next(const struct rbx_mailbox *box,
		      struct rbx_wire_message *message);
void rbx_mailbox_sent(struct rbx_mailbox *box);

/* What LETTER_TAKEN says. -EPROTO: it is of a letter that was never sent. */
int rbx_mailbox_taken(struct rbx_mailbox *box,
		      const struct rbx_wire_letter_taken *taken,
		      struct rbx_letter_ends *ends);

/* The connection is lost. */
void rbx_mailbox_rewind(struct rbx_mailbox *box);

/* The other side is gone: all letters end with the status. */
void rbx_mailbox_end(struct rbx_mailbox *box, int status,
		     struct rbx_letter_ends *ends);

/* Of a letter of theirs. */
enum rbx_letter_verdict rbx_mailbox_judge(const struct rbx_mailbox *box,
					  uint64_t sequence);
void rbx_mailbox_heard(struct rbx_mailbox *box);
/* The message that says how far they were heard; refused: by nobody. */
struct rbx_wire_message rbx_mailbox_receipt(const struct rbx_mailbox *box,
					    bool refused);

/* Calls back, in order. */
void rbx_letter_ends_tell(const struct rbx_letter_ends *ends);

#endif
