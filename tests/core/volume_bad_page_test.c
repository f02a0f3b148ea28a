/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_bad_page_test.c - a volume with checksums, if a page goes bad on a server: it
 * is neither read nor copied as if it were good.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/volume_world.h"

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
	world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 1)));
	world_settle(&world);
	assert_int_equal(world_whole_count(&world), 1);
	memory[7] ^= 0xff;
	world_judge(&world);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			volume_bad_page_of_one_replica_is_read_from_the_other),
		cmocka_unit_test(volume_bad_page_of_all_replicas_fails),
		cmocka_unit_test(volume_bad_page_is_not_copied_by_a_rebuild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
