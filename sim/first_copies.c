/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * first_copies.c - finds slabs on demand whose data only one server has had since their first
 * write.
 *
 * The first writes of a slab begin with the memory that was lent, even if it is one replica:
 * other servers have refused, or were late, or could not be asked. Until the first other
 * replica is made, a volume does not survive the loss of that server, however many replicas
 * it is to have, and nothing promises that it does. So that server is not harmed meanwhile,
 * not even if it was the last one to be harmed: the slab may be younger than that harm.
 *
 * Once a slab has been at two servers it has to survive, until it is discarded. If it is at
 * only one of them, because the other was lost, that one may still be harmed. The state of
 * the slab does not distinguish the two cases, so this file remembers.
 *
 * A blank slab is at no server. But if only one server is left to lend, its first write finds
 * no other, so that one counts as having it.
 */
#include "lib/volume/volume.h"
#include "sim/world.h"

/* A bit for each slab: it has been at two servers or more since it was blank. */
static struct {
	uint64_t own_mask, visited_mask;
} spread[RBX_SIM_CLIENTS_MAX];

static const struct rbx_volume_map *map_of(const struct rbx_volume *volume)
{
	const struct rbx_volume_map *map = volume ? volume->control.flow.map : NULL;

	return map && map->shape.on_demand ? map : NULL;
}

/* The replica has all data of the slab, or was borrowed for data that comes. */
static bool is_copy(const struct rbx_slab *slab, uint32_t slot)
{
	return rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE ||
	       rbx_slab_has_all(slab, slot);
}

/* The index of the only server that has a copy; -1: there is none, or several. */
static int only_server(const struct rbx_slab *slab, uint32_t slots)
{
	int server = -1;

	for (uint32_t i = 0; i < slots; i++) {
		if (!is_copy(slab, i))
			continue;
		if (server >= 0)
			return -1;
		server = (int)rbx_replica_server(rbx_slab_replica(slab, i));
	}
	return server;
}

static void look(uint64_t *spread_mask, const struct rbx_volume *volume)
{
	const struct rbx_volume_map *map = map_of(volume);

	RBX_ASSERT(!map || map->slab_count <= 64);
	if (!map)
		*spread_mask = 0;
	for (uint32_t i = 0; map && i < map->slab_count; i++) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		if (slab->blank)
			*spread_mask &= ~(1ull << i);
		else if (slab->read_mask && !rbx_slab_is_last(slab))
			*spread_mask |= 1ull << i;
	}
}

void rbx_sim_first_copies_look(const struct rbx_sim_client *client)
{
	look(&spread[client->index].own_mask, client->volume);
	look(&spread[client->index].visited_mask, client->visited);
}

static uint32_t node_of(const struct rbx_volume *volume, int server)
{
	const struct rbx_peer *peer = volume->control.servers[server].peer;

	return peer ? rbx_sim_node_of_peer(peer) : 0;
}

/* The index of the only server that is left to lend; -1: there is none, or several. */
static int only_lender(const struct rbx_volume *volume)
{
	const struct rbx_volume_control *control = &volume->control;
	int server = -1;

	for (uint32_t i = 0; i < control->server_count; i++) {
		if (!control->servers[i].peer ||
		    rbx_upkeep_server_is_down(&control->upkeep, i))
			continue;
		if (server >= 0)
			return -1;
		server = (int)i;
	}
	return server;
}

static bool are_at(uint64_t spread_mask, const struct rbx_volume *volume,
		   uint32_t node)
{
	const struct rbx_volume_map *map = map_of(volume);

	for (uint32_t i = 0; map && i < map->slab_count; i++) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, i);
		int server;

		if (spread_mask >> i & 1 && !rbx_sim_world.is_named)
			continue;
		server = only_server(slab, map->shape.slots);
		if (server < 0 && slab->blank)
			server = only_lender(volume);
		if (server >= 0 && node_of(volume, server) == node)
			return true;
	}
	return false;
}

bool rbx_sim_first_copies_at(const struct rbx_sim_client *client, uint32_t node)
{
	return are_at(spread[client->index].own_mask, client->volume, node) ||
	       are_at(spread[client->index].visited_mask, client->visited, node);
}
