/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* server.c - a memory server of the simulated world: the one that rdmabox-serve(1) runs. */
#include <stdio.h>
#include <string.h>

#include "client/peer.h"
#include "server/state.h"
#include "server/volume_state.h"
#include "sim/descriptors.h"
#include "sim/fail.h"
#include "sim/hands.h"
#include "sim/store.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

static void *start(void *arg)
{
	struct rbx_sim_server *server = arg;
	struct rbx_server_options options;

	rbx_server_options_defaults(&options);
	snprintf(options.listen, sizeof(options.listen), "n%u:7000",
		 server->node);
	options.memory_bytes = server->memory_bytes;
	options.slab_bytes = rbx_sim_world.slab_bytes;
	options.lease_ms = rbx_sim_world.lease_ms;
	options.insecure = 1;
	options.message = rbx_sim_talk_heard;
	if (rbx_sim_world.has_memory_files)
		snprintf(options.memory_file, sizeof(options.memory_file), "memory of n%u",
			 server->node);
	if (rbx_sim_world.racks_count)
		snprintf(options.labels, sizeof(options.labels), "zone=north,rack=r%u",
			 rbx_sim_rack_of_node(server->node));
	if (rbx_server_start(&server->server, &options))
		rbx_sim_fail("start", "server %u: %s", server->node,
			     rbx_last_error());
	server->starts_count++;
	rbx_sim_announce_begin(server);
	return NULL;
}

void rbx_sim_server_start(struct rbx_sim_server *server)
{
	rbx_sim_on(server->node, start, server);
	RBX_SIM_TRACE(server->node, "server-start", "time",
		      server->starts_count, "memory", server->memory_bytes);
}

static struct rbx_server_stats stats_of(const struct rbx_sim_server *server)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(server->server, &stats);
	return stats;
}

uint64_t rbx_sim_server_lent(const struct rbx_sim_server *server)
{
	return stats_of(server).slabs_lent;
}

uint64_t rbx_sim_server_promised(const struct rbx_sim_server *server, uint64_t volume_id)
{
	const struct rbx_kept_volume *kept =
		server->server ? rbx_volume_find_id(server->server, volume_id) : NULL;

	return kept ? kept->acceptor.promised_epoch : 0;
}

/* Its place in the tables; -1: it has none, or not all of it. */
static int slab_place(const struct rbx_server *s, uint64_t volume_id, uint32_t index)
{
	const struct rbx_kept_volume *kept = s ? rbx_volume_find_id(s, volume_id) : NULL;
	struct rbx_lender_loan loan = { 0 };

	while (kept && rbx_lender_next_of(s->lender, kept->holder.id, loan.slab_id, &loan))
		if (s->slabs[loan.slab_id - 1].map.label == 1 + (uint64_t)index &&
		    s->slabs[loan.slab_id - 1].map.is_complete)
			return (int)loan.slab_id - 1;
	return -1;
}

bool rbx_sim_server_has_slab(const struct rbx_sim_server *server, uint64_t volume_id,
			     uint32_t index)
{
	return slab_place(server->server, volume_id, index) >= 0;
}

void *rbx_sim_server_slab(const struct rbx_sim_server *server, uint64_t volume_id, uint32_t index,
			  uint64_t behind)
{
	int place = slab_place(server->server, volume_id, index);

	if (place < 0)
		return NULL;
	server->server->slabs[place].behind |= behind;
	return server->server->workers.slabs[place].addr;
}

uint64_t rbx_sim_server_incarnation(uint32_t node)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (rbx_sim_world.servers[i].node == node &&
		    rbx_sim_world.servers[i].server)
			return rbx_sim_world.servers[i].server->incarnation;
	return 0;
}

/* Whether some client still has a slab of it. */
static bool is_lending(const struct rbx_sim_server *server)
{
	return rbx_sim_server_lent(server) != 0 ||
	       rbx_sim_hands_count(server->node) != 0;
}

/* A client that could not say BYE loses its slabs with its lease. */
static void *stop(void *arg)
{
	struct rbx_sim_server *server = arg;
	uint64_t until_ns =
		rbx_sim_now() + 2 * rbx_sim_world.lease_ms * RBX_SIM_MS;

	while (is_lending(server) && rbx_sim_now() < until_ns)
		rbx_sim_sleep(100 * RBX_SIM_MS);
	if (is_lending(server))
		rbx_sim_fail("given-back",
			     "server %u lends slabs long after all clients have left",
			     server->node);
	rbx_sim_tally(RBX_SIM_TALLY_leases_expired,
		      stats_of(server).leases_expired);
	rbx_sim_announce_end(server);
	rbx_server_stop(server->server);
	server->server = NULL;
	return NULL;
}

void rbx_sim_server_stop(struct rbx_sim_server *server)
{
	rbx_sim_on(server->node, stop, server);
}

/* Its memory is lost with its power; nothing is freed, as in reality. */
void rbx_sim_server_power_off(struct rbx_sim_server *server)
{
	RBX_SIM_TRACE(server->node, "power-off", "time", server->starts_count,
		      "up", rbx_sim_servers_up());
	rbx_sim_node_stop(server->node);
	rbx_sim_world.fabric->node_stop(server->node);
	rbx_sim_descriptors_stop(server->node);
	server->server = NULL;
	server->announcement = NULL;
}

void rbx_sim_servers_name(char *servers, bool all)
{
	size_t at = 0;

	servers[0] = '\0';
	if (rbx_sim_world.has_store) {
		strcpy(servers, RBX_SIM_STORE_POOL);
		return;
	}
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (all || rbx_sim_world.servers[i].server)
			at += (size_t)sprintf(servers + at, "%sn%u:7000",
					      at ? "," : "",
					      rbx_sim_world.servers[i].node);
}

/* Not by sscanf(): it is asked after many an event. */
uint32_t rbx_sim_node_of_peer(const struct rbx_peer *peer)
{
	const char *at = rbx_peer_name(peer);
	uint32_t node = 0;

	if (*at++ != 'n')
		return 0;
	while (*at >= '0' && *at <= '9')
		node = node * 10 + (uint32_t)(*at++ - '0');
	return *at == ':' ? node : 0;
}

uint32_t rbx_sim_servers_up(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		count += rbx_sim_world.servers[i].server != NULL;
	return count;
}
