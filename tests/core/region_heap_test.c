/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* region_heap_test.c - the heap of lru and gdsf beside a search through all regions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/region_heap.h"
#include "regions_small.h"

#define SLOTS 60u

static uint64_t stamp_of(const struct rbx_regions *regions, const struct rbx_cached_region *region)
{
	(void)regions;
	return region->stamp;
}

struct world {
	struct rbx_regions regions;
	struct rbx_cached_region slots[SLOTS];
	uint32_t places[SLOTS + 1];
	bool is_in[SLOTS];
};

/* No region has a lesser key than the one above it. */
static void is_a_heap(const struct world *world)
{
	const struct rbx_region_heap *heap = &world->regions.state.heap;
	uint32_t count = heap->count + heap->aside.count;

	for (uint32_t place = 1; place < heap->count; place++)
		assert_true(world->slots[heap->places[(place - 1) / 4]].key <=
			    world->slots[heap->places[place]].key);
	for (uint32_t place = 0; place < heap->count; place++)
		assert_int_equal(world->slots[heap->places[place]].prev, place);
	for (uint32_t i = 0; i < SLOTS; i++)
		count -= world->is_in[i];
	assert_int_equal(count, 0);
}

static uint32_t least_of_all(const struct world *world)
{
	uint32_t least = RBX_REGION_NONE;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (world->is_in[i] && !world->slots[i].references &&
		    (least == RBX_REGION_NONE ||
		     world->slots[i].stamp < world->slots[least].stamp))
			least = i;
	return least;
}

static void step(struct world *world, struct rbx_random *random, bool uses)
{
	uint32_t i = rbx_random_below(random, SLOTS), what = rbx_random_below(random, 4);
	struct rbx_cached_region *region = &world->slots[i];

	if (!world->is_in[i]) {
		region->stamp = region->key = rbx_random_below(random, 1000);
		rbx_region_heap_put(&world->regions, i);
		world->is_in[i] = true;
	} else if (what == 0) {
		rbx_region_heap_remove(&world->regions, i);
		world->is_in[i] = false;
		region->references = 0;
	} else if (what == 1) {
		region->stamp += rbx_random_below(random, 1000); /* nobody moves it */
	} else if (uses) {
		region->references = rbx_random_below(random, 2);
	}
}

static void least_is_found_and_the_heap_stays_one(void **state)
{
	static struct world world;
	struct rbx_random random;

	(void)state;
	world = (struct world){ .regions.slots = world.slots };
	rbx_region_heap_init(&world.regions, world.places);
	rbx_random_seed(&random, 1);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t least, found;

		step(&world, &random, false);
		is_a_heap(&world);
		least = least_of_all(&world);
		if (least == RBX_REGION_NONE || rbx_random_below(&random, 3))
			continue;
		found = rbx_region_heap_least(&world.regions, stamp_of);
		assert_int_equal(world.slots[found].stamp, world.slots[least].stamp);
	}
}

/* One that is idle is found as long as there is one, however many are in use. */
static void region_in_use_is_never_found(void **state)
{
	static struct world world;
	struct rbx_random random;

	(void)state;
	world = (struct world){ .regions.slots = world.slots };
	rbx_region_heap_init(&world.regions, world.places);
	rbx_random_seed(&random, 2);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t found;

		step(&world, &random, true);
		is_a_heap(&world);
		found = rbx_region_heap_least(&world.regions, stamp_of);
		assert_int_equal(found == RBX_REGION_NONE,
				 least_of_all(&world) == RBX_REGION_NONE);
		if (found != RBX_REGION_NONE)
			assert_true(world.is_in[found] && !world.slots[found].references);
	}
}

static uint32_t keys_asked;

static uint64_t stamp_counted(const struct rbx_regions *regions,
			      const struct rbx_cached_region *region)
{
	keys_asked++;
	return stamp_of(regions, region);
}

/* The oldest 50 are in use: the first victim passes over them, the next ones do not. */
static void regions_in_use_are_passed_over_once(void **state)
{
	static struct world world;

	(void)state;
	world = (struct world){ .regions.slots = world.slots };
	rbx_region_heap_init(&world.regions, world.places);
	for (uint32_t i = 0; i < SLOTS; i++) {
		world.slots[i].stamp = world.slots[i].key = i;
		world.slots[i].references = i < 50;
		rbx_region_heap_put(&world.regions, i);
	}
	for (uint32_t i = 50; i < 55; i++) {
		keys_asked = 0;
		assert_int_equal(rbx_region_heap_least(&world.regions, stamp_counted), i);
		assert_in_range(keys_asked, 1, i == 50 ? 51 : 1);
		rbx_region_heap_remove(&world.regions, i);
	}
	/* They come back, before those that are newer. */
	for (uint32_t i = 0; i < 50; i++)
		world.slots[i].references = 0;
	for (uint32_t i = 0; i < 50; i++) {
		uint32_t found = rbx_region_heap_least(&world.regions, stamp_counted);

		assert_in_range(found, 0, 49);
		rbx_region_heap_remove(&world.regions, found);
	}
	assert_int_equal(world.regions.state.heap.count, SLOTS - 55);
	assert_int_equal(world.regions.state.heap.aside.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_is_found_and_the_heap_stays_one),
		cmocka_unit_test(region_in_use_is_never_found),
		cmocka_unit_test(regions_in_use_are_passed_over_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
