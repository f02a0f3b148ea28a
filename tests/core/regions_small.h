/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* regions_small.h - a small cache for tests, in pages, and a host that registers at once. */
#ifndef TEST_REGIONS_SMALL_H
#define TEST_REGIONS_SMALL_H

#include <stdlib.h>

#include "core/region_auto.h"
#include "core/regions_play.h"

#define PAGE 4096ull

struct small {
	struct rbx_regions regions;
	void *memory;
};

static inline void small_make(struct small *small, const struct rbx_region_policy *policy,
			      uint64_t pages_max, uint32_t regions_max)
{
	const struct rbx_regions_shape shape = {
		.bytes_max = pages_max * PAGE,
		.regions_max = regions_max,
		.cost = { 770, 7420, 220, 1100 },
		.policy = policy,
	};

	small->memory = calloc(1, rbx_regions_size(&shape));
	assert_int_equal(rbx_regions_init(&small->regions, &shape, small->memory), 0);
}

static inline void small_free(struct small *small)
{
	free(small->memory);
}

/* Before and after each test: lru, 100 pages, and as many regions. */
static inline int small_setup(void **state)
{
	static struct small small;

	small_make(&small, &rbx_region_lru, 100, 100);
	*state = &small;
	return 0;
}

static inline int small_teardown(void **state)
{
	small_free(*state);
	return 0;
}

/* Deregisters what is due. Returns how many. */
static inline uint32_t small_retire(struct small *small)
{
	uint32_t batch[RBX_REGION_BATCH_MAX];
	uint32_t count = rbx_regions_batch(&small->regions, batch, RBX_REGION_BATCH_MAX);

	rbx_regions_retired(&small->regions, batch, count);
	return count;
}

/* As a host does it. Registers nothing yet. */
static inline int small_acquire_only(struct small *small, struct rbx_region_use *use, uint64_t page,
				     uint64_t pages)
{
	int err = rbx_regions_acquire(&small->regions, use, page * PAGE, pages * PAGE, 0);

	while (err == -EAGAIN) {
		assert_true(small_retire(small) > 0);
		err = rbx_regions_again(&small->regions, use);
	}
	return err;
}

static inline void small_register(struct small *small, const struct rbx_region_use *use)
{
	for (uint32_t i = 0; i < use->count; i++)
		if (use->fresh >> i & 1)
			rbx_regions_registered(&small->regions, use->parts[i], use->parts[i] + 100);
}

static inline void small_acquire(struct small *small, struct rbx_region_use *use, uint64_t page,
				 uint64_t pages)
{
	assert_int_equal(small_acquire_only(small, use, page, pages), 0);
	small_register(small, use);
}

/* A whole request. */
static inline void small_use(struct small *small, uint64_t page, uint64_t pages)
{
	struct rbx_region_use use;

	small_acquire(small, &use, page, pages);
	rbx_regions_release(&small->regions, &use);
}

static inline bool small_has(const struct small *small, uint64_t page)
{
	uint32_t slot = rbx_region_index_at(&small->regions.index, page);

	return slot != RBX_REGION_NONE && rbx_region_end(&small->regions.slots[slot]) > page;
}

static inline const struct rbx_cached_region *small_part(const struct small *small,
						  const struct rbx_region_use *use, uint32_t i)
{
	return &small->regions.slots[use->parts[i]];
}

static inline void small_part_is(const struct small *small, const struct rbx_region_use *use,
				 uint32_t i, uint64_t first, uint32_t pages, bool is_fresh)
{
	assert_int_equal(small_part(small, use, i)->first, first);
	assert_int_equal(small_part(small, use, i)->pages, pages);
	assert_int_equal(use->fresh >> i & 1, is_fresh);
}

#endif
