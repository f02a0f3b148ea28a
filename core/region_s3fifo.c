/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_s3fifo.c - what is used once does not push out what is used often.
 *
 * S3-FIFO (Yang et al., SOSP 2023), with sizes. A new region enters a small queue, of a tenth of
 * the pages. If it was used more than once more by the time that it comes to the end, it goes on to
 * the main queue, else it leaves, and a ghost remembers its first page. What comes back while its
 * ghost is there enters the main queue at once. At the end of the main queue a region that was used
 * goes round again, up to three times.
 */
#include "core/regions.h"

#define SMALL 0u
#define MAIN 1u
#define SMALL_PART 10u /* of the pages */
#define USES_MAX 3u
#define TO_MAIN 2u /* uses */

static uint32_t ghosts_count(uint32_t regions)
{
	uint32_t count = 16;

	while (count < regions)
		count *= 2;
	return count;
}

static size_t s3fifo_size(uint32_t regions)
{
	return ghosts_count(regions) * sizeof(uint64_t);
}

static void s3fifo_init(struct rbx_regions *regions, void *memory)
{
	struct rbx_region_s3fifo_state *s3fifo = &regions->state.s3fifo;

	rbx_region_list_init(&s3fifo->small);
	rbx_region_list_init(&s3fifo->main);
	s3fifo->ghosts = memory;
	s3fifo->ghosts_mask = ghosts_count(regions->slots_count) - 1;
	s3fifo->left = 0;
}

/* ---- Ghosts ---------------------------------------------------------------------*/

/* Two ghosts may want the same place; the later one has it. */
static uint64_t *ghost_of(const struct rbx_region_s3fifo_state *s3fifo, uint64_t first,
			  uint32_t *fingerprint)
{
	uint64_t hash = (first + 1) * 0xd6e8feb86659fd93u;

	hash ^= hash >> 32;
	*fingerprint = (uint32_t)(hash >> 32) | 1;
	return &s3fifo->ghosts[hash & s3fifo->ghosts_mask];
}

static void ghost_leave(struct rbx_region_s3fifo_state *s3fifo, uint64_t first)
{
	uint32_t fingerprint;
	uint64_t *ghost = ghost_of(s3fifo, first, &fingerprint);

	*ghost = (uint64_t)fingerprint << 32 | s3fifo->left++;
}

/* There are as many ghosts as regions in the main queue. */
static bool ghost_take(struct rbx_region_s3fifo_state *s3fifo, uint64_t first)
{
	uint32_t fingerprint, age;
	uint64_t *ghost = ghost_of(s3fifo, first, &fingerprint);

	age = s3fifo->left - (uint32_t)*ghost;
	if (*ghost >> 32 != fingerprint || age > s3fifo->main.count)
		return false;
	*ghost = 0;
	return true;
}

/* ---- Queues ---------------------------------------------------------------------*/

static struct rbx_region_list *queue_of(struct rbx_regions *regions, uint32_t section)
{
	return section == MAIN ? &regions->state.s3fifo.main : &regions->state.s3fifo.small;
}

static void enter(struct rbx_regions *regions, uint32_t slot, uint32_t section)
{
	rbx_regions_at(regions, slot)->section = (uint8_t)section;
	rbx_region_list_push(queue_of(regions, section), regions->slots, slot);
}

static void s3fifo_remove(struct rbx_regions *regions, uint32_t slot)
{
	rbx_region_list_remove(queue_of(regions, rbx_regions_at(regions, slot)->section),
			       regions->slots, slot);
}

static void s3fifo_admit(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	/* The use for which it was registered does not count. */
	rbx_region_see(region);
	enter(regions, slot, ghost_take(&regions->state.s3fifo, region->first) ? MAIN : SMALL);
}

/* Uses that were not taken into account, as S3-FIFO counts them. */
static uint32_t uses_of(const struct rbx_cached_region *region)
{
	return RBX_MIN(rbx_region_unseen(region), USES_MAX);
}

/* The end of the small queue: the region leaves, or goes on. */
static uint32_t small_victim(struct rbx_regions *regions)
{
	struct rbx_region_s3fifo_state *s3fifo = &regions->state.s3fifo;
	uint32_t slot;

	while ((slot = s3fifo->small.oldest) != RBX_REGION_NONE) {
		struct rbx_cached_region *region = rbx_regions_at(regions, slot);

		if (uses_of(region) < TO_MAIN && !region->references) {
			ghost_leave(s3fifo, region->first);
			return slot;
		}
		rbx_region_see(region);
		s3fifo_remove(regions, slot);
		enter(regions, slot, MAIN);
	}
	return RBX_REGION_NONE;
}

static uint32_t main_victim(struct rbx_regions *regions)
{
	struct rbx_region_s3fifo_state *s3fifo = &regions->state.s3fifo;
	uint32_t looks;

	/* Each goes round at most three times, unless it is in use. */
	for (looks = (USES_MAX + 1) * s3fifo->main.count; looks; looks--) {
		uint32_t slot = s3fifo->main.oldest, uses;
		struct rbx_cached_region *region = rbx_regions_at(regions, slot);

		uses = uses_of(region);
		if (!uses && !region->references)
			return slot;
		region->seen = (uint32_t)region->uses - (uses ? uses - 1 : 0);
		s3fifo_remove(regions, slot);
		enter(regions, slot, MAIN);
	}
	return RBX_REGION_NONE;
}

static uint32_t s3fifo_victim(struct rbx_regions *regions)
{
	struct rbx_region_s3fifo_state *s3fifo = &regions->state.s3fifo;
	uint64_t pages = s3fifo->small.pages + s3fifo->main.pages;
	uint32_t victim = RBX_REGION_NONE;

	if (s3fifo->small.pages * SMALL_PART > pages)
		victim = small_victim(regions);
	if (victim == RBX_REGION_NONE)
		victim = main_victim(regions);
	if (victim == RBX_REGION_NONE)
		victim = small_victim(regions);
	/* All that was in the main queue is in use; the small one may have passed something on. */
	return victim != RBX_REGION_NONE ? victim : main_victim(regions);
}

/* The last tenth that was used once only enters the small queue, the rest the main queue. */
static void s3fifo_adopt(struct rbx_regions *regions, struct rbx_region_list *all)
{
	uint64_t pages = 0;
	uint32_t slot, newer;

	for (slot = all->oldest; slot != RBX_REGION_NONE; slot = newer) {
		struct rbx_cached_region *region = rbx_regions_at(regions, slot);
		bool is_last;

		newer = region->prev;
		pages += region->pages;
		is_last = (all->pages - pages) * SMALL_PART < all->pages;
		region->seen = 1;
		enter(regions, slot, is_last && region->uses == 1 ? SMALL : MAIN);
	}
}

const struct rbx_region_policy rbx_region_s3fifo = {
	.name = "s3fifo",
	.size = s3fifo_size,
	.init = s3fifo_init,
	.admit = s3fifo_admit,
	.remove = s3fifo_remove,
	.victim = s3fifo_victim,
	.adopt = s3fifo_adopt,
};
