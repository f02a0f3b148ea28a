/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* strayed.c - see strayed.h. */
#include "tests/lib/volume/strayed.h"

#include "core/extents.h"
#include "lib/volume/volume.h"

void strayed_write(struct rbx_volume *volume, uint64_t offset)
{
	struct rbx_volume_map *map = volume->control.flow.map;
	struct rbx_slab *slab = rbx_volume_map_slab(map, offset);
	const struct rbx_piece piece = {
		.slab_index = rbx_slab_index(slab),
		.offset_bytes = (uint32_t)(offset & map->slab_mask),
		.length_bytes = RBX_PAGE_BYTES,
	};

	rbx_slab_lock(slab);
	rbx_extents_stray(rbx_slab_group(slab)->extents, &piece, map->shape.slab_shift);
	rbx_slab_unlock(slab);
}
