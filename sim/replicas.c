/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replicas.c - holds the replicas of a volume beside each other: in the end, and each time that a
 * named volume was opened, before anything is read of it or written to it.
 */
#include <string.h>

#include "core/extents.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/world.h"

/* The memory of the servers is looked at directly. It is there even if one has lost power. */
void rbx_sim_replicas_compare(const struct rbx_sim_client *client, enum rbx_sim_tally tally)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	size_t bytes = (size_t)1 << map->shape.slab_shift;
	size_t tail_bytes = map->shape.has_tails ? bytes / RBX_PAGE_BYTES * sizeof(uint32_t) : 0;

	for (uint32_t i = 0; i < map->slab_count; i++) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, i);
		const void *first = NULL;

		for (uint32_t j = slab->read_mask; j; j &= j - 1) {
			const void *here = (void *)(uintptr_t)rbx_replica_addr(
				rbx_slab_replica(slab, (uint32_t)__builtin_ctz(j)));

			if (tail_bytes && memcmp((const char *)here + bytes,
						 rbx_slab_checksums(slab), tail_bytes) != 0)
				rbx_sim_fail("tails-agree", "client %u: slab %u has other checksums than a server",
					     client->index, i);
			if (!first) {
				first = here;
				continue;
			}
			rbx_sim_tally(tally, 1);
			if (memcmp(first, here, bytes) != 0)
				rbx_sim_fail("replicas-agree", "client %u: replicas of slab %u differ",
					     client->index, i);
		}
	}
}

void rbx_sim_replicas_opened(struct rbx_sim_client *client)
{
	struct rbx_extents *extents = client->volume->control.flow.map->shape.groups[0].extents;

	if (!extents)
		return;
	rbx_sim_replicas_compare(client, RBX_SIM_TALLY_replicas_at_open);
	/* A volume of this world has few extents. */
	extents->set_max = 1u << (rbx_sim_world.options->seed + client->index) % 8;
}
