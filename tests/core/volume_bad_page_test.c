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

/* Damages these pages, a bit for each, at one replica; and mends them: twice is as never. */
static void pages_flip(struct world *world, uint32_t slot, uint32_t pages)
{
	uint8_t *memory = world_replica(world, rbx_slab_at(&world->map->shape, 0), slot);

	for (; pages; pages &= pages - 1)
		memory[(uint32_t)__builtin_ctz(pages) * RBX_PAGE_BYTES + 9] ^= 0xff;
}

/* No replica has all pages of a piece, and each page is at some replica. */
static void volume_pages_bad_at_different_replicas_are_read(void **state)
{
	static const uint32_t bad[][3] = {
		{ 1, 2, 15 }, { 2, 1, 3 }, { 5, 10, 15 }, { 10, 5, 5 }, { 11, 4, 8 }, { 7, 14, 0 },
	};
	uint32_t i, slot;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct world world;

		world_open(&world, &(struct world_options){ .slabs = 1,
							    .replicas = 3,
							    .servers = 3,
							    .checksums = true,
							    .cell_bytes = 4 * RBX_PAGE_BYTES });
		world_submit(&world, RBX_PIECE_WRITE, 0, 4 * RBX_PAGE_BYTES);
		world_settle(&world);
		for (slot = 0; slot < 3; slot++)
			pages_flip(&world, slot, bad[i][slot]);
		world_submit(&world, RBX_PIECE_READ, 0, 4 * RBX_PAGE_BYTES);
		world_settle(&world);
		assert_int_equal(world.failed_count, bad[i][0] & bad[i][1] & bad[i][2] ? 1 : 0);
		world_close(&world);
	}
}

/* The new replica gets each page from one that has it. */
static void volume_pages_bad_at_different_replicas_are_copied(void **state)
{
	uint8_t page[2 * RBX_PAGE_BYTES];
	struct world world;
	struct rbx_slab *slab;
	uint32_t slot;

	(void)state;
	world_open(&world, &(struct world_options){ .slabs = 1,
						    .replicas = 3,
						    .servers = 4,
						    .checksums = true });
	slab = rbx_slab_at(&world.map->shape, 0);
	world_submit(&world, RBX_PIECE_WRITE, 0, sizeof(page));
	world_settle(&world);
	memcpy(page, world_replica(&world, slab, 0), sizeof(page));
	pages_flip(&world, 0, 1);
	pages_flip(&world, 2, 2);
	world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 1)));
	world_settle(&world);
	assert_int_equal(world.rebuilt_count, 1);
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (slab->read_mask & 1u << slot && slot != 0 && slot != 2)
			assert_memory_equal(world_replica(&world, slab, slot), page, sizeof(page));
	pages_flip(&world, 0, 1);
	pages_flip(&world, 2, 2);
	world_judge(&world);
	world_close(&world);
}

/* What is copied to has the page, because it was written since. */
static void volume_bad_page_is_not_copied_over_a_good_one(void **state)
{
	struct world world;
	struct rbx_slab *slab;

	(void)state;
	world_open(&world, &(struct world_options){ .slabs = 1,
						    .replicas = 2,
						    .servers = 3,
						    .checksums = true });
	slab = rbx_slab_at(&world.map->shape, 0);
	world_server_down(&world, rbx_replica_server(rbx_slab_replica(slab, 1)));
	while (!rbx_slab_targets(slab))
		assert_true(world_tend(&world, 0));
	world_submit(&world, RBX_PIECE_WRITE, 0, RBX_PAGE_BYTES);
	while (world_step(&world))
		;
	assert_int_equal(slab->read_mask, 1);
	pages_flip(&world, 0, 1);
	world_settle(&world);
	assert_int_equal(world.rebuilt_count, 1);
	world_judge(&world); /* the bad one, too, is as it should be */
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			volume_bad_page_of_one_replica_is_read_from_the_other),
		cmocka_unit_test(volume_bad_page_of_all_replicas_fails),
		cmocka_unit_test(volume_bad_page_is_not_copied_by_a_rebuild),
		cmocka_unit_test(volume_pages_bad_at_different_replicas_are_read),
		cmocka_unit_test(volume_pages_bad_at_different_replicas_are_copied),
		cmocka_unit_test(volume_bad_page_is_not_copied_over_a_good_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
