/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* region_index_test.c - the tree beside a plain array of which pages are in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/region_index.h"

#define PAGES 6000u

struct world {
	struct rbx_region_index index;
	void *memory;
	bool is_in[PAGES];
	uint32_t count;
};

static void world_make(struct world *world)
{
	*world = (struct world){ 0 };
	world->memory = malloc(rbx_region_index_size(PAGES));
	rbx_region_index_init(&world->index, world->memory, PAGES);
}

/* A region's number tells its page. */
static void flip(struct world *world, uint32_t page)
{
	if (world->is_in[page])
		rbx_region_index_remove(&world->index, page);
	else
		rbx_region_index_add(&world->index, page, page * 2);
	world->is_in[page] = !world->is_in[page];
	world->count += world->is_in[page] ? 1 : -1;
}

static void finds_as_the_array(const struct world *world, uint32_t page)
{
	int64_t at = page, from = page;

	while (at >= 0 && !world->is_in[at])
		at--;
	while (from < PAGES && !world->is_in[from])
		from++;
	assert_int_equal(rbx_region_index_at(&world->index, page),
			 at < 0 ? RBX_REGION_NONE : at * 2);
	assert_int_equal(rbx_region_index_from(&world->index, page),
			 from == PAGES ? RBX_REGION_NONE : from * 2);
}

/* Nodes are full enough, so the pool suffices, and unused keys are greater than any page. */
static uint32_t entries_below(const struct rbx_region_index *index, uint32_t number, uint32_t level)
{
	const struct rbx_region_node *node = &index->nodes[number];
	uint32_t entries = 0;

	if (number != index->root)
		assert_in_range(node->count, RBX_REGION_NODE_MIN, RBX_REGION_NODE_KEYS);
	for (uint32_t i = node->count; i < RBX_REGION_NODE_KEYS; i++)
		assert_true(node->keys[i] == UINT64_MAX);
	if (level == 1)
		return node->count;
	for (uint32_t i = 0; i < node->count; i++)
		entries += entries_below(index, node->values[i], level - 1);
	return entries;
}

static void is_sound(const struct world *world)
{
	assert_int_equal(entries_below(&world->index, world->index.root, world->index.levels),
			 world->count);
}

/* More and more, then fewer and fewer, several times. */
static void pages_at_random_are_as_an_array(void **state)
{
	struct rbx_random random;
	struct world world;

	(void)state;
	rbx_random_seed(&random, 5);
	world_make(&world);
	for (uint32_t step = 0; step < 120000; step++) {
		uint32_t page = rbx_random_below(&random, PAGES);
		bool grows = step / 20000 % 2 == 0;

		if (world.is_in[page] != grows || rbx_random_below(&random, 4) == 0)
			flip(&world, page);
		finds_as_the_array(&world, rbx_random_below(&random, PAGES));
		if (step % 1000 == 0)
			is_sound(&world);
	}
	is_sound(&world);
	free(world.memory);
}

static void all_are_added_and_removed(uint32_t add_by, uint32_t remove_by)
{
	struct world world;

	world_make(&world);
	for (uint32_t i = 0; i < PAGES; i++)
		flip(&world, (uint32_t)((uint64_t)i * add_by % PAGES));
	is_sound(&world);
	assert_int_equal(world.count, PAGES);
	for (uint32_t i = 0; i < PAGES; i++) {
		flip(&world, (uint32_t)((uint64_t)i * remove_by % PAGES));
		finds_as_the_array(&world, i);
	}
	is_sound(&world);
	assert_int_equal(world.count, 0);
	assert_int_equal(world.index.levels, 1);
	free(world.memory);
}

static void pages_in_any_order_come_and_go(void **state)
{
	static const uint32_t strides[] = { 1, PAGES - 1, 7, 1999, PAGES / 2 - 1 }; /* coprime */

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t j = 0; j < 5; j++)
			all_are_added_and_removed(strides[i], strides[j]);
}

static void nothing_is_found_in_an_empty_one(void **state)
{
	struct world world;

	(void)state;
	world_make(&world);
	finds_as_the_array(&world, 0);
	finds_as_the_array(&world, PAGES - 1);
	free(world.memory);
}

static void upward_pages_fill_nodes_well(void **state)
{
	struct world world;

	(void)state;
	world_make(&world);
	for (uint32_t i = 0; i < 1600; i++)
		flip(&world, i);
	assert_int_equal(world.index.levels, 2); /* 1600 / 40 leaves are below one node */
	free(world.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_at_random_are_as_an_array),
		cmocka_unit_test(pages_in_any_order_come_and_go),
		cmocka_unit_test(nothing_is_found_in_an_empty_one),
		cmocka_unit_test(upward_pages_fill_nodes_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
