/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_judge.c - the judge of volume_world.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/volume_world.h"

uint32_t world_whole_count(const struct world *world)
{
	uint32_t i, n = 0;

	for (i = 0; i < world->map->slab_count; i++)
		n += rbx_slab_health(rbx_slab_at(&world->map->shape, i)) == RBX_SLAB_WHOLE;
	return n;
}

/* Of a slab that was lost, the pages that are good. */
static void judge_pages(struct world *world, const struct rbx_slab *slab,
			const uint8_t *memory)
{
	static uint64_t floors[RBX_PAGE_BYTES / HISTORY_UNIT_BYTES];
	uint64_t offset = (uint64_t)rbx_slab_index(slab) * WORLD_SLAB_BYTES;
	uint32_t at;

	for (at = 0; at < WORLD_SLAB_BYTES; at += RBX_PAGE_BYTES) {
		if (slab->has_holes &&
		    !rbx_lost_pages_may_read(rbx_slab_pages(slab), at,
					     RBX_PAGE_BYTES))
			continue;
		history_read_begin(&world->history, offset + at,
				   RBX_PAGE_BYTES, floors);
		assert_true(history_read_is_legal(&world->history, offset + at,
						  RBX_PAGE_BYTES, floors,
						  memory + at));
	}
}

void world_judge(struct world *world)
{
	uint32_t i, slot;

	for (i = 0; i < world->map->slab_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&world->map->shape, i);
		uint8_t *first;

		if (!slab->read_mask)
			continue;
		first = world_replica(world, slab, (uint32_t)__builtin_ctz(slab->read_mask));
		judge_pages(world, slab, first);
		for (slot = 0; slot < world->map->shape.slots; slot++)
			if (slab->read_mask >> slot & 1)
				assert_memory_equal(
					first,
					world_replica(world, slab, slot),
					WORLD_SLAB_BYTES);
	}
}
