/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lender_small.h - a lender of few slabs and a short lease, and its host, for tests. */
#ifndef RBX_TESTS_LENDER_SMALL_H
#define RBX_TESTS_LENDER_SMALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lender.h"

#define LEASE_NS 1000

#define CLIENTS_MAX 128u
#define VOLUMES_MAX 2u
#define OWNERS 3u

/* quota: slabs of each owner; 0: all */
static inline struct rbx_lender *lender_make(uint32_t slabs, uint32_t quota)
{
	struct rbx_lender *lender;
	uint32_t owner;
	const struct rbx_lender_config config = {
		.slabs_count = slabs,
		.lend_max = slabs,
		.owners_max = OWNERS,
		.clients_max = CLIENTS_MAX,
		.volumes_max = VOLUMES_MAX,
		.lease_ns = LEASE_NS,
	};

	lender = rbx_lender_init(malloc(rbx_lender_size(&config)), &config);
	for (owner = 0; owner < OWNERS; owner++)
		rbx_lender_set_quota(lender, owner, quota);
	return lender;
}

static inline uint32_t lend(struct rbx_lender *lender, uint64_t session_id,
			    struct rbx_lender_loan *loan)
{
	uint32_t reason = rbx_lender_lend(lender, session_id, loan);

	if (!reason)
		assert_true(rbx_lender_prepared(lender, loan));
	return reason;
}

/* Does all that is to be done, and returns how many actions of a kind. */
static inline int serve(struct rbx_lender *lender, uint64_t now_ns,
			enum rbx_lender_action_kind kind)
{
	struct rbx_lender_action action;
	int count = 0;

	while (rbx_lender_next(lender, now_ns, &action)) {
		if (action.kind == kind)
			count++;
		if (action.kind == RBX_LENDER_EXPIRE)
			rbx_lender_leave(lender, action.session_id);
		else if (action.kind == RBX_LENDER_END)
			rbx_lender_ended(lender, action.loan.slab_id);
	}
	return count;
}

#endif
