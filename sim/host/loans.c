/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans.c - watches the lender of a server: only the holder of a slab gives it back.
 *
 * A slab that was taken back and lent again has another epoch. A client that returns the
 * earlier loan must not end the present one: its holder would lose a replica, without any
 * harm, and often nothing else would ever show that. And a slab is lent again only when the
 * earlier access has ended.
 *
 * A server takes a slab back without a message only from a client that does not answer, and
 * lends it again after all others. The site revoked-unasked makes it do both at once: then a
 * client is lent a slab that it believes to have already.
 */
#include <stdlib.h>

#include "core/lender_table.h"
#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/hands.h"
#include "sim/host/wrap.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

/* The last loan of a slab. */
struct last_loan {
	struct last_loan *next;
	const struct rbx_lender *lender;
	struct rbx_lender_loan loan;
	bool is_over; /* it cannot be reached any more */
	bool is_next; /* it was taken back without a message, and will be lent next */
};

/* A client may take so long to notice. */
#define FELT_NS (10000 * RBX_SIM_MS)

static struct last_loan *last_loans;

static struct last_loan *last_loan_of(const struct rbx_lender *lender,
				      uint64_t slab_id)
{
	struct last_loan *last = last_loans;

	while (last && (last->lender != lender ||
			last->loan.slab_id != slab_id))
		last = last->next;
	return last;
}

/* A server starts in the place of one that ended. */
struct rbx_lender *__wrap_rbx_lender_init(void *memory,
					  const struct rbx_lender_config *config)
{
	struct last_loan **link = &last_loans;

	while (*link) {
		struct last_loan *last = *link;

		if (last->lender != memory) {
			link = &last->next;
			continue;
		}
		*link = last->next;
		free(last);
	}
	return __real_rbx_lender_init(memory, config);
}

/* The slab that the client which wants another one has had for longest. */
static void take_back_unasked(struct rbx_lender *lender, uint64_t session_id)
{
	uint32_t client = rbx_id_map_find(&lender->sessions, session_id);
	uint32_t index = client == RBX_LENDER_NONE ?
				 RBX_LENDER_NONE :
				 lender->clients[client].slabs.first;

	if (index == RBX_LENDER_NONE ||
	    lender->slabs[index].state != SLAB_LENT ||
	    !rbx_sim_site_harms(RBX_SIM_SITE_revoked_unasked, rbx_sim_node(),
				FELT_NS))
		return;
	last_loan_of(lender, index + 1)->is_next = true;
	rbx_lender_slab_end(lender, index);
	lender->counts.slabs_revoked++;
}

/* The last of the free slabs becomes the first. */
static void lend_next(struct rbx_lender *lender)
{
	uint32_t last = lender->free_slabs.last, before = lender->free_slabs.first;

	if (before == last)
		return;
	while (lender->slabs[before].next != last)
		before = lender->slabs[before].next;
	lender->slabs[before].next = RBX_LENDER_NONE;
	lender->slabs[last].next = lender->free_slabs.first;
	lender->free_slabs.first = last;
	lender->free_slabs.last = before;
}

static struct last_loan *last_loan_make(const struct rbx_lender *lender)
{
	struct last_loan *last = calloc(1, sizeof(*last));

	if (!last)
		abort();
	last->lender = lender;
	last->next = last_loans;
	last_loans = last;
	return last;
}

/* From the memory file of a server that has restarted. */
void __wrap_rbx_lender_restore(struct rbx_lender *lender, uint64_t volume_id,
			       const struct rbx_lender_loan *loan)
{
	__real_rbx_lender_restore(lender, volume_id, loan);
	last_loan_make(lender)->loan = *loan;
	rbx_sim_hands_give_again(rbx_sim_node());
	rbx_sim_tally(RBX_SIM_TALLY_slabs_restored, 1);
}

uint32_t __wrap_rbx_lender_lend(struct rbx_lender *lender, uint64_t session_id,
				struct rbx_lender_loan *loan)
{
	uint32_t reason = __real_rbx_lender_lend(lender, session_id, loan);
	struct last_loan *last;

	if (reason || rbx_sim_hands_are_ignored())
		return reason;
	take_back_unasked(lender, session_id);
	last = last_loan_of(lender, loan->slab_id);
	if (!last)
		last = last_loan_make(lender);
	else if (!last->is_over)
		rbx_sim_fail("one-hand", "slab %llu is lent while another has it",
			     (unsigned long long)loan->slab_id);
	last->loan = *loan;
	last->is_over = false;
	last->is_next = false;
	return reason;
}

bool __wrap_rbx_lender_prepared(struct rbx_lender *lender,
				struct rbx_lender_loan *loan)
{
	struct last_loan *last = last_loan_of(lender, loan->slab_id);
	bool is_lent = __real_rbx_lender_prepared(lender, loan);

	if (last && is_lent)
		last->loan = *loan;
	return is_lent;
}

void __wrap_rbx_lender_ended(struct rbx_lender *lender, uint64_t slab_id)
{
	struct last_loan *last = last_loan_of(lender, slab_id);

	if (last)
		last->is_over = true;
	__real_rbx_lender_ended(lender, slab_id);
	if (last && last->is_next)
		lend_next(lender);
}

/* A slab that a resume takes back was never used: no replica has it. */
static void demand_unused(const struct rbx_lender *lender, uint64_t session_id,
			  uint64_t last_epoch)
{
	const struct last_loan *last;

	for (last = last_loans; last; last = last->next)
		if (last->lender == lender && last->loan.epoch > last_epoch &&
		    !rbx_lender_check(lender, session_id, &last->loan))
			rbx_sim_check_unused(rbx_sim_node(), &last->loan);
}

uint32_t __wrap_rbx_lender_resumed(struct rbx_lender *lender,
				   uint64_t session_id, uint64_t now_ns,
				   uint64_t last_epoch)
{
	uint32_t lent_before = rbx_lender_lent_to(lender, session_id);
	uint32_t reason, lent_now;

	demand_unused(lender, session_id, last_epoch);
	reason = __real_rbx_lender_resumed(lender, session_id, now_ns,
					   last_epoch);
	lent_now = rbx_lender_lent_to(lender, session_id);

	RBX_SIM_TRACE(rbx_sim_node(), "resume", "lent", lent_now, "refused",
		      reason);
	rbx_sim_tally(RBX_SIM_TALLY_resumes, reason == 0);
	rbx_sim_tally(RBX_SIM_TALLY_loans_unheard, lent_before - lent_now);
	return reason;
}

uint32_t __wrap_rbx_lender_unmap(struct rbx_lender *lender, uint64_t session_id,
				 const struct rbx_lender_loan *loan)
{
	uint32_t reason = __real_rbx_lender_unmap(lender, session_id, loan);
	const struct last_loan *last = last_loan_of(lender, loan->slab_id);

	RBX_SIM_TRACE(rbx_sim_node(), "unmap", "slab", loan->slab_id,
		      "refused", reason);
	if (reason == 0 && !rbx_sim_hands_are_ignored() &&
	    (!last || last->loan.epoch != loan->epoch))
		rbx_sim_fail("epoch", "slab %llu is given back with epoch %llu, and has been lent anew",
			     (unsigned long long)loan->slab_id,
			     (unsigned long long)loan->epoch);
	rbx_sim_tally(RBX_SIM_TALLY_given_back, reason == 0);
	return reason;
}
