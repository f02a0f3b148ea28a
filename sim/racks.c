/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * racks.c - servers in racks, which are lost as a whole.
 *
 * There is a rack more than replicas at least, with room for everything. Racks are lost one at a
 * time: the next one only when each volume has all its replicas again, and knows servers in all
 * racks. So whenever a replica is placed there are servers in as many racks as it takes, none of
 * them slow or away. Then no slab may have two replicas in one rack, and no page is lost with it.
 */
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

uint32_t rbx_sim_rack_of_node(uint32_t node)
{
	return (node - 1) % rbx_sim_world.racks_count;
}

static bool is_in_rack(const struct rbx_sim_server *server, uint32_t rack)
{
	return rbx_sim_rack_of_node(server->node) == rack;
}

/* ---- What volumes know ------------------------------------------------------------------*/

/* The rack of a server that the volume uses; -1: it does not use this place. */
static int rack_of(const struct rbx_volume *volume, uint32_t server)
{
	const struct rbx_volume_control *control = &volume->control;
	const struct rbx_peer *peer = control->servers[server].peer;
	uint32_t node;

	if (!peer || rbx_upkeep_server_is_down(&control->upkeep, server))
		return -1;
	node = rbx_sim_node_of_peer(peer);
	if (!node)
		return -1;
	return (int)rbx_sim_rack_of_node(node);
}

static bool knows_all_racks(const struct rbx_volume *volume)
{
	uint32_t known_mask = 0;

	if (!volume)
		return true;
	for (uint32_t i = 0; i < volume->control.server_count; i++)
		if (rack_of(volume, i) >= 0)
			known_mask |= 1u << rack_of(volume, i);
	return known_mask == (1u << rbx_sim_world.racks_count) - 1;
}

bool rbx_sim_racks_are_known(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (!knows_all_racks(rbx_sim_world.clients[i].volume) ||
		    !knows_all_racks(rbx_sim_world.clients[i].visited))
			return false;
	return true;
}

void rbx_sim_racks_check(const struct rbx_sim_client *client, const struct rbx_slab *slab)
{
	uint32_t masks = 0;

	for (uint32_t i = 0; i < rbx_slab_shape(slab)->slots; i++) {
		int rack;

		if (rbx_slab_state(slab, i) != RBX_REPLICA_LIVE)
			continue;
		rack = rack_of(client->volume, rbx_replica_server(rbx_slab_replica(slab, i)));
		if (rack < 0)
			continue;
		if (masks >> rack & 1)
			rbx_sim_fail("racks-apart", "client %u: two replicas of slab %u in rack %d",
				     client->index, rbx_slab_index(slab), rack);
		masks |= 1u << rack;
	}
}

/* ---- Harm -----------------------------------------------------------------------------------*/

void rbx_sim_racks_harm(void)
{
	uint32_t rack = rbx_random_below(&rbx_sim_world.random, rbx_sim_world.racks_count);

	if (!rbx_sim_racks_are_known() || !rbx_sim_harm_may_take(is_in_rack, rack) ||
	    !rbx_sim_site(RBX_SIM_SITE_rack_crash))
		return;
	RBX_SIM_TRACE(0, "rack-crash", "rack", rack, "up", rbx_sim_servers_up());
	rbx_sim_tally(RBX_SIM_TALLY_racks_survived, 1);
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (is_in_rack(&rbx_sim_world.servers[i], rack))
			rbx_sim_harm_crash(&rbx_sim_world.servers[i]);
}

void rbx_sim_racks_adjust(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rbx_sim_client *client = &rbx_sim_world.clients[i];

		client->volume_options.replicas = RBX_MIN(client->volume_options.replicas,
							  rbx_sim_world.racks_count - 1);
		client->load.think_ns_max = 2500 * RBX_SIM_MS;
		client->load.threads_count = RBX_MIN(client->load.threads_count, 2u);
	}
}
