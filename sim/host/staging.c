/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * staging.c - staging memory that runs out. It is sized for far more than one client of the
 * simulation has under way, so all but one word of it may be withheld for the whole run: a run
 * for the longest request.
 */
#include "core/staging.h"
#include "sim/host/wrap.h"
#include "sim/sites.h"
#include "sim/tally.h"

void __wrap_rbx_staging_init(struct rbx_staging *staging, void *memory,
			     uint32_t lkey)
{
	__real_rbx_staging_init(staging, memory, lkey);
	if (!rbx_sim_site(RBX_SIM_SITE_staging_short))
		return;
	for (uint64_t i = 1; i < RBX_STAGING_WORDS; i++)
		staging->taken[i] = UINT64_MAX;
}

int32_t __wrap_rbx_staging_take(struct rbx_staging *staging,
				uint32_t length_bytes)
{
	int32_t block = __real_rbx_staging_take(staging, length_bytes);

	rbx_sim_tally(RBX_SIM_TALLY_staging_full, block < 0);
	return block;
}
