/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * finish.c - the checks at the end, when the world has healed.
 *
 * Every request ends within a bound. Every lost replica was made anew. All of every volume
 * reads as the oracle says, and each of its replicas has the same data. Then all is closed,
 * nothing stays lent, and no thread is left.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/tally.h"
#include "sim/world.h"

/* The time to notice that a peer is dead, to resume, and to give it up, with slack. */
#define REQUESTS_END_NS (30000 * RBX_SIM_MS)
/* The grace of an eviction, a retry each second, and the copying. */
#define REBUILD_ENDS_NS (120000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (50 * RBX_SIM_MS)
#define READ_BYTES (64u << 10)

static uint32_t outstanding(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		count += rbx_sim_world.clients[i].outstanding_count;
	return count;
}

static void requests_end(void)
{
	uint64_t until_ns = rbx_sim_now() + REQUESTS_END_NS;

	rbx_sim_tally(RBX_SIM_TALLY_healed_under_load, outstanding());
	while (outstanding() != 0) {
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("liveness", "%u requests have not ended long after all healed",
				     outstanding());
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}

static bool all_are_whole(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (!rbx_sim_client_is_whole(&rbx_sim_world.clients[i]))
			return false;
	return true;
}

/* A server that a volume has lost is there again, and is offered to it, unless it finds it. */
static void offer_servers(void)
{
	for (uint32_t i = 0; !rbx_sim_world.has_store && i < rbx_sim_world.servers_count; i++)
		for (uint32_t j = 0; j < rbx_sim_world.clients_count; j++)
			if (rbx_sim_world.servers[i].server)
				rbx_sim_client_add_server(
					&rbx_sim_world.clients[j],
					&rbx_sim_world.servers[i]);
}

/* Counts the slabs that clients hold, and those that servers have lent. */
static uint64_t held(void)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		const struct rbx_sim_client *client = &rbx_sim_world.clients[i];
		const struct rbx_volume_map *map = client->volume->control.flow.map;

		for (uint32_t j = 0; j < map->slab_count; j++)
			if (!rbx_slab_at(&map->shape, j)->blank)
				count += client->volume_options.replicas;
	}
	return count;
}

static uint64_t lent(void)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (rbx_sim_world.servers[i].server)
			count += rbx_sim_server_lent(&rbx_sim_world.servers[i]);
	return count;
}

/* A volume that has not noticed its loss yet looks whole. So the servers are checked too:
 * they have lent exactly what volumes have. */
static void rebuilds_end(void)
{
	uint64_t until_ns = rbx_sim_now() + REBUILD_ENDS_NS;

	while (!all_are_whole() || lent() != held()) {
		if (rbx_sim_now() > until_ns && !all_are_whole())
			rbx_sim_fail("rebuild-ends", "a volume lacks replicas long after all healed");
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("given-back", "servers lend %llu slabs long after all healed, and clients have %llu",
				     (unsigned long long)lent(),
				     (unsigned long long)held());
		offer_servers();
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}

/* ---- Contents ---------------------------------------------------------------*/

static void *read_all(void *arg)
{
	struct rbx_sim_client *client = arg;
	char *buf = malloc(READ_BYTES);

	if (!buf)
		abort();
	for (uint64_t at = 0; at < client->size_bytes; at += READ_BYTES) {
		uint32_t length = (uint32_t)RBX_MIN(
			(uint64_t)READ_BYTES, client->size_bytes - at);
		uint64_t moment = rbx_sim_oracle_moment(client->oracle);

		if (rbx_read(client->volume, buf, length, at))
			rbx_sim_fail("survives", "client %u in the end: %s",
				     client->index, rbx_last_error());
		rbx_sim_oracle_read(client->oracle, at, buf, length, moment);
	}
	free(buf);
	return NULL;
}

/* A named volume takes a server that it has lost again when it is opened. */
static void servers_return(void)
{
	for (uint32_t i = 0; rbx_sim_world.is_named && i < rbx_sim_world.clients_count; i++)
		rbx_sim_client_open_anew(&rbx_sim_world.clients[i]);
}

void rbx_sim_finish(void)
{
	requests_end();
	rbx_sim_besides_rest();
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_load_join(&rbx_sim_world.clients[i]);
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_comings_join(&rbx_sim_world.clients[i]);
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_growth_join(&rbx_sim_world.clients[i]);
	rbx_sim_announced_over();
	rbx_sim_loss_repair(offer_servers);
	rbx_sim_outage_over();
	servers_return();
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_growth_settles(&rbx_sim_world.clients[i]);
	rebuilds_end();
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rbx_sim_client *client = &rbx_sim_world.clients[i];

		rbx_sim_replicas_damage(client);
		rbx_sim_on(client->node, read_all, client);
		rbx_sim_beside_end(client);
		rbx_sim_replicas_compare(client, RBX_SIM_TALLY_replicas_compared);
		if (client->volume)
			rbx_sim_tally(RBX_SIM_TALLY_moved,
				      client->volume->control.upkeep.moved_count);
		rbx_sim_given_up(client);
		rbx_sim_client_close(client);
		rbx_sim_load_free(client);
	}
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (rbx_sim_world.servers[i].server)
			rbx_sim_server_stop(&rbx_sim_world.servers[i]);
}
