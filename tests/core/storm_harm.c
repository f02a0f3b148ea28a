/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* storm_harm.c - see storm_harm.h. */
#include "tests/core/storm_harm.h"

#include "core/last_copies.h"

static struct host_server *draw_server(void)
{
	return &storm.host->servers[draw(HOST_SERVERS)];
}

static uint32_t index_of(const struct host_server *server)
{
	return (uint32_t)(server - storm.host->servers);
}

/* ---- Which harm leaves a copy ---------------------------------------------------*/

/* Its first writes wait, and what was lent for them is not in use yet. */
static bool is_waiting(const struct rbx_slab *slab)
{
	return slab->blank || slab->placing;
}

/* Whether all that was acknowledged is elsewhere than at this server. One that dies is
 * asked for nothing more; what it has revoked unheard is used all the same. */
static bool slab_does_without(const struct rbx_slab *slab, uint32_t server,
			      bool is_heard)
{
	bool is_there = false, seems_elsewhere = false, is_elsewhere = false;
	uint32_t slot;

	for (slot = 0; slot <= storm.replicas; slot++) {
		const struct rbx_replica *replica;

		if (!rbx_slab_has_all(slab, slot) &&
		    rbx_slab_state(slab, slot) != RBX_REPLICA_LIVE)
			continue;
		replica = rbx_slab_replica(slab, slot);
		if (rbx_replica_server(replica) == server) {
			is_there = true;
			continue;
		}
		seems_elsewhere = true;
		is_elsewhere |= host_has_loan(storm.host, replica);
	}
	if (is_waiting(slab) && is_heard && !seems_elsewhere)
		return true; /* others are asked */
	return is_elsewhere || !is_there;
}

/* Whether this may be done to the slab, which is noted if it may cost it. */
static bool may_harm_slab(uint32_t index, uint32_t server, bool is_heard,
			  bool may_cost)
{
	const struct rbx_slab *slab = host_slab(storm.host, index);
	bool does_without = slab_does_without(slab, server, is_heard);

	if (!does_without && may_cost)
		storm.io.may_be_lost[index] = true;
	return does_without || may_cost;
}

static bool may_harm_server(const struct host_server *server)
{
	bool may_cost = storm.mix->costs && one_of(3);
	uint32_t i;

	for (i = 0; i < storm.slabs; i++)
		if (!may_harm_slab(i, index_of(server), true, may_cost))
			return false;
	return true;
}

/* ---- Harm -----------------------------------------------------------------------*/

static void is_slow(void)
{
	draw_server()->is_slow = draw(2);
}

static void refuses(void)
{
	draw_server()->refuse = !one_of(3) ? 0 : one_of(2) ? -ENOTCONN : -ENOSPC;
}

static void is_deaf(void)
{
	draw_server()->deaf = !one_of(3) ? 0 : one_of(2) ? -ENOTCONN : -ETIMEDOUT;
}

/* One that has memory, or had; else NULL. */
static const struct rbx_replica *draw_replica(uint32_t slab)
{
	uint32_t slot = draw(storm.replicas + 1);

	if (rbx_slab_state(host_slab(storm.host, slab), slot) < RBX_REPLICA_REBUILDING)
		return NULL;
	return rbx_slab_replica(host_slab(storm.host, slab), slot);
}

/* At a time, or at none. */
static void wants_back(void)
{
	const struct rbx_replica *replica = draw_replica(draw(storm.slabs));
	struct host *host = storm.host;

	if (!storm.mix->evicts || !replica)
		return;
	rbx_upkeep_evict(&host->upkeep, rbx_replica_server(replica),
			 &(struct rbx_eviction){
				 .slab_id = replica->slab_id,
				 .epoch = replica->epoch,
				 .now_ns = host->now_ns,
				 .until_ns = one_of(2) ? UINT64_MAX :
							 host->now_ns +
								 draw(20) * SECOND_NS,
			 });
}

/* Of a slab that waits, too: that costs it only if it has nothing else. */
static void has_revoked(void)
{
	uint32_t slab = draw(storm.slabs);
	const struct rbx_replica *replica = draw_replica(slab);
	bool may_cost = (storm.mix->costs && one_of(3)) ||
			is_waiting(host_slab(storm.host, slab));
	uint32_t server;

	if (!storm.mix->evicts || !replica || !host_has_loan(storm.host, replica))
		return;
	server = rbx_replica_server(replica);
	if (may_harm_slab(slab, server, false, may_cost))
		storm.host->servers[server].keys[replica->slab_id] = 0;
}

static void dies(void)
{
	struct host_server *server = draw_server();

	if (!storm.mix->kills || !one_of(8) || storm.down_count ||
	    !may_harm_server(server))
		return;
	host_server_dies(storm.host, index_of(server));
	storm.down_count++;
}

/* Another one takes its place, when that is free. */
static void comes_back(void)
{
	struct rbx_upkeep *upkeep = &storm.host->upkeep;
	struct host_server *server;
	uint32_t place;

	if (!storm.down_count || rbx_upkeep_server_place(upkeep, &place) ||
	    place >= HOST_SERVERS)
		return;
	server = &storm.host->servers[place];
	assert_true(server->down && !server->is_asked);
	rbx_upkeep_server_begins(upkeep, place);
	memset(server->keys, 0, sizeof(server->keys));
	server->down = false;
	rbx_upkeep_server_added(upkeep, place);
	storm.down_count--;
}

static void is_discarded(void)
{
	uint32_t slab = draw(storm.slabs);

	if (storm.mix->discards && !storm_io_is_busy_at(&storm.io, slab))
		storm_io_discard(&storm.io, slab);
}

static bool is_up(struct rbx_flow *flow, uint32_t server)
{
	(void)flow;
	return server != storm.silent && !storm.host->servers[server].down;
}

void storm_silence(void)
{
	struct host_server *server = draw_server();

	if (!storm.mix->falls_silent || server->down || !may_harm_server(server))
		return;
	storm.silent = index_of(server);
	(void)rbx_last_copies_hold(&storm.host->flow, storm.silent, is_up);
}

static void time_passes(void)
{
	storm.host->now_ns += draw(1000) * 1000000ull;
}

static void (*const harms[])(void) = {
	is_slow, refuses, is_deaf, wants_back, wants_back, has_revoked,
	dies, comes_back, is_discarded, storm_silence, time_passes, time_passes,
};

#define HARMS (sizeof(harms) / sizeof(harms[0]))

void storm_harm(void)
{
	harms[draw(HARMS)]();
}
