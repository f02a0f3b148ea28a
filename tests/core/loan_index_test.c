/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan_index_test.c - loans are found by their names, and twins by what they share;
 * beside a search of all slabs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/loan_index.h"
#include "core/random.h"

#define SLABS 37u
#define SLOTS 3u
#define SHIFT 16u
#define SLAB_BYTES (1ull << SHIFT)
#define NUMBERS (SLABS * SLOTS)

struct world {
	struct rbx_slab_shape shape;
	struct rbx_loan_index index;
	bool is_in[NUMBERS];
};

static struct world *world_make_of(uint32_t slabs)
{
	struct world *world = calloc(1, sizeof(*world));

	world->shape.slab_shift = SHIFT;
	world->shape.slots = SLOTS;
	world->shape.slab_size = (uint32_t)rbx_slab_size(SLOTS);
	world->shape.slabs = calloc(slabs, rbx_slab_size(SLOTS));
	rbx_loan_index_init(&world->index,
			    calloc(1, rbx_loan_index_size(slabs, SLOTS)), slabs,
			    &world->shape);
	return world;
}

static struct world *world_make(void)
{
	return world_make_of(SLABS);
}

static void world_free(struct world *world)
{
	free(world->index.by_id);
	free(world->shape.slabs);
	free(world);
}

static struct rbx_replica *replica_of(struct world *world, uint32_t number)
{
	return &rbx_slab_at(&world->shape, number / SLOTS)
			->replicas[number % SLOTS];
}

static void add(struct world *world, uint32_t number, uint32_t server,
		const struct rbx_loan *loan)
{
	replica_of(world, number)->server = server;
	rbx_replica_set_loan(replica_of(world, number), loan);
	rbx_loan_index_add(&world->index, number);
	if (number < NUMBERS)
		world->is_in[number] = true;
}

static uint32_t twins_of(struct world *world, uint32_t server,
			 const struct rbx_loan *loan, uint32_t *number)
{
	return rbx_loan_index_twins(&world->index, server, loan, number, 1);
}

static void loan_is_found_by_all_of_its_name(void **state)
{
	struct world *world = world_make();
	const struct rbx_loan loan = { 9, 4, SLAB_BYTES, 1 };

	(void)state;
	add(world, 5, 2, &loan);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 9, 4), 5);
	assert_int_equal(rbx_loan_index_find(&world->index, 1, 9, 4),
			 RBX_REPLICA_NONE);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 8, 4),
			 RBX_REPLICA_NONE);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 9, 5),
			 RBX_REPLICA_NONE);
	rbx_loan_index_remove(&world->index, 5);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 9, 4),
			 RBX_REPLICA_NONE);
	world_free(world);
}

static void twin_shares_an_id_or_memory_under_a_key(void **state)
{
	struct world *world = world_make();
	const struct rbx_loan loan = { 9, 4, 3 * SLAB_BYTES + 4096, 1 };
	struct rbx_loan other;
	uint32_t number = 0;

	(void)state;
	add(world, 5, 2, &loan);
	other = (struct rbx_loan){ 9, 6, 99 * SLAB_BYTES, 7 };
	assert_int_equal(twins_of(world, 2, &other, &number), 1);
	assert_int_equal(number, 5);
	assert_int_equal(twins_of(world, 1, &other, &number), 0);
	other = (struct rbx_loan){ 8, 6, loan.remote_addr, 1 };
	assert_int_equal(twins_of(world, 2, &other, &number), 1);
	other.rkey = 2;
	assert_int_equal(twins_of(world, 2, &other, &number), 0);
	/* By one page, on either side. */
	other.rkey = 1;
	other.remote_addr = loan.remote_addr + SLAB_BYTES - 4096;
	assert_int_equal(twins_of(world, 2, &other, &number), 1);
	other.remote_addr += 4096;
	assert_int_equal(twins_of(world, 2, &other, &number), 0);
	other.remote_addr = loan.remote_addr - SLAB_BYTES + 4096;
	assert_int_equal(twins_of(world, 2, &other, &number), 1);
	other.remote_addr -= 4096;
	assert_int_equal(twins_of(world, 2, &other, &number), 0);
	world_free(world);
}

/* Their numbers take four bytes. */
static void loans_of_many_slabs_are_found(void **state)
{
	const uint32_t slabs = (1u << 24) / SLOTS + 7;
	struct world *world = world_make_of(slabs);
	uint32_t i, numbers[] = { 0, (1u << 24) - 1, 1u << 24, slabs * SLOTS - 1 };
	uint64_t id[] = { 3, 4, 5, 6 };

	(void)state;
	for (i = 0; i < 4; i++) {
		const struct rbx_loan loan = { id[i], 1, 0, (uint32_t)id[i] };

		add(world, numbers[i], 0, &loan);
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_loan_index_find(&world->index, 0, id[i], 1),
				 numbers[i]);
	rbx_loan_index_remove(&world->index, 1u << 24);
	assert_int_equal(rbx_loan_index_find(&world->index, 0, id[2], 1),
			 RBX_REPLICA_NONE);
	assert_int_equal(rbx_loan_index_find(&world->index, 0, id[3], 1),
			 slabs * SLOTS - 1);
	world_free(world);
}

/* Few values, so that much is shared. */
static struct rbx_loan loan_at_random(struct rbx_random *random)
{
	return (struct rbx_loan){
		.slab_id = rbx_random_below(random, 20),
		.epoch = rbx_random_below(random, 3),
		.remote_addr = rbx_random_below(random, 10) * SLAB_BYTES / 2,
		.rkey = rbx_random_below(random, 5),
	};
}

static uint32_t twins_by_search(struct world *world, uint32_t server,
				const struct rbx_loan *loan)
{
	uint32_t number, count = 0;

	for (number = 0; number < NUMBERS; number++) {
		const struct rbx_replica *replica = replica_of(world, number);
		int64_t apart = (int64_t)rbx_replica_addr(replica) -
				(int64_t)loan->remote_addr;
		bool overlaps = replica->rkey == loan->rkey &&
				llabs(apart) < (int64_t)SLAB_BYTES;

		count += world->is_in[number] && replica->server == server &&
			 (overlaps || replica->slab_id == loan->slab_id);
	}
	return count;
}

static void index_at_random_is_as_a_search_of_all(void **state)
{
	struct world *world = world_make();
	struct rbx_random random;
	uint32_t i;

	(void)state;
	rbx_random_seed(&random, 11);
	for (i = 0; i < 20000; i++) {
		struct rbx_loan loan = loan_at_random(&random);
		uint32_t number = rbx_random_below(&random, NUMBERS);
		uint32_t server = rbx_random_below(&random, 3);
		uint32_t told;

		assert_int_equal(twins_of(world, server, &loan, &told),
				 twins_by_search(world, server, &loan));
		if (world->is_in[number]) {
			rbx_loan_index_remove(&world->index, number);
			world->is_in[number] = false;
		} else {
			add(world, number, server, &loan);
			assert_int_not_equal(
				rbx_loan_index_find(&world->index, server,
						    loan.slab_id, loan.epoch),
				RBX_REPLICA_NONE);
		}
	}
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loan_is_found_by_all_of_its_name),
		cmocka_unit_test(twin_shares_an_id_or_memory_under_a_key),
		cmocka_unit_test(loans_of_many_slabs_are_found),
		cmocka_unit_test(index_at_random_is_as_a_search_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
