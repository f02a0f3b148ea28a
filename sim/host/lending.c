/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lending.c - beside the lender of a server: a slab is given back by who has it.
 *
 * A slab that was taken back and lent anew has another epoch. Who gives back the
 * loan of before must not end the one of now: its holder would lose a replica,
 * without any harm, and often nothing else would ever show it.
 */
#include <stdlib.h>

#include "core/lender.h"
#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/host/wrap.h"
#include "sim/trace.h"

/* The last lending of a slab. */
struct loan {
	struct loan *next;
	const struct rbx_lender *lender;
	struct rbx_lending lending;
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
	loan->lending = *lending;
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
	return reason;
}
