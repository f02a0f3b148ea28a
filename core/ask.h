/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ask.h - a question to a server that needs no thread while it waits for its answer.
 *
 * A program that asks several servers before it waits for the first answer waits only as long
 * as the slowest server takes. A session does one thing at a time. The question takes the
 * session, and the session is free again as soon as the answer has come.
 *
 *	rbx_borrower_ask(b, ask, ...)    of a session that is free: it is taken now,
 *	                                 unless ask->state is OVER
 *	... events
 *	rbx_borrower_ask_end(b)          after each: true: ask is OVER, the session free
 *
 * The host remembers which thread or ask has taken the session. An ask is in state WAITS
 * while another one has it.
 */
#ifndef RBX_ASK_H
#define RBX_ASK_H

#include "core/loan.h"
#include "wire/message.h"

enum rbx_call_kind {
	RBX_CALL_HANDSHAKE,
	RBX_CALL_MAP, /* borrow a slab */
	RBX_CALL_UNMAP, /* give it back */
	RBX_CALL_CHECK, /* is it still ours? */
	RBX_CALL_LABEL, /* all that a slab of a named volume has to have is there */
	RBX_CALL_UNLABEL, /* that does not count any more */
	RBX_CALL_STATS, /* the server's numbers */
	RBX_CALL_TALK, /* a message about a named volume, and its answer */
};

enum rbx_ask_state {
	RBX_ASK_OVER, /* its status is known */
	RBX_ASK_WAITS, /* the session does something else */
	RBX_ASK_IS_OUT, /* the session is taken by it */
};

struct rbx_ask {
	enum rbx_ask_state state;
	uint8_t kind; /* enum rbx_call_kind: MAP, UNMAP, CHECK, LABEL, UNLABEL or TALK */
	struct rbx_loan loan; /* what it is about; of MAP, what was lent */
	struct rbx_wire_map map; /* of MAP, for a named volume; else zeroed */
	struct rbx_wire_message *message; /* of TALK: the request, then its answer */
	int status; /* as of rbx_borrower_call_end() */
	bool is_refused; /* the server refused */
	const char *why; /* a string that is never freed */
	/* Called when an ask that was not over at first is over now, with the lock of the
	 * session held. NULL: a thread waits for it instead. */
	void (*over)(struct rbx_ask *ask);
	struct rbx_ask *next; /* the next ask in state WAITS */
};

#endif
