/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_life.c - one region, from its promise to its end, see region.h.
 */
#include "core/regions_internal.h"

static void hold(struct rbx_regions *regions, uint64_t pages)
{
	regions->pages_held += pages;
	regions->regions_held++;
	if (regions->pages_held > regions->pages_held_max)
		regions->pages_held_max = regions->pages_held;
	RBX_DEBUG_ASSERT(regions->pages_held <= regions->pages_max);
	RBX_DEBUG_ASSERT(regions->regions_held <= regions->regions_max);
}

uint32_t rbx_regions_promise(struct rbx_regions *regions, const struct rbx_regions_piece *gap)
{
	uint32_t slot = regions->free_first;
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(slot != RBX_REGION_NONE && region->state == RBX_REGION_FREE);
	RBX_ASSERT(gap->end > gap->first && gap->end - gap->first <= UINT32_MAX);
	regions->free_first = region->next;
	region->first = gap->first;
	region->pages = (uint32_t)(gap->end - gap->first);
	region->references = 0;
	region->uses = 0;
	region->seen = 0;
	region->state = RBX_REGION_PROMISED;
	region->is_registered = false;
	hold(regions, region->pages);
	rbx_region_index_add(&regions->index, region->first, slot);
	regions->indexed_count++;
	return slot;
}

void rbx_regions_slot_free(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(!region->references);
	regions->pages_held -= region->pages;
	regions->regions_held--;
	region->state = RBX_REGION_FREE;
	region->next = regions->free_first;
	regions->free_first = slot;
}

static void become_due(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	region->state = RBX_REGION_DUE;
	region->next = regions->due_first;
	regions->due_first = slot;
	regions->due_count++;
	regions->due_pages += region->pages;
}

void rbx_regions_drop(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(rbx_region_is_indexed(region));
	rbx_region_index_remove(&regions->index, region->first);
	regions->policy->remove(regions, slot);
	regions->indexed_count--;
	if (!region->references) {
		become_due(regions, slot);
		return;
	}
	region->state = RBX_REGION_GONE;
	regions->used_count--;
	regions->used_pages -= region->pages;
	regions->gone_count++;
	regions->gone_pages += region->pages;
}

RBX_RARE void rbx_regions_gone_unused(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(region->state == RBX_REGION_GONE);
	regions->gone_count--;
	regions->gone_pages -= region->pages;
	if (region->is_registered)
		become_due(regions, slot);
	else
		rbx_regions_slot_free(regions, slot);
}

void rbx_regions_registered(struct rbx_regions *regions, uint32_t slot, uint64_t cookie)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(!region->is_registered && region->references);
	region->cookie = cookie;
	region->is_registered = true;
	/* Unless its memory has changed meanwhile. */
	if (region->state == RBX_REGION_PROMISED)
		region->state = RBX_REGION_READY;
	regions->registered_pages += region->pages;
	regions->registered_count++;
	regions->counters.registrations++;
	regions->counters.spent_ns += rbx_region_register_ns(&regions->cost, region->pages);
}
