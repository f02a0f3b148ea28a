/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans.h - what servers lend and get back: the answers to what they were asked for, loans that are
 * owed to them, and all the memory of a volume when it is opened.
 */
#ifndef RBX_LOANS_H
#define RBX_LOANS_H

#include "core/asks.h"

/* Reserves a slot of a slab for what a server is to be asked for; or gives it up again. */
uint32_t rbx_loans_reserve(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server);
void rbx_loans_unreserve(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server,
			 uint32_t slot);
/* Asks a server for it. */
struct rbx_asked *rbx_loans_send(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				 uint32_t server, uint32_t slot);
/* Both. */
struct rbx_asked *rbx_loans_ask(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				uint32_t server);
/* A server has lent a slab, and labelled it if it has to; or err says why not. */
void rbx_loans_borrowed(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err,
			const struct rbx_loan *loan);
/* Takes the answers that have come. Returns whether there was one. */
bool rbx_loans_take(struct rbx_upkeep *upkeep);
/* Before the slabs are abandoned: no slab waits for an answer any more. */
void rbx_loans_withdraw(struct rbx_upkeep *upkeep);
/* Whether half of the table is full. The other half is for slabs that borrow afterwards. Those that
 * only give back do so if that is due to silent servers, and not to such a server. */
static inline bool rbx_loans_owe_much(const struct rbx_upkeep *upkeep)
{
	return upkeep->owed_count >= RBX_OWED_MAX / 2;
}
/* Then: whether it is due to them. */
bool rbx_loans_may_return(const struct rbx_upkeep *upkeep);
/* Whether RBX_TASK_GIVE_BACK has to wait, as its loan is that of a silent server, and as much is
 * owed as this list may owe. First writes do not wait. */
bool rbx_loans_must_wait(const struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			 enum rbx_attention_list list);
/* Does RBX_TASK_GIVE_BACK. For a named volume usually nothing is owed: its memory is the
 * volume's. */
void rbx_loans_give_back(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Tells servers about the loans owed to them, as many as a round may. */
void rbx_loans_pay_owed(struct rbx_upkeep *upkeep);
/* Of a guarded volume: a server may have labelled what it has lent of a slab that was never
 * written, and is to take it back. False: there is no room to note that. */
bool rbx_loans_owe_label(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server,
			 const struct rbx_loan *loan);
/* 0: no server may have labelled anything of a slab that was never written; -EBUSY: it is being
 * taken back; -EIO: not before a server comes again that has FAILED (held.h). */
int rbx_loans_label_owed(struct rbx_upkeep *upkeep, const struct rbx_slab *slab);
/* That server is there again, in another place of the table, and has this loan. 0; -EAGAIN: its
 * former place was asked, and has not answered; -ENOENT: it does not owe it. */
int rbx_loans_owed_again(struct rbx_upkeep *upkeep, uint32_t former, uint32_t server,
			 const struct rbx_loan *loan);
/* Asks about a replica that is LEAVING, which its server may have revoked. */
void rbx_loans_check_leaving(struct rbx_upkeep *upkeep, struct rbx_slab *slab);

/* ---- loans_open.c ------------------------------------------------------------------*/

/* Borrows all replicas of all slabs; 0, or the reason. Blocks. */
int rbx_loans_borrow_all(struct rbx_upkeep *upkeep);

#endif
