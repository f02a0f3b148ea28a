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

static uint64_t seeds_count = 400;

/* So many random things, then rest, then judgement. */
static void live(struct world *world, uint32_t steps, uint32_t evict_permille)
{
	uint32_t i;

	for (i = 0; i < steps; i++) {
		uint32_t dice = rbx_random_below(&world->random, 1000);
		uint32_t slab = rbx_random_below(&world->random,
						 world->map->slab_count);

		if (dice < 350)
			world_submit_random(world);
		else if (dice < 900)
			world_step(world);
		else
			world_tend(world, slab);
		if (rbx_random_below(&world->random, 1000) < evict_permille)
			world_evict(world, slab,
				    rbx_random_below(&world->random,
						     world->map->shape.slots));
	}
}

static uint32_t whole_count(const struct world *world)
{
	uint32_t i, n = 0;

	for (i = 0; i < world->map->slab_count; i++)
		n += rbx_slab_health(rbx_slab_at(&world->map->shape, i)) == RBX_SLAB_WHOLE;
	return n;
}

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
		live(&world, 600, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world.mismatch_count, 0);
		assert_true(world.ended_count > 100);
		world_close(&world);
	}
}

static void volume_server_dies_nothing_is_lost_and_all_is_rebuilt(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		uint32_t replicas = 2 + (uint32_t)seed % 2;
		struct world world;

		world_open(&world, &(struct world_options){
					   .seed = seed,
					   .slabs = 3,
					   .replicas = replicas,
					   .servers = replicas + 2,
					   .checksums = seed / 2 % 2,
				   });
		live(&world, 200, 0);
		world_server_down(&world, (uint32_t)seed % world.server_count);
		live(&world, 400, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(whole_count(&world), 3);
		/* And once more: what was rebuilt must stand alone. */
		world_server_down(&world,
				  (uint32_t)(seed + 1) % world.server_count);
		live(&world, 100, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
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
		live(&world, 900, 4);
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
		live(&world, 900, seed / 6 % 2 ? 3 : 0);
		world.fail_local_permille = 0;
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world.mismatch_count, 0);
		assert_int_equal(whole_count(&world), 2);
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
		live(&world, 900, 10);
		world_settle(&world);
		world_judge(&world);
		rebuilt_count += world.rebuilt_count;
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(whole_count(&world), 2);
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
			live(&world, 15, 5);
			world_discard(&world,
				      rbx_random_below(&world.random, 3));
		}
		live(&world, 100, 0);
		world_settle(&world);
		world_judge(&world);
		for (i = 0; i < 3; i++)
			blank_count += rbx_slab_at(&world.map->shape, i)->blank;
		assert_int_equal(whole_count(&world) * replicas,
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
		live(&world, (uint32_t)seed % 100, 0);
		world_server_down(&world, (uint32_t)seed % 4);
		world_discard(&world, (uint32_t)seed % 3);
		live(&world, 300, 0);
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
	live(&world, 100, 0);
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
			live(&world, 200, 0);
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
		live(&world, 400, 0);
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

static void volume_added_server_takes_missing_replicas(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, &(struct world_options){
				   .slabs = 3, .replicas = 2, .servers = 2 });
	live(&world, 200, 0);
	world_server_down(&world, 0);
	world_settle(&world);
	assert_int_equal(whole_count(&world), 0);
	world_server_add(&world);
	live(&world, 200, 0);
	world_settle(&world);
	assert_int_equal(whole_count(&world), 3);
	world_judge(&world);
	world_close(&world);
}

static void volume_source_dies_in_rebuild_other_source_goes_on(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;
		struct rbx_slab *slab;

		world_open(&world,
			   &(struct world_options){ .seed = seed,
						    .slabs = 1,
						    .replicas = 3,
						    .servers = 5 });
		slab = rbx_slab_at(&world.map->shape, 0);
		live(&world, 100, 0);
		world_server_down(&world, slab->replicas[0].server);
		while (rbx_slab_health(slab) != RBX_SLAB_REBUILDING) {
			world_step(&world);
			world_tend(&world, 0);
		}
		world_tend(&world, 0);
		live(&world, (uint32_t)seed % 20, 0);
		world_server_down(&world, slab->replicas[1].server);
		live(&world, 200, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(whole_count(&world), 1);
		world_close(&world);
	}
}

static void volume_target_dies_in_rebuild_another_is_taken(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++) {
		struct world world;
		struct rbx_slab *slab;
		int target;

		world_open(&world,
			   &(struct world_options){ .seed = seed,
						    .slabs = 1,
						    .replicas = 2,
						    .servers = 5 });
		slab = rbx_slab_at(&world.map->shape, 0);
		live(&world, 100, 0);
		world_server_down(&world, slab->replicas[0].server);
		while (rbx_slab_health(slab) != RBX_SLAB_REBUILDING) {
			world_step(&world);
			world_tend(&world, 0);
		}
		world_tend(&world, 0);
		live(&world, (uint32_t)seed % 20, 0);
		target = __builtin_ctz(rbx_slab_targets(slab));
		if (target >= 0)
			world_server_down(&world,
					  slab->replicas[target].server);
		live(&world, 200, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(whole_count(&world), 1);
		world_close(&world);
	}
}

static void volume_last_source_dies_in_rebuild_slab_is_dead(void **state)
{
	struct world world;
	struct rbx_slab *slab;

	(void)state;
	world_open(&world, &(struct world_options){
				   .slabs = 1, .replicas = 2, .servers = 3 });
	slab = rbx_slab_at(&world.map->shape, 0);
	world_server_down(&world, slab->replicas[0].server);
	while (rbx_slab_health(slab) != RBX_SLAB_REBUILDING)
		world_tend(&world, 0);
	world_tend(&world, 0);
	world_server_down(&world, slab->replicas[1].server);
	world_settle(&world);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_DEAD);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_NONE);
	world_close(&world);
}

static void volume_bad_page_of_one_replica_is_read_from_the_other(void **state)
{
	uint32_t slot;

	(void)state;
	for (slot = 0; slot < 2; slot++) {
		struct world world;

		world_open(&world,
			   &(struct world_options){ .slabs = 1,
						    .replicas = 2,
						    .servers = 2,
						    .checksums = true });
		world_submit(&world, RBX_PIECE_WRITE, 4096, 4096);
		world_settle(&world);
		world_replica(&world, rbx_slab_at(&world.map->shape, 0), slot)[5000] ^= 1;
		world_submit(&world, RBX_PIECE_READ, 4096, 4096);
		world_settle(&world);
		assert_int_equal(world.ended_count, 2);
		assert_int_equal(world.failed_count, 0);
		world_close(&world);
	}
}

static void volume_bad_page_of_all_replicas_fails(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, &(struct world_options){ .slabs = 1,
						    .replicas = 2,
						    .servers = 2,
						    .checksums = true });
	/* Never written, so zeros were to be there. */
	world_replica(&world, rbx_slab_at(&world.map->shape, 0), 0)[0] = 1;
	world_replica(&world, rbx_slab_at(&world.map->shape, 0), 1)[1] = 1;
	world_submit(&world, RBX_PIECE_READ, 0, 8192);
	world_settle(&world);
	assert_int_equal(world.failed_count, 1);
	assert_int_equal(world.mismatch_count, 2);
	world_close(&world);
}

static void volume_bad_page_is_not_copied_by_a_rebuild(void **state)
{
	struct world world;
	struct rbx_slab *slab;
	uint8_t *memory;

	(void)state;
	world_open(&world, &(struct world_options){ .slabs = 1,
						    .replicas = 3,
						    .servers = 4,
						    .checksums = true });
	slab = rbx_slab_at(&world.map->shape, 0);
	world_submit(&world, RBX_PIECE_WRITE, 0, 4096);
	world_settle(&world);
	/* The first choice of a rebuild. */
	memory = world_replica(&world, slab, 0);
	memory[7] ^= 0xff;
	world_server_down(&world, slab->replicas[1].server);
	world_settle(&world);
	assert_int_equal(whole_count(&world), 1);
	memory[7] ^= 0xff;
	world_judge(&world);
	world_close(&world);
}

static void volume_shape_impossible_is_refused(void **state)
{
	static const struct rbx_volume_shape good = {
		.size_bytes = 1 << 20,
		.slab_bytes = 1 << 16,
		.fragment_bytes = 1 << 17,
		.replicas = 1,
	};
	struct rbx_volume_shape bad = good;

	(void)state;
	assert_int_equal(rbx_volume_shape_check(&good), 0);
	bad.size_bytes = 0;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	bad.size_bytes = 4097;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	bad.size_bytes = ((uint64_t)RBX_SLABS_MAX << 16) + 4096;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	bad = good;
	bad.slab_bytes = 3 << 15;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	bad = good;
	bad.slab_bytes = 1ull << 31;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	bad = good;
	bad.replicas = RBX_REPLICAS_MAX + 1;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	bad = good;
	bad.fragment_bytes = 2048;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
}

static void volume_fragment_longer_than_slab_cells_are_slabs(void **state)
{
	struct rbx_volume_shape shape = {
		.size_bytes = 3 << 16,
		.slab_bytes = 1 << 16,
		.fragment_bytes = RBX_FRAGMENT_BYTES_MAX,
		.replicas = 1,
	};
	struct rbx_volume_map *map = rbx_volume_map_init(
		calloc(1, rbx_volume_map_size(&shape)), &shape, 1);
	struct rbx_piece *piece = calloc(1, rbx_piece_size(2, 0));

	(void)state;
	assert_int_equal(rbx_volume_map_pieces(map, 65535, 2), 2);
	assert_int_equal(rbx_volume_map_pieces(map, 0, 3 << 16), 3);
	assert_int_equal(rbx_volume_map_aim(map, piece, 65535, 2), 1);
	assert_int_equal(piece->offset_bytes, 65535);
	assert_ptr_equal(rbx_volume_map_slab(map, 65536), rbx_slab_at(&map->shape, 1));
	free(piece);
	free(map);
}

/* What each slab of a volume costs its client, when all of them are written: the
 * slab, its place in the index of loans, and among those that want attention. */
static void volume_of_a_pebibyte_costs_a_bounded_number_of_bytes_a_slab(void **state)
{
	struct rbx_volume_shape shape = {
		.size_bytes = 1ull << 50,
		.slab_bytes = 64u << 20,
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.replicas = 2,
	};
	const size_t slabs = shape.size_bytes / shape.slab_bytes;
	size_t bytes;

	(void)state;
	assert_int_equal(slabs, RBX_SLABS_MAX);
	assert_int_equal(rbx_volume_shape_check(&shape), 0);
	bytes = rbx_volume_map_size(&shape) / slabs;
	assert_true(bytes <= 160);
	/* Shorter fragments cost nothing. */
	shape.fragment_bytes = RBX_FRAGMENT_BYTES_MIN;
	assert_int_equal(rbx_volume_map_size(&shape) / slabs, bytes);
	shape.size_bytes += shape.slab_bytes;
	assert_int_equal(rbx_volume_shape_check(&shape), -EINVAL);
}

/* Each slab is where it ought to be, to the last one. */
static void volume_of_a_mebi_of_slabs_opens(void **state)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = 64ull << 40,
		.slab_bytes = 64u << 20,
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.replicas = 2,
		.on_demand = true,
	};
	struct rbx_volume_map *map = rbx_volume_map_init(
		calloc(1, rbx_volume_map_size(&shape)), &shape, 1);
	struct rbx_slab *last = rbx_volume_map_slab(map, shape.size_bytes - 1);

	(void)state;
	assert_int_equal(map->slab_count, 1u << 20);
	assert_int_equal(last->index, map->slab_count - 1);
	assert_int_equal(rbx_attention_count(&map->attention, RBX_SLAB_BLANK),
			 map->slab_count);
	free(map);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_random_requests_read_what_was_written),
		cmocka_unit_test(
			volume_server_dies_nothing_is_lost_and_all_is_rebuilt),
		cmocka_unit_test(
			volume_parts_fail_acknowledged_writes_are_kept),
		cmocka_unit_test(volume_faults_here_cost_no_replica),
		cmocka_unit_test(
			volume_evicted_slabs_move_while_requests_go_on),
		cmocka_unit_test(volume_on_demand_discards_read_as_zeros),
		cmocka_unit_test(volume_on_demand_server_dies_nothing_is_lost),
		cmocka_unit_test(volume_all_replicas_lost_nobody_lends_all_fails),
		cmocka_unit_test(
			volume_lost_slabs_are_placed_anew_and_read_what_is_written),
		cmocka_unit_test(volume_added_server_takes_missing_replicas),
		cmocka_unit_test(
			volume_source_dies_in_rebuild_other_source_goes_on),
		cmocka_unit_test(
			volume_target_dies_in_rebuild_another_is_taken),
		cmocka_unit_test(
			volume_last_source_dies_in_rebuild_slab_is_dead),
		cmocka_unit_test(
			volume_bad_page_of_one_replica_is_read_from_the_other),
		cmocka_unit_test(volume_bad_page_of_all_replicas_fails),
		cmocka_unit_test(volume_bad_page_is_not_copied_by_a_rebuild),
		cmocka_unit_test(volume_shape_impossible_is_refused),
		cmocka_unit_test(
			volume_of_a_pebibyte_costs_a_bounded_number_of_bytes_a_slab),
		cmocka_unit_test(volume_of_a_mebi_of_slabs_opens),
		cmocka_unit_test(
			volume_fragment_longer_than_slab_cells_are_slabs),
	};

	if (argc > 1)
		seeds_count = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
