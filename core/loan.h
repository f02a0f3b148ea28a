/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan.h - a loan: what is needed to use memory of a server and to give it back.
 *
 * A volume keeps many loans, so they are packed (replica.h). The packed form has room for
 * what our servers lend, for years. A loan that does not fit is refused like one that makes
 * no sense (last_loan.h).
 */
#ifndef RBX_LOAN_H
#define RBX_LOAN_H

#include "core/limits.h"

/* The bits of the packed words (replica.h). */
#define RBX_LOAN_ID_BITS 18u
#define RBX_LOAN_EPOCH_BITS 38u
#define RBX_LOAN_SERVER_MASK (RBX_PAGE_BYTES - 1) /* below the address of a page */

RBX_STATIC_ASSERT(RBX_SERVERS_MAX <= RBX_PAGE_BYTES, "any server");
RBX_STATIC_ASSERT(RBX_LENT_SLABS_MAX < 1u << RBX_LOAN_ID_BITS,
		  "any slab of a server, counted from 1");

struct rbx_loan {
	uint64_t slab_id;
	uint64_t epoch; /* identifies this loan of the slab */
	uint64_t remote_addr;
	uint32_t rkey;
};

/* Whether it can be packed. A server that makes a thousand loans a second reaches the last
 * epoch that can be packed after eight years. */
static inline bool rbx_loan_fits(const struct rbx_loan *loan)
{
	return loan->slab_id >> RBX_LOAN_ID_BITS == 0 &&
	       loan->epoch >> RBX_LOAN_EPOCH_BITS == 0 &&
	       loan->remote_addr % RBX_PAGE_BYTES == 0;
}

/*
 * Whether a server that makes one of these loans must have ended the other: they are of the
 * same slab, or share memory under the same key. So the older one of two such loans is over,
 * even if no message has said so; a write to it may land in the newer one.
 */
static inline bool rbx_loan_is_twin(const struct rbx_loan *one,
				    const struct rbx_loan *other,
				    uint64_t slab_bytes)
{
	uint64_t apart_bytes = RBX_MAX(one->remote_addr, other->remote_addr) -
			       RBX_MIN(one->remote_addr, other->remote_addr);

	return one->slab_id == other->slab_id ||
	       (one->rkey == other->rkey && apart_bytes < slab_bytes);
}

#endif
