/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * granted.c - judges what SLAB_GRANT says, see granted.h.
 */
#include "core/granted.h"

#include "wire/terms.h"

int rbx_granted_map(struct rbx_granted *granted,
		    const struct rbx_wire_message *answer, uint64_t slab_bytes,
		    struct rbx_loan *loan)
{
	struct rbx_loan lent;

	RBX_ASSERT(answer->type == RBX_WIRE_SLAB_GRANT);
	if (!rbx_wire_grant_makes_sense(&answer->grant, slab_bytes) ||
	    answer->epoch <= granted->last_epoch)
		return -EPROTO;
	lent = (struct rbx_loan){
		.slab_id = answer->grant.slab_id,
		.epoch = answer->epoch,
		.remote_addr = answer->grant.remote_addr,
		.rkey = answer->grant.rkey,
	};
	if (!rbx_loan_fits(&lent))
		return -EPROTO;
	granted->last_epoch = answer->epoch;
	*loan = lent;
	return 0;
}

int rbx_granted_query(const struct rbx_wire_message *answer,
		      const struct rbx_loan *loan)
{
	RBX_ASSERT(answer->type == RBX_WIRE_SLAB_GRANT);
	if (answer->grant.slab_id != loan->slab_id ||
	    answer->epoch != loan->epoch ||
	    answer->grant.remote_addr != loan->remote_addr ||
	    answer->grant.rkey != loan->rkey)
		return -ESTALE;
	return 0;
}
