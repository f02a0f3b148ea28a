/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_mre.c - Memory Resorting and Eviction, the policy of the paper (section 5,
 * figures 3 and 4).
 *
 * The regions are a stack by their last use. Its upper part is the frequent reference section, its
 * lower part the resorting section, and the bottom of that is the eviction segment. When the cache
 * is full,
 *
 *	r becomes the eviction factor of the region at the bottom of the stack
 *	each region of the resorting section whose factor is 0 gets the factor r + 1 / s, where s
 *		is its pages
 *	the resorting section is sorted, the smallest factor at the bottom
 *	the regions of the eviction segment are deregistered, all in one operation
 *
 * A factor is kept until the region is used: that sends it to the top of the stack, with factor 0.
 * So a large region leaves before a small one that has been there as long. While r grows, what gets
 * its factor later gets a larger one, and in the end a small region leaves too. If the region at
 * the bottom has no factor, r is 0 again.
 *
 * The paper does not say how large the sections are. Here the resorting section has half of the
 * room, and the eviction segment a sixteenth. Room is pages, or regions if only their number is
 * short. A request that needs more than the segment resorts once more.
 *
 * Nor does it say what happens to regions in use. They are being accessed, so they are sent to the
 * top like what was accessed meanwhile, and are no part of a segment.
 *
 * One operation of the fabric takes 64 regions (RBX_REGION_BATCH_MAX). A larger segment leaves the
 * index at once as well, but is deregistered 64 at a time, as room is needed.
 *
 * A hit does not move a region to the top. The next resorting does that with all regions that were
 * used meanwhile, in the order of their last use, which is the stack that the paper has by then.
 */
#include "core/regions.h"

#define RESORTING_PART 2u
#define EVICTION_PART 16u
#define ONE ((uint64_t)1 << 32) /* factors are in 2^-32 */

static void mre_init(struct rbx_regions *regions, void *memory)
{
	(void)memory;
	regions->state.mre = (struct rbx_region_mre_state){ 0 };
	rbx_region_list_init(&regions->state.mre.stack);
}

static void mre_admit(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	region->key = 0;
	region->seen = 0; /* uses that it went to the top for */
	rbx_region_list_push(&regions->state.mre.stack, regions->slots, slot);
}

static void mre_remove(struct rbx_regions *regions, uint32_t slot)
{
	rbx_region_list_remove(&regions->state.mre.stack, regions->slots, slot);
}

/* What was used goes to the top, and what is in use goes there last. */
static void restack(struct rbx_regions *regions)
{
	struct rbx_region_list *stack = &regions->state.mre.stack, used, in_use;
	uint32_t slot, newer;

	rbx_region_list_init(&used);
	rbx_region_list_init(&in_use);
	for (slot = stack->oldest; slot != RBX_REGION_NONE; slot = newer) {
		struct rbx_cached_region *region = rbx_regions_at(regions, slot);

		newer = region->prev;
		if (!rbx_region_unseen(region) && !region->references)
			continue;
		rbx_region_see(region);
		region->key = 0;
		rbx_region_list_remove(stack, regions->slots, slot);
		rbx_region_list_push(region->references ? &in_use : &used, regions->slots, slot);
	}
	rbx_region_list_sort(&used, regions->slots, RBX_REGION_BY(stamp));
	rbx_region_list_join(stack, regions->slots, &used);
	rbx_region_list_sort(&in_use, regions->slots, RBX_REGION_BY(stamp));
	rbx_region_list_join(stack, regions->slots, &in_use);
}

static uint64_t room_of(const struct rbx_region_mre_state *mre,
			const struct rbx_cached_region *region)
{
	return mre->room_is_regions ? 1 : region->pages;
}

/* Of all regions in a list. */
static uint64_t room_in(const struct rbx_region_mre_state *mre, const struct rbx_region_list *list)
{
	return mre->room_is_regions ? list->count : list->pages;
}

/* Takes the resorting section from the bottom of the stack, each with its factor. */
static void take_resorting(struct rbx_regions *regions, struct rbx_region_list *section)
{
	struct rbx_region_mre_state *mre = &regions->state.mre;
	uint64_t wanted = room_in(mre, &mre->stack) / RESORTING_PART;

	rbx_region_list_init(section);
	do {
		uint32_t slot = mre->stack.oldest;
		struct rbx_cached_region *region = rbx_regions_at(regions, slot);

		if (region->references)
			break;
		if (!region->key)
			region->key = mre->recency + ONE / region->pages;
		rbx_region_list_remove(&mre->stack, regions->slots, slot);
		rbx_region_list_push(section, regions->slots, slot);
	} while (room_in(mre, section) < wanted);
}

static void resort(struct rbx_regions *regions)
{
	struct rbx_region_mre_state *mre = &regions->state.mre;
	struct rbx_region_list section;

	restack(regions);
	mre->segment = RBX_MAX(room_in(mre, &mre->stack) / EVICTION_PART, (uint64_t)1);
	mre->recency = rbx_regions_at(regions, mre->stack.oldest)->key;
	take_resorting(regions, &section);
	rbx_region_list_sort(&section, regions->slots, RBX_REGION_BY(key));
	rbx_region_list_join(&section, regions->slots, &mre->stack);
	mre->stack = section;
}

static void mre_full(struct rbx_regions *regions, bool only_regions_short)
{
	regions->state.mre.room_is_regions = only_regions_short;
	resort(regions);
}

/* What is in use is at the top, so the bottom is not. */
static uint32_t mre_victim(struct rbx_regions *regions)
{
	struct rbx_region_mre_state *mre = &regions->state.mre;
	uint32_t slot;

	if (!mre->segment)
		resort(regions);
	slot = mre->stack.oldest;
	mre->segment -= RBX_MIN(mre->segment, room_of(mre, rbx_regions_at(regions, slot)));
	return slot;
}

static bool mre_wants_more(const struct rbx_regions *regions)
{
	return regions->state.mre.segment != 0;
}

/* The order of their last use, and no factors. */
static void mre_adopt(struct rbx_regions *regions, struct rbx_region_list *all)
{
	uint32_t slot;

	for (slot = all->oldest; slot != RBX_REGION_NONE;
	     slot = rbx_regions_at(regions, slot)->prev) {
		rbx_regions_at(regions, slot)->key = 0;
		rbx_region_see(rbx_regions_at(regions, slot));
	}
	regions->state.mre.stack = *all;
}

const struct rbx_region_policy rbx_region_mre = {
	.name = "mre",
	.size = rbx_region_policy_needs_none,
	.init = mre_init,
	.admit = mre_admit,
	.remove = mre_remove,
	.full = mre_full,
	.victim = mre_victim,
	.wants_more = mre_wants_more,
	.adopt = mre_adopt,
};
