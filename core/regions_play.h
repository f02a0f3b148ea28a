/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_play.h - whole requests on a host that registers at once, for the shadows of auto and for
 * simulations.
 *
 * Nobody comes between acquire and release. So a request that the table of last hits knows needs no
 * reference.
 */
#ifndef RBX_REGIONS_PLAY_H
#define RBX_REGIONS_PLAY_H

#include "core/regions.h"

void rbx_regions_play_parts(struct rbx_regions *regions, uint64_t first, uint64_t end,
			    uint64_t mapping_bytes);

/* Returns true if the table of last hits knew it. */
static inline bool rbx_regions_play_pages(struct rbx_regions *regions, uint64_t first, uint64_t end,
					  uint64_t mapping_bytes)
{
	uint32_t slot = *rbx_region_front(regions, first);
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	if (rbx_cached_region_covers(region, first, end)) {
		rbx_region_touch(regions, region);
		regions->counters.hits++;
		return true;
	}
	rbx_regions_play_parts(regions, first, end, mapping_bytes);
	return false;
}

/* The same with auto, too. */
static inline void rbx_regions_play(struct rbx_regions *regions, uint64_t addr, uint64_t length)
{
	uint64_t first = addr >> RBX_REGION_PAGE_SHIFT;
	uint64_t end = ((addr + length - 1) >> RBX_REGION_PAGE_SHIFT) + 1;

	if (regions->automatic)
		rbx_regions_play_parts(regions, first, end, 0);
	else
		(void)rbx_regions_play_pages(regions, first, end, 0);
}

#endif
