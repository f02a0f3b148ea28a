/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_begin.c - the memory of a cache: one block, in which are the regions, the table of last
 * hits, the index, what the policy has, and the shadows of auto.
 */
#include "core/region_auto.h"
#include "core/regions_internal.h"

#define FRONTS_PER_REGION 2u

/* A region has a page at least. */
static uint32_t slots_of(const struct rbx_regions_shape *shape)
{
	return (uint32_t)RBX_MIN((uint64_t)shape->regions_max,
				 shape->bytes_max >> RBX_REGION_PAGE_SHIFT);
}

static uint32_t fronts_bits(uint32_t slots)
{
	uint32_t bits = 1;

	while (1u << bits < slots * FRONTS_PER_REGION)
		bits++;
	return bits;
}

static size_t slots_size(uint32_t slots)
{
	return rbx_regions_rounded(slots * sizeof(struct rbx_cached_region));
}

static size_t fronts_size(uint32_t slots)
{
	return rbx_regions_rounded(sizeof(uint32_t) << fronts_bits(slots));
}

static bool is_possible(const struct rbx_regions_shape *shape)
{
	return shape->bytes_max >= RBX_PAGE_BYTES && shape->regions_max &&
	       shape->regions_max <= RBX_REGIONS_MAX;
}

size_t rbx_regions_size(const struct rbx_regions_shape *shape)
{
	uint32_t slots;

	if (!is_possible(shape))
		return 0;
	slots = slots_of(shape);
	return slots_size(slots) + fronts_size(slots) +
	       rbx_regions_rounded(rbx_region_index_size(slots)) +
	       rbx_regions_rounded(shape->policy->size(slots)) +
	       (shape->policy == &rbx_region_auto ? rbx_region_auto_size(shape) : 0);
}

static void slots_init(struct rbx_regions *regions)
{
	uint32_t i;

	regions->free_first = RBX_REGION_NONE;
	regions->due_first = RBX_REGION_NONE;
	for (i = regions->slots_count; i--;) {
		regions->slots[i].next = regions->free_first;
		regions->free_first = i;
	}
}

int rbx_regions_init(struct rbx_regions *regions, const struct rbx_regions_shape *shape,
		     void *memory)
{
	uint32_t slots;
	char *at = memory;

	if (!is_possible(shape))
		return -EINVAL;
	slots = slots_of(shape);
	*regions = (struct rbx_regions){
		.pages_max = shape->bytes_max >> RBX_REGION_PAGE_SHIFT,
		.pages_limit = shape->bytes_max >> RBX_REGION_PAGE_SHIFT,
		.regions_max = slots,
		.regions_limit = slots,
		.slots_count = slots,
		.cost = shape->cost,
		.policy = shape->policy,
		.front_shift = 64 - fronts_bits(slots),
		.slots = memory,
	};
	at += slots_size(slots);
	regions->fronts = (uint32_t *)at;
	at += fronts_size(slots);
	rbx_region_index_init(&regions->index, at, slots);
	at += rbx_regions_rounded(rbx_region_index_size(slots));
	regions->policy_memory = at;
	regions->policy_bytes = shape->policy->size(slots);
	slots_init(regions);
	at += rbx_regions_rounded(regions->policy_bytes);
	if (shape->policy == &rbx_region_auto)
		rbx_region_auto_begin(regions, shape, at);
	regions->policy->init(regions, regions->policy_memory);
	return 0;
}
