/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * returned.h - the slabs that a server had when it was put OUT, or has FAILED, and has still as it
 * returns (docs/named-volumes.md, "A server that returns").
 *
 *	rbx_named_return()         the server tells them, and calls none complete any more
 *	...                        a record is chosen in which it is IN
 *	rbx_returned_take()        those that the volume lacks are used, and get what they missed
 *	rbx_returned_give_back()   the server gets the others back
 *
 * One that has FAILED only tells them, and goes on with them (keeper_again.c).
 *
 * A client that dies on the way leaves slabs that are not complete, which the next one gives back.
 */
#ifndef RBX_CLIENT_RETURNED_H
#define RBX_CLIENT_RETURNED_H

#include "client/host.h"
#include "core/loan.h"
#include "wire/record.h"

struct rbx_session;
struct rbx_upkeep;

struct rbx_returned_slab {
	struct rbx_loan loan;
	uint64_t label;
	uint64_t behind; /* as the server has noted it */
	bool is_complete; /* as the server knows */
	bool is_in_use;
	bool is_done; /* of one that has FAILED: it need not be looked at any more */
};

/* Zeroed memory: none. */
struct rbx_returned {
	struct rbx_returned_slab *slabs;
	uint32_t count;
	uint32_t room;
};

/* One more. 0 or -ENOMEM. */
int rbx_returned_note(struct rbx_returned *returned, const struct rbx_wire_label *label,
		      const struct rbx_loan *loan);
/* By the thread that makes rounds, or while the volume is opened. Returns how many are of use.
 * Looks at each of them once. */
uint32_t rbx_returned_take(struct rbx_returned *returned, struct rbx_upkeep *upkeep,
			   uint32_t server);
/* Those that are not in use, and forgets all. What cannot be given back now, the next client gives
 * back. Blocks. */
void rbx_returned_give_back(struct rbx_returned *returned, struct rbx_session *session);
void rbx_returned_forget(struct rbx_returned *returned);

#endif
