/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ask.h - a question to a server that needs no thread while it is under way.
 *
 * Whoever asks several servers, and only then waits for the first answer, waits as long
 * as the slowest takes, and not as long as all of them together. A session does one
 * thing at a time, so it is taken by the question, and free again as soon as the answer
 * is there: nobody waits for somebody to take it.
 *
 *	rbx_borrower_ask(b, ask, ...)    of a session that is free: it is taken now,
 *	                                 unless ask->state is OVER
 *	... events
 *	rbx_borrower_ask_end(b)          after each: true: ask is OVER, the session free
 *
 * The host keeps who has taken the session, and has an ask WAIT while that is somebody
 * else.
 */
#ifndef RBX_ASK_H
#define RBX_ASK_H

#include "core/loan.h"

enum rbx_call_kind {
	RBX_CALL_HANDSHAKE,
	RBX_CALL_MAP, /* borrow a slab */
	RBX_CALL_UNMAP, /* give it back */
	RBX_CALL_CHECK, /* is it still ours? */
	RBX_CALL_STATS, /* the server's numbers */
};

enum rbx_ask_state {
	RBX_ASK_OVER, /* its status is known */
	RBX_ASK_WAITS, /* the session does something else */
	RBX_ASK_IS_OUT, /* the session is taken by it */
};

struct rbx_ask {
	enum rbx_ask_state state;
	uint8_t kind; /* enum rbx_call_kind: MAP, UNMAP or CHECK */
	struct rbx_loan loan; /* what it is about; of MAP, what was lent */
	int status; /* as of rbx_borrower_call_end() */
	bool is_refused; /* by the server */
	const char *why; /* a sentence that stays */
	/* It was not over when it was asked, and is now; NULL: somebody waits. The host
	 * calls it with the lock of the session held. */
	void (*over)(struct rbx_ask *ask);
	struct rbx_ask *next; /* of those that WAIT */
};

#endif
