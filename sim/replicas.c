/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replicas.c - holds the replicas of a volume beside each other: in the end, and each time that a
 * named volume was opened, before anything is read of it or written to it.
 */
#include <string.h>

#include "core/extents.h"
#include "core/slab_way.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/world.h"

/* Whether a replica's tail has the checksums that the client has. They may differ where a write has
 * failed at the client until the volume is opened again (core/extents.h). */
static bool has_tail(const struct rbx_slab *slab, const void *tail, uint32_t pages)
{
	const struct rbx_slab_group *group = rbx_slab_group(slab);
	uint64_t strayed = group->extents ? rbx_extent_word_of(slab)->strayed : 0;
	uint32_t slab_shift = rbx_slab_shape(slab)->slab_shift;

	for (uint32_t i = 0; i < pages; i++)
		if (((const uint32_t *)tail)[i] != rbx_slab_checksums(slab)[i] &&
		    !(strayed & rbx_extents_of(i * RBX_PAGE_BYTES, RBX_PAGE_BYTES, slab_shift)))
			return false;
	return true;
}

/* The memory of the servers is looked at directly. It is there even if one has lost power. */
void rbx_sim_replicas_compare(const struct rbx_sim_client *client, enum rbx_sim_tally tally)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	size_t bytes = (size_t)1 << map->shape.slab_shift;
	uint32_t pages = (uint32_t)(bytes / RBX_PAGE_BYTES);

	for (uint32_t i = 0; i < map->slab_count; i++) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, i);
		const void *first = NULL;

		for (uint32_t j = slab->read_mask; j; j &= j - 1) {
			const void *here = (void *)(uintptr_t)rbx_replica_addr(
				rbx_slab_replica(slab, (uint32_t)__builtin_ctz(j)));

			if (map->shape.has_tails &&
			    !has_tail(slab, (const char *)here + bytes, pages))
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

#define DAMAGES 4u /* of a slab */

/* What is behind the end of the volume is not read. */
static void page_damage(struct rbx_sim_client *client, uint32_t index)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	const struct rbx_slab *slab = rbx_slab_at(&map->shape, index);
	uint64_t slab_bytes = 1u << map->shape.slab_shift;
	uint32_t pages = (uint32_t)(RBX_MIN(slab_bytes, client->size_bytes - index * slab_bytes) /
				    RBX_PAGE_BYTES);
	const struct rbx_piece piece = {
		.offset_bytes = rbx_random_below(&client->random, pages) * RBX_PAGE_BYTES,
	};
	uint8_t bit = rbx_way_choose(slab, &piece, slab->read_mask);
	uint8_t *page = (uint8_t *)(uintptr_t)rbx_replica_addr(
				rbx_slab_replica(slab, (uint32_t)__builtin_ctz(bit))) +
			piece.offset_bytes;

	page[rbx_random_below(&client->random, RBX_PAGE_BYTES)] ^=
		(uint8_t)(1 + rbx_random_below(&client->random, 255));
	rbx_sim_tally(RBX_SIM_TALLY_pages_damaged, 1);
}

void rbx_sim_replicas_damage(struct rbx_sim_client *client)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;

	for (uint32_t i = 0; map->shape.has_tails && i < map->slab_count * DAMAGES; i++) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, i / DAMAGES);

		if (rbx_slab_readable(slab) > 1)
			page_damage(client, i / DAMAGES);
	}
}

void rbx_sim_replicas_opened(struct rbx_sim_client *client)
{
	struct rbx_extents *extents = client->volume->control.flow.map->shape.groups[0].extents;

	if (!extents)
		return;
	rbx_sim_replicas_compare(client, RBX_SIM_TALLY_replicas_at_open);
	/* A volume of this world has few extents, and a run is short. */
	extents->set_max = 1u << (rbx_sim_world.options->seed + client->index) % 8;
	extents->quiet_ns = 1000000ull << (rbx_sim_world.options->seed / 8 + client->index) % 16;
}
