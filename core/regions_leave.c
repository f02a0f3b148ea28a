/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_leave.c - regions leave in batches, and at once if their memory changes.
 */
#include "core/region_auto.h"
#include "core/regions_internal.h"

uint32_t rbx_regions_batch(struct rbx_regions *regions, uint32_t *batch, uint32_t count_max)
{
	uint32_t count;

	for (count = 0; count < count_max && regions->due_first != RBX_REGION_NONE; count++) {
		struct rbx_cached_region *region = rbx_regions_at(regions, regions->due_first);

		RBX_ASSERT(region->state == RBX_REGION_DUE && !region->references);
		batch[count] = regions->due_first;
		regions->due_first = region->next;
		region->state = RBX_REGION_LEAVING;
	}
	return count;
}

void rbx_regions_retired(struct rbx_regions *regions, const uint32_t *batch, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct rbx_cached_region *region = rbx_regions_at(regions, batch[i]);

		RBX_ASSERT(region->state == RBX_REGION_LEAVING);
		regions->due_count--;
		regions->due_pages -= region->pages;
		regions->registered_pages -= region->pages;
		regions->registered_count--;
		regions->counters.deregistrations++;
		regions->counters.spent_ns +=
			rbx_region_deregister_ns(&regions->cost, region->pages);
		rbx_regions_slot_free(regions, batch[i]);
	}
}

/* The first region of the index that touches a range, or RBX_REGION_NONE. */
static uint32_t first_in(const struct rbx_regions *regions, uint64_t first, uint64_t end)
{
	uint32_t slot = rbx_regions_find(regions, first);

	if (slot != RBX_REGION_NONE)
		return slot;
	slot = rbx_region_index_from(&regions->index, first);
	if (slot != RBX_REGION_NONE && rbx_regions_at(regions, slot)->first < end)
		return slot;
	return RBX_REGION_NONE;
}

void rbx_regions_drop_range(struct rbx_regions *regions, uint64_t first, uint64_t end)
{
	uint32_t slot;

	while ((slot = first_in(regions, first, end)) != RBX_REGION_NONE)
		rbx_regions_drop(regions, slot);
}

void rbx_regions_invalidate(struct rbx_regions *regions, uint64_t addr, uint64_t length)
{
	uint64_t first = addr >> RBX_REGION_PAGE_SHIFT, last = addr + length - 1, end;

	/* Rather too much than too little. */
	if (last < addr)
		last = UINT64_MAX;
	if (!length)
		return;
	end = (last >> RBX_REGION_PAGE_SHIFT) + 1;
	rbx_regions_drop_range(regions, first, end);
	if (regions->automatic)
		rbx_region_auto_change(regions, first, end);
}

void rbx_regions_clear(struct rbx_regions *regions)
{
	rbx_regions_drop_range(regions, 0, UINT64_MAX);
}
