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
#include "core/packed.h"
#include "core/random.h"
#include "core/slab_spare.h"

#define SLABS 37u
#define REPLICAS 3u
#define SHIFT 16u
#define SLAB_BYTES (1ull << SHIFT)

struct world {
	struct rbx_slab_shape shape;
	struct rbx_slab_records records;
	void *slabs; /* their table */
	struct rbx_loan_index index;
	uint32_t numbers;
	bool *is_in;
};

static struct world *world_make_of(uint32_t slabs)
{
	const uint32_t slab_size = rbx_slab_size(REPLICAS);
	struct world *world = calloc(1, sizeof(*world));

	world->numbers = rbx_replica_numbers(slabs, REPLICAS);
	world->is_in = calloc(world->numbers, sizeof(*world->is_in));
	world->shape.slab_shift = SHIFT;
	world->shape.replicas = REPLICAS;
	world->shape.records = &world->records;
	world->slabs = calloc(1, rbx_slab_table_size(slabs, slab_size));
	rbx_slab_table_init(&world->shape.table, world->slabs, slabs, slab_size);
	rbx_slab_table_extend(&world->shape.table, 0, slabs, &world->shape);
	rbx_loan_index_init(&world->index,
			    calloc(1, rbx_loan_index_size(world->numbers)),
			    world->numbers, &world->shape);
	return world;
}

static struct world *world_make(void)
{
	return world_make_of(SLABS);
}

static void world_free(struct world *world)
{
	free(world->index.links.words);
	free(world->slabs);
	free(world->is_in);
	free(world);
}

static struct rbx_replica *replica_of(struct world *world, uint32_t number)
{
	return rbx_replica_numbered(&world->shape, number);
}

static void add(struct world *world, uint32_t number, uint32_t server,
		const struct rbx_loan *loan)
{
	rbx_replica_set_server(replica_of(world, number), server);
	rbx_replica_set_loan(replica_of(world, number), loan);
	rbx_loan_index_add(&world->index, number);
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
	add(world, 300, 2, &loan);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 9, 4),
			 rbx_replica_slab(&world->shape, 300));
	assert_int_equal(rbx_loan_index_find(&world->index, 1, 9, 4),
			 RBX_SLAB_NONE);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 8, 4),
			 RBX_SLAB_NONE);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 9, 5),
			 RBX_SLAB_NONE);
	rbx_loan_index_remove(&world->index, 300);
	assert_int_equal(rbx_loan_index_find(&world->index, 2, 9, 4),
			 RBX_SLAB_NONE);
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
	const uint32_t slabs = (1u << 24) / REPLICAS + 7;
	struct world *world = world_make_of(slabs);
	uint32_t i, numbers[] = { 0, (1u << 24) - 1, 1u << 24,
				  RBX_SLAB_RECORDS + slabs * REPLICAS - 1 };
	uint64_t id[] = { 3, 4, 5, 6 };

	(void)state;
	for (i = 0; i < 4; i++) {
		const struct rbx_loan loan = { id[i], 1, 0, (uint32_t)id[i] };

		add(world, numbers[i], 0, &loan);
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_loan_index_find(&world->index, 0, id[i], 1),
				 rbx_replica_slab(&world->shape, numbers[i]));
	rbx_loan_index_remove(&world->index, 1u << 24);
	assert_int_equal(rbx_loan_index_find(&world->index, 0, id[2], 1),
			 RBX_SLAB_NONE);
	assert_int_equal(rbx_loan_index_find(&world->index, 0, id[3], 1),
			 slabs - 1);
	world_free(world);
}

/* Few values, so that much is shared. */
static struct rbx_loan loan_at_random(struct rbx_random *random)
{
	return (struct rbx_loan){
		.slab_id = rbx_random_below(random, 20),
		.epoch = rbx_random_below(random, 3),
		.remote_addr = rbx_random_below(random, 40) * SLAB_BYTES / 2,
		.rkey = rbx_random_below(random, 5),
	};
}

static bool is_twin(const struct rbx_replica *replica, const struct rbx_loan *loan)
{
	int64_t apart = (int64_t)rbx_replica_addr(replica) -
			(int64_t)loan->remote_addr;

	return replica->slab_id == loan->slab_id ||
	       (replica->rkey == loan->rkey && llabs(apart) < (int64_t)SLAB_BYTES);
}

static uint32_t twins_by_search(struct world *world, uint32_t server,
				const struct rbx_loan *loan)
{
	uint32_t number, count = 0;

	for (number = 0; number < world->numbers; number++) {
		const struct rbx_replica *replica = replica_of(world, number);

		count += world->is_in[number] && rbx_replica_server(replica) == server &&
			 is_twin(replica, loan);
	}
	return count;
}

/* A slab is found that has a replica with that loan, or none if no replica has it. */
static void find_is_as_a_search(struct world *world, uint32_t server,
				const struct rbx_loan *loan)
{
	uint32_t found = rbx_loan_index_find(&world->index, server,
					     loan->slab_id, loan->epoch);
	bool is_there = false, is_right = false;
	uint32_t number;

	for (number = 0; number < world->numbers; number++) {
		if (!world->is_in[number] ||
		    !rbx_replica_is(replica_of(world, number), server,
				    loan->slab_id, loan->epoch))
			continue;
		is_there = true;
		is_right |= rbx_replica_slab(&world->shape, number) == found;
	}
	assert_true(is_there ? is_right : found == RBX_SLAB_NONE);
}

static void step_at_random(struct world *world, struct rbx_random *random)
{
	struct rbx_loan loan = loan_at_random(random);
	uint32_t number = rbx_random_below(random, world->numbers);
	uint32_t server = rbx_random_below(random, 3);
	uint32_t told;

	assert_int_equal(twins_of(world, server, &loan, &told),
			 twins_by_search(world, server, &loan));
	find_is_as_a_search(world, server, &loan);
	if (world->is_in[number]) {
		rbx_loan_index_remove(&world->index, number);
		world->is_in[number] = false;
	} else {
		add(world, number, server, &loan);
	}
}

static void index_at_random_is_as_a_search_of_all(void **state)
{
	static const uint32_t slabs[] = { 1, SLABS, 63, 64, 65, 4096, 4097 };
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 11);
	for (uint32_t i = 0; i < sizeof(slabs) / sizeof(*slabs); i++) {
		struct world *world = world_make_of(slabs[i]);
		/* Of many slabs fewer steps: a search looks at each. */
		uint32_t steps = slabs[i] > 100 ? 500 : 5000;

		while (steps--)
			step_at_random(world, &random);
		world_free(world);
	}
}

/* Servers count their slabs from 1 and so, perhaps, their keys. */
static struct rbx_loan loan_of_a_server(uint32_t nth)
{
	return (struct rbx_loan){ nth + 1, 1, nth * SLAB_BYTES, nth + 1 };
}

static uint32_t longest(const struct world *world, size_t buckets, size_t next)
{
	const struct rbx_packed *links = &world->index.links;
	uint32_t most = 0;

	for (uint32_t i = 0; i < world->index.buckets; i++) {
		uint32_t link = rbx_packed_get(links, buckets + i);
		uint32_t length = 0;

		for (; link; length++)
			link = rbx_packed_get(links, next + link - 1);
		most = RBX_MAX(most, length);
	}
	return most;
}

static void chains_of_a_full_index_are_about_alike(void **state)
{
	static const uint32_t servers[] = { 1, 7, 64 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct world *world = world_make_of(20000);
		const struct rbx_loan_index *index = &world->index;

		for (uint32_t n = 0; n < world->numbers; n++) {
			struct rbx_loan loan = loan_of_a_server(n / servers[i]);

			add(world, n, n % servers[i], &loan);
		}
		assert_in_range(longest(world, 0, index->next_by_id),
				RBX_LOAN_CHAIN_LENGTH,
				3 * RBX_LOAN_CHAIN_LENGTH);
		assert_in_range(longest(world, index->by_place,
					index->next_by_place),
				RBX_LOAN_CHAIN_LENGTH,
				3 * RBX_LOAN_CHAIN_LENGTH);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loan_is_found_by_all_of_its_name),
		cmocka_unit_test(twin_shares_an_id_or_memory_under_a_key),
		cmocka_unit_test(loans_of_many_slabs_are_found),
		cmocka_unit_test(index_at_random_is_as_a_search_of_all),
		cmocka_unit_test(chains_of_a_full_index_are_about_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
