/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_play.c - see regions_play.h.
 */
#include "core/regions_play.h"

RBX_APART void rbx_regions_play_parts(struct rbx_regions *regions, uint64_t first, uint64_t end,
				      uint64_t mapping_bytes)
{
	uint32_t batch[RBX_REGION_BATCH_MAX], count, i;
	struct rbx_region_use use;
	int err = rbx_regions_acquire(regions, &use, first << RBX_REGION_PAGE_SHIFT,
				      (end - first) << RBX_REGION_PAGE_SHIFT, mapping_bytes);

	while (err == -EAGAIN) {
		count = rbx_regions_batch(regions, batch, RBX_REGION_BATCH_MAX);
		rbx_regions_retired(regions, batch, count);
		err = rbx_regions_again(regions, &use);
	}
	if (err) {
		regions->counters.spent_ns +=
			rbx_region_register_ns(&regions->cost, use.end - use.first) +
			rbx_region_deregister_ns(&regions->cost, use.end - use.first);
		return;
	}
	for (i = 0; i < use.count; i++)
		if (use.fresh >> i & 1)
			rbx_regions_registered(regions, use.parts[i], 0);
	rbx_regions_release(regions, &use);
}
