/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_sets_test.c - sets of indices beside a plain array of which set each is in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/index_sets.h"
#include "core/random.h"

#define SETS 5u

static const uint32_t sizes[] = { 1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097,
				  300001 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

struct world {
	struct rbx_index_sets sets;
	void *memory;
	uint8_t *set_of; /* as it should be */
	uint32_t count;
};

static void world_make(struct world *world, uint32_t count)
{
	world->count = count;
	world->memory = calloc(1, rbx_index_sets_size(count, SETS));
	world->set_of = calloc(1, count);
	rbx_index_sets_init(&world->sets, world->memory, count, SETS);
}

static void world_free(struct world *world)
{
	free(world->memory);
	free(world->set_of);
}

static void move(struct world *world, uint32_t index, uint32_t set)
{
	world->set_of[index] = (uint8_t)set;
	rbx_index_sets_move(&world->sets, index, set);
	assert_int_equal(rbx_index_sets_of(&world->sets, index), set);
}

static uint32_t next_by_search(const struct world *world, uint32_t set,
			       uint32_t from)
{
	for (uint32_t i = 0; i < world->count; i++)
		if (world->set_of[(from + i) % world->count] == set)
			return (from + i) % world->count;
	return RBX_INDEX_NONE;
}

static void next_is_as_by_search(const struct world *world, uint32_t from)
{
	for (uint32_t set = 1; set <= SETS; set++)
		assert_int_equal(rbx_index_sets_next(&world->sets, set, from),
				 next_by_search(world, set, from));
}

static void counts_are_as_by_search(const struct world *world)
{
	uint32_t counts[SETS + 1] = { 0 };

	for (uint32_t i = 0; i < world->count; i++)
		counts[world->set_of[i]]++;
	for (uint32_t set = 1; set <= SETS; set++)
		assert_int_equal(rbx_index_sets_count(&world->sets, set),
				 counts[set]);
}

/* Few are in a set, then many. */
static void sets_at_random_are_as_an_array(void **state)
{
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 3);
	for (uint32_t i = 0; i < SIZES; i++) {
		/* A search of many takes its time. */
		uint32_t steps = sizes[i] > 5000 ? 400 : 2000, none, set;
		struct world world;

		world_make(&world, sizes[i]);
		for (uint32_t step = 0; step < steps; step++) {
			none = step < steps / 2 ? 20 : 1;
			set = rbx_random_below(&random, SETS + none);
			/* Some places, so that they come and go. */
			move(&world,
			     rbx_random_below(&random, 150) * 1999 % sizes[i],
			     set < SETS ? set + 1 : 0);
			next_is_as_by_search(
				&world, rbx_random_below(&random, sizes[i]));
		}
		next_is_as_by_search(&world, 0);
		counts_are_as_by_search(&world);
		world_free(&world);
	}
}

static void each_index_alone_is_found_from_anywhere(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SIZES - 1; i++) {
		uint32_t last = sizes[i] - 1, index;
		struct world world;

		world_make(&world, sizes[i]);
		for (index = 0; index <= last; index++) {
			rbx_index_sets_move(&world.sets, index, SETS);
			assert_int_equal(rbx_index_sets_next(&world.sets, SETS, 0),
					 index);
			assert_int_equal(rbx_index_sets_next(&world.sets, SETS,
							     index),
					 index);
			assert_int_equal(rbx_index_sets_next(&world.sets, SETS,
							     index + 1),
					 index);
			assert_int_equal(rbx_index_sets_next(&world.sets, SETS,
							     last),
					 index);
			rbx_index_sets_move(&world.sets, index, 0);
			assert_int_equal(rbx_index_sets_next(&world.sets, SETS, 0),
					 RBX_INDEX_NONE);
		}
		world_free(&world);
	}
}

/* Each member once, as the upkeep thread goes round. */
static void going_round_comes_to_each_member_once(void **state)
{
	struct world world;
	uint32_t at = 4000, seen = 0;

	(void)state;
	world_make(&world, 10000);
	for (uint32_t i = 0; i < world.count; i += 7)
		move(&world, i, 2);
	for (uint32_t i = 1; i < world.count; i += 7)
		move(&world, i, 3);
	for (; seen < rbx_index_sets_count(&world.sets, 2); seen++) {
		at = rbx_index_sets_next(&world.sets, 2, at + 1);
		assert_int_equal(world.set_of[at], 2);
		world.set_of[at] = 4;
	}
	assert_int_equal(seen, 10000 / 7 + 1);
	world_free(&world);
}

static void many_sets_cost_little_more_than_a_byte(void **state)
{
	const uint32_t count = 1u << 20;

	(void)state;
	assert_in_range(rbx_index_sets_size(count, 26), count,
			count + count / 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_at_random_are_as_an_array),
		cmocka_unit_test(each_index_alone_is_found_from_anywhere),
		cmocka_unit_test(going_round_comes_to_each_member_once),
		cmocka_unit_test(many_sets_cost_little_more_than_a_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
