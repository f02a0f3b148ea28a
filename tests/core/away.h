/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * away.h - a volume without a name, of one slab, whose servers fall silent and are back.
 */
#ifndef RBX_TESTS_CORE_AWAY_H
#define RBX_TESTS_CORE_AWAY_H

#include "scripted_host.h"

#include "core/last_copies.h"
#include "core/slab_away.h"
#include "core/slab_rebuild.h"

#define EXTENT_BYTES (HOST_SLAB_BYTES / 64)

static uint8_t out[HOST_CELL_BYTES];

static inline bool is_up(struct rbx_flow *flow, uint32_t server)
{
	struct host *host = RBX_CONTAINER_OF(flow, struct host, flow);

	return !host->servers[server].down;
}

static inline struct host *make(uint32_t replicas, uint32_t servers)
{
	struct host *host = host_make(1, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	return host;
}

static inline bool falls_silent(struct host *host, uint32_t server)
{
	host->servers[server].down = true;
	rbx_upkeep_server_silent(&host->upkeep, server);
	return rbx_last_copies_hold(&host->flow, server, is_up);
}

static inline void is_back(struct host *host, uint32_t server)
{
	host->servers[server].down = false;
	rbx_upkeep_server_back(&host->upkeep, server);
}

/* Without a round. */
static inline void write_at(struct host *host, uint64_t offset, uint8_t byte)
{
	memset(out, byte, 512);
	host_start(host, RBX_PIECE_WRITE, offset, out, 512);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
}

static inline uint8_t *memory_of(struct host *host, uint32_t slot)
{
	return (uint8_t *)(uintptr_t)rbx_replica_addr(rbx_slab_replica(host_slab(host, 0), slot));
}

static inline enum rbx_replica_state state_of(struct host *host, uint32_t slot)
{
	return rbx_slab_state(host_slab(host, 0), slot);
}

#endif
