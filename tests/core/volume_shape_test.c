/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_shape_test.c - which shapes a volume may have, and how it is cut into slabs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/extents.h"
#include "core/volume.h"

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

/* Bytes of the client that a slab with two replicas takes, and that a volume takes beside
 * that, however many it has. */
#define SLAB_BYTES_MAX 64u
#define VOLUME_BYTES_MAX (96u << 10)

static size_t map_bytes(uint64_t slabs, uint32_t fragment_bytes)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = slabs * (64u << 20),
		.slab_bytes = 64u << 20,
		.fragment_bytes = fragment_bytes,
		.replicas = 2,
	};

	assert_int_equal(rbx_volume_shape_check(&shape), 0);
	return rbx_volume_map_size(&shape);
}

/* What each slab of a volume costs its client, when all of them are written: the
 * slab, its place in the index of loans, and among those that want attention. To a
 * pebibyte, and between the powers of two, where tables are rounded up. */
static void volume_costs_a_bounded_number_of_bytes_a_slab(void **state)
{
	const size_t fixed = map_bytes(1, RBX_FRAGMENT_BYTES_DEFAULT);
	uint64_t slabs;

	(void)state;
	assert_true(fixed <= VOLUME_BYTES_MAX);
	for (slabs = 16u << 10; slabs <= RBX_SLABS_MAX; slabs += slabs / 4) {
		size_t bytes = map_bytes(slabs, RBX_FRAGMENT_BYTES_DEFAULT);

		assert_true(bytes - fixed <= slabs * SLAB_BYTES_MAX);
		/* Shorter fragments cost nothing. */
		assert_int_equal(map_bytes(slabs, RBX_FRAGMENT_BYTES_MIN), bytes);
	}
	assert_true(map_bytes(RBX_SLABS_MAX, RBX_FRAGMENT_BYTES_DEFAULT) - fixed <=
		    (size_t)RBX_SLABS_MAX * SLAB_BYTES_MAX);
}

static void volume_larger_than_a_pebibyte_is_refused(void **state)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = (1ull << 50) + (64u << 20),
		.slab_bytes = 64u << 20,
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.replicas = 2,
	};

	(void)state;
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
	assert_int_equal(rbx_slab_index(last), map->slab_count - 1);
	assert_int_equal(rbx_attention_count(&map->attention, RBX_SLAB_BLANK),
			 map->slab_count);
	free(map);
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

/* Its slabs are in several blocks, and it begins and ends within one. */
static void volume_grows_into_its_room(void **state)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = (100ull << 16) + RBX_PAGE_BYTES,
		.size_max_bytes = 500ull << 16,
		.slab_bytes = 1 << 16,
		.fragment_bytes = 1 << 16,
		.replicas = 2,
		.on_demand = true,
		.is_named = true,
	};
	struct rbx_volume_shape bad = shape;
	void *memory = calloc(1, rbx_volume_map_size(&shape));
	struct rbx_volume_map *map = rbx_volume_map_init(memory, &shape, 1);
	uint64_t size_bytes = shape.size_bytes;
	uint32_t i, count = 101;

	(void)state;
	bad.size_max_bytes = shape.size_bytes - RBX_PAGE_BYTES;
	assert_int_equal(rbx_volume_shape_check(&bad), -EINVAL);
	assert_int_equal(rbx_volume_map_grow(map, size_bytes), 0);
	for (; count <= 500; count++, size_bytes += 1 << 16) {
		assert_int_equal(rbx_volume_map_grow(map, size_bytes), 0);
		assert_int_equal(rbx_volume_map_slabs(map), count);
		assert_int_equal(rbx_attention_count(&map->attention, RBX_SLAB_BLANK), count);
	}
	for (i = 0; i < 500; i++) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		assert_int_equal(rbx_slab_index(slab), i);
		assert_ptr_equal(rbx_slab_shape(slab), &map->shape);
		assert_true(slab->blank);
	}
	assert_int_equal(rbx_volume_map_grow(map, 500ull << 16), 0);
	assert_int_equal(rbx_volume_map_grow(map, (500ull << 16) + RBX_PAGE_BYTES), -ENOSPC);
	assert_int_equal(rbx_volume_map_bytes(map), 500ull << 16);
	free(memory);
}

static uint32_t noted_most(uint64_t slab_bytes, uint64_t crash_copy_bytes)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = slab_bytes,
		.slab_bytes = slab_bytes,
		.fragment_bytes = 1 << 16,
		.replicas = 2,
		.crash_copy_bytes = crash_copy_bytes,
		.on_demand = true,
		.is_named = true,
	};
	void *memory = calloc(1, rbx_volume_map_size(&shape));
	struct rbx_volume_map *map = rbx_volume_map_init(memory, &shape, 1);
	uint32_t most = map->shape.groups[0].extents->set_max;

	free(memory);
	return most;
}

/* In 64ths of slabs: what an open after a crash may have to copy is not more. */
static void volume_notes_no_more_than_is_to_be_copied(void **state)
{
	(void)state;
	assert_int_equal(noted_most(1 << 16, 8 << 10), 8);
	assert_int_equal(noted_most(1 << 16, 1), 1);
	assert_int_equal(noted_most(1 << 16, UINT64_MAX), RBX_EXTENTS_MAX);
	assert_int_equal(noted_most(64 << 20, 32ull << 30), 32768);
	assert_int_equal(noted_most(1 << 16, 0), RBX_EXTENTS_PRESET);
	assert_int_equal(noted_most(64 << 20, 0), RBX_EXTENTS_PRESET);
	assert_int_equal(noted_most(1 << 30, 0), 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_shape_impossible_is_refused),
		cmocka_unit_test(volume_costs_a_bounded_number_of_bytes_a_slab),
		cmocka_unit_test(volume_larger_than_a_pebibyte_is_refused),
		cmocka_unit_test(volume_of_a_mebi_of_slabs_opens),
		cmocka_unit_test(volume_grows_into_its_room),
		cmocka_unit_test(volume_notes_no_more_than_is_to_be_copied),
		cmocka_unit_test(
			volume_fragment_longer_than_slab_cells_are_slabs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
