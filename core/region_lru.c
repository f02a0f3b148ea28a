/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_lru.c - the region whose last use is longest ago.
 *
 * As UCX and libfabric do, whatever a region takes or would cost. Exactly in this order, but by
 * stamps in a heap, so that a hit moves nothing.
 */
#include "core/region_heap.h"

static uint64_t last_use(const struct rbx_regions *regions, const struct rbx_cached_region *region)
{
	(void)regions;
	return region->stamp;
}

static void lru_admit(struct rbx_regions *regions, uint32_t region)
{
	rbx_regions_at(regions, region)->key = rbx_regions_at(regions, region)->stamp;
	rbx_region_heap_put(regions, region);
}

static uint32_t lru_victim(struct rbx_regions *regions)
{
	return rbx_region_heap_least(regions, last_use);
}

const struct rbx_region_policy rbx_region_lru = {
	.name = "lru",
	.size = rbx_region_heap_size,
	.init = rbx_region_heap_init,
	.admit = lru_admit,
	.remove = rbx_region_heap_remove,
	.victim = lru_victim,
};
