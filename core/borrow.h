/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrow.h - asks servers for the memory of a slab: of several replicas at once if it is for first
 * writes, of one if a replica is to be made anew or to move.
 *
 *	rbx_borrow_begin          asks servers
 *	...their answers come     what one has refused is asked of another one
 *	rbx_upkeep_borrowed       nothing is out for it any more (upkeep_slab.h)
 *	rbx_borrow_end
 */
#ifndef RBX_BORROW_H
#define RBX_BORROW_H

#include "core/upkeep_state.h"

/* Asks servers for so many replicas of a slab. Returns 0; or why no server was asked, as
 * rbx_asks_place(). When nothing is out for it any more: rbx_upkeep_borrowed(). */
int rbx_borrow_begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_replica_state state, uint32_t wanted_count,
		     enum rbx_attention_list list);
/* Asks this server, which is not busy, for one more replica. There is room to ask, and the slab has
 * a record. */
void rbx_borrow_move(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server);
/* A server has not lent. */
void rbx_borrow_refused(struct rbx_borrowing *borrowing, int err);
/* Asks other servers for what was refused. Returns whether nothing is out for it any more. */
bool rbx_borrow_go_on(struct rbx_upkeep *upkeep,
		      struct rbx_borrowing *borrowing);
/* Nothing is out for it and no server has lent. Returns whether it has to wait for a busy
 * server before any is asked again. */
bool rbx_borrow_waits(struct rbx_upkeep *upkeep,
		      const struct rbx_borrowing *borrowing);
/* How long first writes wait for a server that is there and does not lend. Shorter if the
 * volume is being closed: until the request is late. */
static inline uint64_t rbx_upkeep_lend_ns(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->is_closing) ?
		       RBX_LOAD_RELAXED(&upkeep->timeout_ns) / 4 :
		       RBX_UPKEEP_LEND_TIMES * RBX_LOAD_RELAXED(&upkeep->timeout_ns);
}
/* Checks the time, after rbx_asks_tick(). */
void rbx_borrowings_tick(struct rbx_upkeep *upkeep);
/* When the first writes of a slab stop waiting. */
uint64_t rbx_borrowings_due_ns(const struct rbx_upkeep *upkeep);
void rbx_borrow_end(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing);
/* For how many slabs of this list servers are being asked. */
uint32_t rbx_borrowings_of(const struct rbx_upkeep *upkeep,
			   enum rbx_attention_list list);

#endif
