/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lending.c - beside the lender of a server: a slab is given back by who has it.
 *
 * A slab that was taken back and lent anew has another epoch. Who gives back the
 * loan of before must not end the one of now: its holder would lose a replica,
 * without any harm, and often nothing else would ever show it. And a slab is lent
 * again only when the access of before has ended.
 */
#include <stdlib.h>

#include "core/lender.h"
#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/host/wrap.h"
#include "sim/tally.h"
#include "sim/trace.h"

/* The last lending of a slab. */
struct loan {
	struct loan *next;
	const struct rbx_lender *lender;
	struct rbx_lending lending;
	bool is_over; /* nobody can reach it any more */
};

static struct loan *loans;

static struct loan *loan_of(const struct rbx_lender *lender, uint64_t slab_id)
{
	struct loan *loan = loans;

	while (loan && (loan->lender != lender ||
			loan->lending.slab_id != slab_id))
		loan = loan->next;
	return loan;
}

/* Of a server that starts where another one ended. */
struct rbx_lender *__wrap_rbx_lender_init(void *memory,
					  const struct rbx_lender_config *config)
{
	struct loan **link = &loans;

	while (*link) {
		struct loan *loan = *link;

		if (loan->lender != memory) {
			link = &loan->next;
			continue;
		}
		*link = loan->next;
		free(loan);
	}
	return __real_rbx_lender_init(memory, config);
}

uint32_t __wrap_rbx_lender_lend(struct rbx_lender *lender, uint64_t session_id,
				struct rbx_lending *lending)
{
	uint32_t reason = __real_rbx_lender_lend(lender, session_id, lending);
	struct loan *loan;

	if (reason)
		return reason;
	loan = loan_of(lender, lending->slab_id);
	if (loan == NULL) {
		loan = malloc(sizeof(*loan));
		if (loan == NULL)
			abort();
		loan->lender = lender;
		loan->next = loans;
		loans = loan;
	}
	else if (!loan->is_over)
		rbx_sim_fail("one-hand", "slab %llu is lent while another has it",
			     (unsigned long long)lending->slab_id);
	loan->lending = *lending;
	loan->is_over = false;
	return reason;
}

void __wrap_rbx_lender_ended(struct rbx_lender *lender, uint64_t slab_id)
{
	struct loan *loan = loan_of(lender, slab_id);

	if (loan)
		loan->is_over = true;
	__real_rbx_lender_ended(lender, slab_id);
}

uint32_t __wrap_rbx_lender_resumed(struct rbx_lender *lender,
				   uint64_t session_id, uint64_t now_ns,
				   uint64_t last_epoch)
{
	uint32_t lent_before = rbx_lender_lent_to(lender, session_id);
	uint32_t reason = __real_rbx_lender_resumed(lender, session_id, now_ns,
						    last_epoch);
	uint32_t lent_now = rbx_lender_lent_to(lender, session_id);

	RBX_SIM_TRACE(rbx_sim_node(), "resume", "lent", lent_now, "refused",
		      reason);
	rbx_sim_tally(RBX_SIM_TALLY_resumes, reason == 0);
	rbx_sim_tally(RBX_SIM_TALLY_grants_lost, lent_before - lent_now);
	return reason;
}

uint32_t __wrap_rbx_lender_unmap(struct rbx_lender *lender, uint64_t session_id,
				 const struct rbx_lending *lending)
{
	uint32_t reason = __real_rbx_lender_unmap(lender, session_id, lending);
	const struct loan *loan = loan_of(lender, lending->slab_id);

	RBX_SIM_TRACE(rbx_sim_node(), "unmap", "slab", lending->slab_id,
		      "refused", reason);
	if (reason == 0 &&
	    (loan == NULL || loan->lending.epoch != lending->epoch))
		rbx_sim_fail("epoch", "slab %llu is given back with epoch %llu, and has been lent anew",
			     (unsigned long long)lending->slab_id,
			     (unsigned long long)lending->epoch);
	rbx_sim_tally(RBX_SIM_TALLY_given_back, reason == 0);
	return reason;
}
