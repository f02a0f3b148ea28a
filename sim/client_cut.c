/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client_cut.c - a client that reaches no server for a while: it is cut off, or stands still.
 */
#include "client/queue_pairs.h"
#include "lib/volume/volume.h"
#include "sim/sites.h"
#include "sim/trace.h"
#include "sim/world.h"

/* For each client: its network is down until this event. */
static struct client_uncut {
	struct rbx_sim_event event;
	uint32_t node;
	uint64_t rests_until_ns; /* before that, nothing more is done to it */
} client_uncuts[RBX_SIM_CLIENTS_MAX];

static void uncut(struct rbx_sim_event *event)
{
	struct client_uncut *undo = RBX_CONTAINER_OF(event, struct client_uncut, event);

	RBX_SIM_TRACE(undo->node, "healed", "node", undo->node, "up", rbx_sim_servers_up());
	rbx_sim_world.fabric->node_cut(undo->node, false);
}

void rbx_sim_client_cuts_init(void)
{
	for (uint32_t i = 0; i < RBX_SIM_CLIENTS_MAX; i++)
		client_uncuts[i] = (struct client_uncut){
			.event.run = uncut,
			.node = rbx_sim_world.clients[i].node,
		};
}

void rbx_sim_client_cut(const struct rbx_sim_client *client, uint64_t for_ns)
{
	struct client_uncut *undo = &client_uncuts[client->index];

	RBX_SIM_TRACE(client->node, "cut-off", "node", client->node, "up", rbx_sim_servers_up());
	rbx_sim_world.fabric->node_cut(client->node, true);
	rbx_sim_cancel(&undo->event);
	rbx_sim_after(&undo->event, for_ns);
}

static bool any_is_broken(const struct rbx_volume *volume)
{
	for (uint32_t i = 0; volume && i < volume->control.server_count; i++) {
		const struct rbx_peer *peer = volume->control.servers[i].peer;

		if (peer && (peer->recovery.state.phase == RBX_PEER_DRAINING ||
			     peer->recovery.state.phase == RBX_PEER_RESUMING))
			return true;
	}
	return false;
}

/* What a connection that is broken has for its tries is counted from its last message: other faults
 * may have used most of it up. Looks without locks: no fiber runs meanwhile. */
bool rbx_sim_client_is_away(const struct rbx_sim_client *client, enum rbx_sim_site site,
			    uint64_t least_ns, uint64_t *for_ns)
{
	struct client_uncut *undo = &client_uncuts[client->index];
	uint64_t quarter_ns = rbx_sim_world.lease_ms * RBX_SIM_MS / 4;

	if (rbx_sim_now() < undo->rests_until_ns || any_is_broken(client->volume) ||
	    any_is_broken(client->visited) || !rbx_sim_site(site))
		return false;
	*for_ns = rbx_sim_site_draw(site, least_ns, quarter_ns);
	undo->rests_until_ns = rbx_sim_now() + *for_ns + 2 * quarter_ns;
	return true;
}

void rbx_sim_client_cuts_heal(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		uint32_t node = rbx_sim_world.clients[i].node;

		rbx_sim_cancel(&client_uncuts[i].event);
		rbx_sim_world.fabric->node_cut(node, false);
		rbx_sim_node_stall(node, 0);
	}
}
