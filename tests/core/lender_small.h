/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lender_small.h - a lender of few slabs and a short lease, for tests. */
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

static struct rbx_lender *lender_make(uint32_t slabs, uint32_t quota)
{
	const struct rbx_lender_config config = {
		.slabs_count = slabs,
		.quota_count = quota,
		.clients_max = CLIENTS_MAX,
		.lease_ns = LEASE_NS,
	};

	return rbx_lender_init(malloc(rbx_lender_size(&config)), &config);
}

#endif
