/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_rebuild_test.c - if a server of a volume dies, what it held is rebuilt on
 * others, even if the source or the target of the rebuild dies too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/volume_world.h"

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
		world_live(&world, 200, 0);
		world_server_down(&world, (uint32_t)seed % world.server_count);
		world_live(&world, 400, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world_whole_count(&world), 3);
		/* And once more: what was rebuilt must stand alone. */
		world_server_down(&world,
				  (uint32_t)(seed + 1) % world.server_count);
		world_live(&world, 100, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		world_close(&world);
	}
}

static void volume_added_server_takes_missing_replicas(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, &(struct world_options){
				   .slabs = 3, .replicas = 2, .servers = 2 });
	world_live(&world, 200, 0);
	world_server_down(&world, 0);
	world_settle(&world);
	assert_int_equal(world_whole_count(&world), 0);
	world_server_add(&world);
	world_live(&world, 200, 0);
	world_settle(&world);
	assert_int_equal(world_whole_count(&world), 3);
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
		world_live(&world, 100, 0);
		world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 0)));
		while (rbx_slab_health(slab) != RBX_SLAB_REBUILDING) {
			world_step(&world);
			world_tend(&world, 0);
		}
		world_tend(&world, 0);
		world_live(&world, (uint32_t)seed % 20, 0);
		world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 1)));
		world_live(&world, 200, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world_whole_count(&world), 1);
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
		world_live(&world, 100, 0);
		world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 0)));
		while (rbx_slab_health(slab) != RBX_SLAB_REBUILDING) {
			world_step(&world);
			world_tend(&world, 0);
		}
		world_tend(&world, 0);
		world_live(&world, (uint32_t)seed % 20, 0);
		target = __builtin_ctz(rbx_slab_targets(slab));
		if (target >= 0)
			world_server_down(&world,
					  rbx_replica_server(rbx_slab_replica(slab, target)));
		world_live(&world, 200, 0);
		world_settle(&world);
		world_judge(&world);
		assert_int_equal(world.failed_count, 0);
		assert_int_equal(world_whole_count(&world), 1);
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
	world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 0)));
	while (rbx_slab_health(slab) != RBX_SLAB_REBUILDING)
		world_tend(&world, 0);
	world_tend(&world, 0);
	world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 1)));
	world_settle(&world);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_DEAD);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_NONE);
	world_close(&world);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			volume_server_dies_nothing_is_lost_and_all_is_rebuilt),
		cmocka_unit_test(volume_added_server_takes_missing_replicas),
		cmocka_unit_test(
			volume_source_dies_in_rebuild_other_source_goes_on),
		cmocka_unit_test(
			volume_target_dies_in_rebuild_another_is_taken),
		cmocka_unit_test(
			volume_last_source_dies_in_rebuild_slab_is_dead),
	};

	if (argc > 1)
		seeds_count = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
