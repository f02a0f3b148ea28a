/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_sieve.c - a hand goes from the oldest region to the newest, and takes the first one that
 * was not used since it came by.
 *
 * SIEVE (Zhang et al., NSDI 2024). What was used stays where it is, unlike with a clock. So the
 * hand comes to new regions soon, and those that are never used again leave soon.
 */
#include "core/regions.h"

static void sieve_init(struct rbx_regions *regions, void *memory)
{
	(void)memory;
	rbx_region_list_init(&regions->state.sieve.queue);
	regions->state.sieve.hand = RBX_REGION_NONE;
}

static void sieve_admit(struct rbx_regions *regions, uint32_t region)
{
	/* The use for which it was registered does not count. */
	rbx_region_see(rbx_regions_at(regions, region));
	rbx_region_list_push(&regions->state.sieve.queue, regions->slots, region);
}

static void sieve_remove(struct rbx_regions *regions, uint32_t region)
{
	struct rbx_region_sieve_state *sieve = &regions->state.sieve;

	if (sieve->hand == region)
		sieve->hand = rbx_regions_at(regions, region)->prev;
	rbx_region_list_remove(&sieve->queue, regions->slots, region);
}

static uint32_t sieve_victim(struct rbx_regions *regions)
{
	struct rbx_region_sieve_state *sieve = &regions->state.sieve;
	uint32_t looks;

	/* The second time round nothing but what is in use is left alone. */
	for (looks = 2 * sieve->queue.count + 1; looks; looks--) {
		struct rbx_cached_region *region;

		if (sieve->hand == RBX_REGION_NONE)
			sieve->hand = sieve->queue.oldest;
		region = rbx_regions_at(regions, sieve->hand);
		if (!rbx_region_unseen(region) && !region->references)
			return sieve->hand;
		rbx_region_see(region);
		sieve->hand = region->prev;
	}
	return RBX_REGION_NONE;
}

static void sieve_adopt(struct rbx_regions *regions, struct rbx_region_list *all)
{
	uint32_t region;

	for (region = all->oldest; region != RBX_REGION_NONE;
	     region = rbx_regions_at(regions, region)->prev)
		rbx_regions_at(regions, region)->seen = 1;
	regions->state.sieve.queue = *all;
}

const struct rbx_region_policy rbx_region_sieve = {
	.name = "sieve",
	.size = rbx_region_policy_needs_none,
	.init = sieve_init,
	.admit = sieve_admit,
	.remove = sieve_remove,
	.victim = sieve_victim,
	.adopt = sieve_adopt,
};
