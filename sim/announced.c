/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * announced.c - worlds whose servers announce themselves in a store (store.h), where clients find
 * them.
 *
 * The store has nothing of a volume: neither who writes nor what it has. So while it is away,
 * volumes that are open serve as before, with the servers that were known; only what is not open
 * cannot be opened. When it has been back for a while, everybody knows which servers there are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "include/rdmabox/pool.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/store.h"
#include "sim/tally.h"
#include "sim/world.h"

#define AWAY_NS_MAX (15000 * RBX_SIM_MS)
/* Longer than any lease, wait and silence there is: an hour would be no other case. */
#define LONG_NS_MAX (120000 * RBX_SIM_MS)
#define ONE_IN_LONG 4u
/* Longer than a request takes that waits for a server to be given up. */
#define STANDS_NS (40000 * RBX_SIM_MS)
/* One time in so many, one machine alone does not reach the store. */
#define ONE_IN_ALONE 2u
/* A lease, the longest wait before a next try, and the silence of a watch. */
#define KNOWN_NS (30000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (50 * RBX_SIM_MS)

/* What was seen of a client at the last look. */
static struct sight {
	const struct rbx_volume *volume; /* open, and the store away; or NULL */
	uint64_t done_count;
	uint64_t moved_at_ns;
	size_t members_count;
} sights[RBX_SIM_CLIENTS_MAX];

/* ---- Servers ------------------------------------------------------------------------------ */

static struct rbx_pool_member member_of(const struct rbx_sim_server *server)
{
	struct rbx_pool_member member = { .memory_bytes = server->memory_bytes };
	struct rbx_server_stats stats;

	rbx_server_stats_get(server->server, &stats);
	snprintf(member.address, sizeof(member.address), "n%u:7000", server->node);
	member.free_bytes = stats.memory_bytes - RBX_MIN(stats.lent_bytes, stats.memory_bytes);
	member.draining = server->is_draining;
	member.incarnation = rbx_sim_server_incarnation(server->node);
	return member;
}

void rbx_sim_announce_begin(struct rbx_sim_server *server)
{
	struct rbx_pool_member member;

	if (!rbx_sim_world.has_store)
		return;
	member = member_of(server);
	if (rbx_announcement_open(&server->announcement, RBX_SIM_STORE_POOL, &member))
		rbx_sim_fail("start", "server %u: %s", server->node, rbx_last_error());
}

void rbx_sim_announce_now(struct rbx_sim_server *server)
{
	struct rbx_pool_member member;

	if (!server->announcement)
		return;
	member = member_of(server);
	if (rbx_announcement_update(server->announcement, &member))
		rbx_sim_fail("start", "server %u: %s", server->node, rbx_last_error());
}

void rbx_sim_announce_end(struct rbx_sim_server *server)
{
	struct rbx_announcement *announcement = server->announcement;

	server->announcement = NULL;
	(void)rbx_announcement_close(announcement);
}

/* ---- The store is away -------------------------------------------------------------------- */

/* The members that were read last stay in force, and I/O goes on. */
static void look_at(const struct rbx_sim_client *client, struct sight *sight)
{
	const struct rbx_volume *volume = client->is_open ? client->volume : NULL;
	struct sight now = { .volume = volume, .done_count = client->done_count,
			     .moved_at_ns = rbx_sim_now() };

	if (!volume || !rbx_sim_store_is_away(client->node)) {
		*sight = (struct sight){ 0 };
		return;
	}
	now.members_count = volume->joins.pool ? volume->joins.pool->members.count : 0;
	if (sight->volume == volume) {
		rbx_sim_tally(RBX_SIM_TALLY_done_without_store, now.done_count - sight->done_count);
		if (sight->members_count && !now.members_count)
			rbx_sim_fail("members-stay", "client %u forgets %zu servers when the store is away",
				     client->index, sight->members_count);
		if (now.done_count == sight->done_count)
			now.moved_at_ns = sight->moved_at_ns;
		if (rbx_sim_now() - now.moved_at_ns > STANDS_NS)
			rbx_sim_fail("goes-on", "client %u does nothing while the store is away",
				     client->index);
	}
	*sight = now;
}

static uint64_t draw_below(uint64_t most)
{
	return rbx_sim_site_draw(RBX_SIM_SITE_store_away, 0, most - 1);
}

void rbx_sim_announced_harm(void)
{
	uint32_t nodes = rbx_sim_world.servers_count + rbx_sim_world.clients_count;
	struct rbx_sim_server *server;
	uint32_t node = 0;

	if (!rbx_sim_world.has_store)
		return;
	server = &rbx_sim_world.servers[draw_below(rbx_sim_world.servers_count)];
	if (server->server && !server->drain)
		rbx_sim_announce_now(server);
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		look_at(&rbx_sim_world.clients[i], &sights[i]);
	if (!rbx_sim_site(RBX_SIM_SITE_store_away))
		return;
	if (!draw_below(ONE_IN_ALONE))
		node = 1 + (uint32_t)draw_below(nodes);
	rbx_sim_store_away(node, draw_below(draw_below(ONE_IN_LONG) ? AWAY_NS_MAX : LONG_NS_MAX),
			   draw_below(2));
}

/* ---- When it is back ---------------------------------------------------------------------- */

static bool all_are_announced(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		char ending[20];

		if (!rbx_sim_world.servers[i].server)
			continue;
		snprintf(ending, sizeof(ending), "%016" PRIx64,
			 rbx_sim_server_incarnation(rbx_sim_world.servers[i].node));
		if (!rbx_sim_store_has(ending))
			return false;
	}
	return rbx_sim_store_keys_count() == rbx_sim_servers_up();
}

static bool all_are_known(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		const struct rbx_volume *volume = rbx_sim_world.clients[i].volume;

		if (volume && volume->joins.pool &&
		    volume->joins.pool->members.count != rbx_sim_servers_up())
			return false;
	}
	return true;
}

void rbx_sim_announced_over(void)
{
	uint64_t until_ns = rbx_sim_now() + KNOWN_NS;

	if (!rbx_sim_world.has_store)
		return;
	while (!all_are_announced() || !all_are_known()) {
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("announced", "%u servers are there, %u are announced, long after all healed",
				     rbx_sim_servers_up(), rbx_sim_store_keys_count());
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}
