/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* last_copies.c - see last_copies.h. */
#include "core/last_copies.h"

#include "core/slab_away.h"

static uint32_t server_of(const struct rbx_slab *slab, uint32_t slot)
{
	return rbx_replica_server(rbx_slab_replica(slab, slot));
}

/* Whether it has all, and the next client would find it. */
static bool counts(const struct rbx_slab *slab, uint32_t slot)
{
	return rbx_slab_has_all(slab, slot) && !rbx_slab_is_unlabelling(slab, slot);
}

static bool is_elsewhere(struct rbx_flow *flow, const struct rbx_slab *slab,
			 uint32_t server, rbx_server_is_up *is_up)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		uint32_t other;

		if (!counts(slab, slot))
			continue;
		other = server_of(slab, slot);
		if (other != server && is_up(flow, other))
			return true;
	}
	return false;
}

/* Whether a server that is not one of these has all of it. */
static bool is_beyond(const struct rbx_slab *slab, const struct rbx_server_set *servers)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (counts(slab, slot) &&
		    !rbx_server_set_has(servers, server_of(slab, slot)))
			return true;
	return false;
}

static bool is_at(const struct rbx_slab *slab, uint32_t server)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (counts(slab, slot) &&
		    server_of(slab, slot) == server)
			return true;
	return false;
}

/* If no other server is up, none can lend either, and parts of the volume that were never
 * written would become unusable. */
static bool is_another_up(struct rbx_flow *flow, struct rbx_volume_map *map,
			  uint32_t server, rbx_server_is_up *is_up)
{
	uint32_t i, count = RBX_LOAD_ACQUIRE(&map->server_count);

	for (i = 0; i < count; i++)
		if (i != server && is_up(flow, i))
			return true;
	return false;
}

bool rbx_last_copies_hold(struct rbx_flow *flow, uint32_t server,
			  rbx_server_is_up *is_up)
{
	struct rbx_volume_map *map = RBX_LOAD_ACQUIRE(&flow->map);
	bool some_stay = map && !is_another_up(flow, map, server, is_up);
	bool some_went = false;
	uint32_t i;

	for (i = 0; map && i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		if (is_at(slab, server) &&
		    !is_elsewhere(flow, slab, server, is_up))
			some_stay = true;
		else if (!map->shape.is_guarded)
			some_went |= rbx_slab_server_silent(slab, server);
		some_stay |= rbx_slab_is_away(slab, server);
		(void)rbx_attention_note(&map->attention, slab);
		rbx_slab_unlock(slab);
	}
	if (some_went)
		flow->ops->wake(flow);
	return some_stay;
}

void rbx_last_copies_needed(struct rbx_flow *flow, const struct rbx_server_set *servers,
			    struct rbx_server_set *needed)
{
	struct rbx_volume_map *map = flow->map;
	uint32_t i, slot;

	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		if (!is_beyond(slab, servers))
			for (slot = 0; slot < map->shape.slots; slot++)
				if (counts(slab, slot))
					rbx_server_set_add(needed, server_of(slab, slot));
		rbx_slab_unlock(slab);
	}
}

bool rbx_last_copies_wait(const struct rbx_fragment *fragment)
{
	const struct rbx_part *part =
		RBX_CONTAINER_OF(fragment, const struct rbx_part, fragment);
	struct rbx_slab *slab = part->piece->slab;
	bool waits;

	rbx_slab_lock(slab);
	waits = slab->write_mask >> part->slot & 1;
	rbx_slab_unlock(slab);
	return waits;
}
