/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * last_loan.c - checks the answers SLAB_LOAN, see last_loan.h.
 */
#include "core/last_loan.h"

#include "wire/terms.h"

int rbx_last_loan_map(struct rbx_last_loan *last_loan,
		      const struct rbx_wire_message *answer,
		      uint64_t lent_bytes, struct rbx_loan *loan)
{
	struct rbx_loan lent;

	RBX_ASSERT(answer->type == RBX_WIRE_SLAB_LOAN);
	if (!rbx_wire_loan_makes_sense(&answer->loan, lent_bytes) ||
	    answer->epoch <= last_loan->epoch)
		return -EPROTO;
	lent = (struct rbx_loan){
		.slab_id = answer->loan.slab_id,
		.epoch = answer->epoch,
		.remote_addr = answer->loan.remote_addr,
		.rkey = answer->loan.rkey,
	};
	if (!rbx_loan_fits(&lent))
		return -EPROTO;
	last_loan->epoch = answer->epoch;
	*loan = lent;
	return 0;
}

int rbx_last_loan_query(const struct rbx_wire_message *answer,
			const struct rbx_loan *loan)
{
	RBX_ASSERT(answer->type == RBX_WIRE_SLAB_LOAN);
	if (answer->loan.slab_id != loan->slab_id ||
	    answer->epoch != loan->epoch ||
	    answer->loan.remote_addr != loan->remote_addr ||
	    answer->loan.rkey != loan->rkey)
		return -ESTALE;
	return 0;
}
