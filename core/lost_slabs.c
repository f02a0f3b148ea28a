/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lost_slabs.c - see lost_slabs.h. */
#include "core/lost_slabs.h"

#include "core/slab.h"
#include "core/upkeep_state.h"

uint32_t rbx_upkeep_lost_slabs(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, count = 0;

	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);
		bool is_lost;

		rbx_slab_lock(slab);
		is_lost = slab->blank;
		slab->blank = false;
		rbx_slab_unlock(slab);
		if (!is_lost)
			continue;
		count++;
		rbx_attention_relist(&map->attention, slab, RBX_PARK_NOT);
	}
	upkeep->lost_slabs_count = count;
	return count;
}
