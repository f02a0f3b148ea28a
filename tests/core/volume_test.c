/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_test.c - a volume in a world of faults: nothing acknowledged is lost,
 * replicas never diverge, everything ends once.
 *
 * Each property runs over many seeds; a failure prints its seed by the test's
 * message, and the seed repeats it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/volume_world.h"

static void volume_random_requests_read_what_was_written(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;

		world_open(&world,
			   &(struct world_options){
				   .seed = seed,
				   .slabs = 2,
				   .replicas = 1 + (uint32_t)seed % 3,
				   .servers = 3,
				   .checksums = seed / 3 % 2,
			   });
		world_live(&world, 600, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world.mismatch_count, 0);
		assert_true(world.ended_count > 100);
		world_close(&world);
	}
}

static void volume_parts_fail_acknowledged_writes_are_kept(void **state)
{
	uint64_t seed, rebuilt_count = 0, failed_count = 0;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;

		world_open(&world,
			   &(struct world_options){
				   .seed = seed,
				   .slabs = 2,
				   .replicas = 1 + (uint32_t)seed % 3,
				   .servers = 5,
				   /* Writes of unknown outcome do not agree
				    * with checksums. */
			   });
		world.fail_remote_permille = 8;
		world.fail_local_permille = 8;
		world_live(&world, 900, 4);
		world.fail_remote_permille = 0;
		world.fail_local_permille = 0;
		world_settle(&world);
		world_judge(&world);
		rebuilt_count += world.rebuilt_count;
		failed_count += world.failed_count;
		world_close(&world);
	}
	/* The seeds reach both ends. */
	assert_true(rebuilt_count > 0);
	assert_true(failed_count > 0);
}

static uint32_t lends_count(const struct world *world)
{
	uint32_t i, n = 0;

	for (i = 0; i < world->server_count; i++)
		n += world->servers[i].lends_count;
	return n;
}

/* Bad memory and devices of this machine, which find out before, in the middle or
 * at the end of a write: no replica is lost, none diverges, and what was there can be
 * read. With checksums a page may be torn on all replicas; that is for those
 * who find out before. */
static void volume_faults_here_cost_no_replica(void **state)
{
	uint64_t seed, failed_count = 0, copied_count = 0;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		uint32_t replicas = 1 + (uint32_t)seed % 3;
		bool checksums = seed / 3 % 2;
		struct world world;

		world_open(&world, &(struct world_options){
					   .seed = seed,
					   .slabs = 2,
					   .replicas = replicas,
					   .servers = 5,
					   .checksums = checksums,
				   });
		world.fail_local_permille = 30;
		world.fails_before_it_sends = checksums;
		/* A rebuild or move of a slab may be under way. */
		world_live(&world, 900, seed / 6 % 2 ? 3 : 0);
		world.fail_local_permille = 0;
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world.mismatch_count, 0);
		assert_int_equal(world_whole_count(&world), 2);
		if (seed / 6 % 2 == 0)
			assert_int_equal(lends_count(&world), 2 * replicas);
		failed_count += world.failed_local_count;
		copied_count += world.rebuilt_count;
		world_close(&world);
	}
	assert_true(failed_count > seeds_count && copied_count > 0);
}

static void volume_evicted_slabs_move_while_requests_go_on(void **state)
{
	uint64_t seed, rebuilt_count = 0;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;

		world_open(&world,
			   &(struct world_options){
				   .seed = seed,
				   .slabs = 2,
				   .replicas = 1 + (uint32_t)seed % 3,
				   .servers = 5,
				   .checksums = seed / 3 % 2,
			   });
		world_live(&world, 900, 10);
		world_settle(&world);
		world_judge(&world);
		rebuilt_count += world.rebuilt_count;
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world_whole_count(&world), 2);
		world_close(&world);
	}
	assert_true(rebuilt_count > seeds_count);
}

static uint32_t lent_count(const struct world *world)
{
	uint32_t i, area, n = 0;

	for (i = 0; i < world->server_count; i++)
		for (area = 0; area < WORLD_AREAS; area++)
			n += world->servers[i].keys[area] != 0;
	return n;
}

static void volume_on_demand_discards_read_as_zeros(void **state)
{
	uint64_t seed, rebuilt_count = 0, blank_count = 0;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		uint32_t replicas = 1 + (uint32_t)seed % 3, i;
		struct world world;

		world_open(&world, &(struct world_options){
					   .seed = seed,
					   .slabs = 3,
					   .replicas = replicas,
					   .servers = 5,
					   .checksums = seed / 3 % 2,
					   .on_demand = true,
				   });
		assert_int_equal(lent_count(&world), 0);
		for (i = 0; i < 60; i++) {
			world_live(&world, 15, 5);
			world_discard(&world,
				      rbx_random_below(&world.random, 3));
		}
		world_live(&world, 100, 0);
		world_settle(&world);
		world_judge(&world);
		for (i = 0; i < 3; i++)
			blank_count += rbx_slab_at(&world.map->shape, i)->blank;
		assert_int_equal(world_whole_count(&world) * replicas,
				 lent_count(&world));
		assert_int_equal(world.failed_count, 0);
		rebuilt_count += world.rebuilt_count;
		world_close(&world);
	}
	assert_true(rebuilt_count > 0 && blank_count > 0);
}

static void volume_on_demand_server_dies_nothing_is_lost(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;

		world_open(&world, &(struct world_options){
					   .seed = seed,
					   .slabs = 3,
					   .replicas = 2,
					   .servers = 4,
					   .checksums = seed % 2,
					   .on_demand = true,
				   });
		world_live(&world, (uint32_t)seed % 100, 0);
		world_server_down(&world, (uint32_t)seed % 4);
		world_discard(&world, (uint32_t)seed % 3);
		world_live(&world, 300, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		world_close(&world);
	}
}

static void volume_all_replicas_lost_nobody_lends_all_fails(void **state)
{
	struct world world;
	uint64_t ended_count;

	(void)state;
	world_open(&world, &(struct world_options){
				   .slabs = 1, .replicas = 2, .servers = 2 });
	world_live(&world, 100, 0);
	world_server_down(&world, 0);
	world_server_down(&world, 1);
	while (world_step(&world))
		;
	ended_count = world.ended_count;
	world.failed_count = 0;
	assert_true(world_submit(&world, RBX_PIECE_READ, 0, 4096));
	assert_int_equal(world.ended_count, ended_count + 1);
	assert_true(world_submit(&world, RBX_PIECE_WRITE, 0, 4096));
	world_settle(&world);
	assert_int_equal(world.ended_count, ended_count + 2);
	assert_int_equal(world.failed_count, 2);
	world_close(&world);
}

/* Servers die until slabs have lost all, others come, and so on: what was lost is an
 * error until it is written again, on each path, and never zeros. */
static void volume_lost_slabs_are_placed_anew_and_read_what_is_written(void **state)
{
	uint64_t seed, revived_count = 0, failed_count = 0, rebuilt_count = 0;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;
		uint32_t i;

		world_open(&world, &(struct world_options){
					   .seed = seed,
					   .slabs = 2,
					   .replicas = 1 + (uint32_t)seed % 2,
					   .servers = 3,
					   .checksums = seed / 2 % 2,
					   .on_demand = seed / 4 % 2,
				   });
		for (i = 0; i < 4; i++) {
			world_live(&world, 200, 0);
			world_server_down(&world, i);
			if (i == 1) /* before it can be rebuilt */
				world_server_down(&world, ++i);
			if (world.server_count < WORLD_SERVERS_MAX)
				world_server_add(&world);
			if (seed / 4 % 2 && seed / 8 % 2)
				world_discard(&world, 1);
			if (seed % 3 == 0)
				world_settle(&world);
		}
		world_live(&world, 400, 0);
		world_settle(&world);
		world_judge(&world);
		revived_count += world.revived_count;
		failed_count += world.failed_count;
		rebuilt_count += world.rebuilt_count;
		world_close(&world);
	}
	assert_true(revived_count > seeds_count / 2);
	assert_true(failed_count > 0 && rebuilt_count > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_random_requests_read_what_was_written),
		cmocka_unit_test(
			volume_parts_fail_acknowledged_writes_are_kept),
		cmocka_unit_test(volume_faults_here_cost_no_replica),
		cmocka_unit_test(
			volume_evicted_slabs_move_while_requests_go_on),
		cmocka_unit_test(volume_on_demand_discards_read_as_zeros),
		cmocka_unit_test(volume_on_demand_server_dies_nothing_is_lost),
		cmocka_unit_test(
			volume_all_replicas_lost_nobody_lends_all_fails),
		cmocka_unit_test(
			volume_lost_slabs_are_placed_anew_and_read_what_is_written),
	};

	if (argc > 1)
		seeds_count = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
