/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_room.c - both budgets, who makes room, and what a refusal does to them.
 */
#include "core/regions_internal.h"

/* Regions that leave beyond what is needed, so that a large cache has batches: one in so many
 * regions, and at most as many as half a batch. */
#define AHEAD_SHARE 1024u
#define AHEAD_MAX (RBX_REGION_BATCH_MAX / 2)

/* A refusal may pass: after so many requests that were not hits, a budget that it has shrunk grows
 * by a share of what it was at first. */
#define GROW_MISSES 1024u
#define GROW_SHARE 16u

static bool fits(const struct rbx_regions *regions, uint64_t pages, uint32_t count)
{
	return pages <= regions->pages_max && count <= regions->regions_max;
}

bool rbx_regions_could_fit(const struct rbx_regions *regions, const struct rbx_regions_lack *lack)
{
	return fits(regions,
		    regions->used_pages + regions->gone_pages + lack->idle_pages + lack->pages,
		    regions->used_count + regions->gone_count + lack->idle_count + lack->count);
}

bool rbx_regions_fit_now(const struct rbx_regions *regions, const struct rbx_regions_lack *lack)
{
	return fits(regions, regions->pages_held + lack->pages,
		    regions->regions_held + lack->count);
}

static bool fits_after_batch(const struct rbx_regions *regions, const struct rbx_regions_lack *lack)
{
	return fits(regions, regions->pages_held - regions->due_pages + lack->pages,
		    regions->regions_held - regions->due_count + lack->count);
}

static void retire_one(struct rbx_regions *regions)
{
	uint32_t victim = regions->policy->victim(regions);

	RBX_ASSERT(victim != RBX_REGION_NONE && !rbx_regions_at(regions, victim)->references);
	rbx_regions_drop(regions, victim);
}

void rbx_regions_make_room(struct rbx_regions *regions, const struct rbx_regions_lack *lack)
{
	const struct rbx_region_policy *policy = regions->policy;
	uint32_t ahead = RBX_MIN(regions->indexed_count / AHEAD_SHARE, AHEAD_MAX);

	if (fits_after_batch(regions, lack))
		return;
	if (policy->full)
		policy->full(regions, regions->pages_held - regions->due_pages + lack->pages <=
					      regions->pages_max);
	while (!fits_after_batch(regions, lack))
		retire_one(regions);
	while (rbx_regions_idle(regions) &&
	       (policy->wants_more ? policy->wants_more(regions) : ahead)) {
		retire_one(regions);
		ahead -= !policy->wants_more;
	}
}

/* ---- Budgets that change --------------------------------------------------------*/

void rbx_regions_set_budgets(struct rbx_regions *regions, uint64_t bytes_max, uint32_t regions_max)
{
	regions->pages_limit = RBX_MAX(bytes_max >> RBX_REGION_PAGE_SHIFT, (uint64_t)1);
	regions->pages_max = regions->pages_limit;
	regions->regions_limit = RBX_MAX(RBX_MIN(regions_max, regions->slots_count), 1u);
	regions->regions_max = regions->regions_limit;
}

bool rbx_regions_refused(struct rbx_regions *regions, uint32_t slot, enum rbx_region_short lacks)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(!region->is_registered && region->references);
	if (region->state == RBX_REGION_PROMISED)
		rbx_regions_drop(regions, slot);
	if (lacks == RBX_REGION_SHORT_OF_NOTHING)
		return false;
	if (lacks == RBX_REGION_SHORT_OF_BYTES)
		regions->pages_max = RBX_MIN(regions->pages_max,
					     RBX_MAX(regions->registered_pages, (uint64_t)1));
	else
		regions->regions_max = RBX_MIN(regions->regions_max,
					       RBX_MAX(regions->registered_count, 1u));
	regions->misses_since_refusal = 0;
	return rbx_regions_idle(regions) || regions->due_count;
}

void rbx_regions_grow(struct rbx_regions *regions)
{
	if (regions->pages_max == regions->pages_limit &&
	    regions->regions_max == regions->regions_limit)
		return;
	if (++regions->misses_since_refusal < GROW_MISSES)
		return;
	regions->misses_since_refusal = 0;
	regions->pages_max = RBX_MIN(regions->pages_limit,
				     regions->pages_max + regions->pages_limit / GROW_SHARE + 1);
	regions->regions_max =
		RBX_MIN(regions->regions_limit,
			regions->regions_max + regions->regions_limit / GROW_SHARE + 1);
}
