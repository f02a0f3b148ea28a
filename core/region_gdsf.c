/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_gdsf.c - the region that saves least for each page that it takes.
 *
 * Greedy Dual Size Frequency (Cherkasova, HP Labs 1998), with what this device takes as the cost.
 * To have a region of p pages, that was used f times, saves about f times what it costs to register
 * it again, a * p + b, and to deregister it; for each page that is f * (a + b / p). To that comes
 * what a victim was worth when the region was last used, the inflation, so that regions that were
 * used often, long ago, leave as well. The paper's r + 1 / s (section 5) has the same shape: r is
 * the inflation, and the size counts alike; but not the uses, and not the costs.
 */
#include "core/region_heap.h"

/* Fractions of a nanosecond. */
#define FRACTION_SHIFT 8u

/* More uses say nothing more, and are no reason to stay for ever. */
#define USES_MAX ((uint64_t)1 << 16)

static uint64_t worth(const struct rbx_regions *regions, const struct rbx_cached_region *region)
{
	const struct rbx_region_cost *cost = &regions->cost;
	uint64_t calls = (uint64_t)cost->register_call_ns + cost->deregister_call_ns;
	uint64_t a_page = (uint64_t)cost->register_page_ns + cost->deregister_page_ns;

	/* Never 0, even if nothing costs anything. */
	a_page = (a_page << FRACTION_SHIFT) + (calls << FRACTION_SHIFT) / region->pages + 1;
	return region->base + RBX_MIN(region->uses, USES_MAX) * a_page;
}

static void gdsf_admit(struct rbx_regions *regions, uint32_t region)
{
	rbx_regions_at(regions, region)->key = worth(regions, rbx_regions_at(regions, region));
	rbx_region_heap_put(regions, region);
}

static uint32_t gdsf_victim(struct rbx_regions *regions)
{
	uint32_t victim = rbx_region_heap_least(regions, worth);

	if (victim != RBX_REGION_NONE)
		regions->inflation =
			RBX_MAX(regions->inflation, rbx_regions_at(regions, victim)->key);
	return victim;
}

const struct rbx_region_policy rbx_region_gdsf = {
	.name = "gdsf",
	.size = rbx_region_heap_size,
	.init = rbx_region_heap_init,
	.admit = gdsf_admit,
	.remove = rbx_region_heap_remove,
	.victim = gdsf_victim,
};
