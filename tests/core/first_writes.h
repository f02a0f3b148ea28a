/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * first_writes.h - writes to slabs that are not lent yet, against a scripted host, and
 * rounds while the clock stands.
 */
#ifndef RBX_TESTS_CORE_FIRST_WRITES_H
#define RBX_TESTS_CORE_FIRST_WRITES_H

#include "tests/core/scripted_host.h"

#define QUARTER_NS (HOST_TIMEOUT_NS / 4)

static inline struct rbx_extents *extents_of(struct host *host)
{
	return host->flow.map->shape.groups[0].extents;
}

static inline void first_write(struct host *host, uint32_t slab)
{
	static uint8_t out[512];

	host_start(host, RBX_PIECE_WRITE, slab * HOST_SLAB_BYTES, out,
		   sizeof(out));
}

/* Rounds without the clock, as an upkeep thread makes them that is woken. */
static inline void rounds(struct host *host)
{
	do {
		host->wakes_count = 0;
		(void)host_round(host);
		while (host_poll(host))
			;
	} while (host->wakes_count);
}

/* One of two servers has been asked and does not answer; returns which. */
static inline uint32_t make_slow(struct host *host)
{
	host->servers[0].is_slow = host->servers[1].is_slow = true;
	first_write(host, 0);
	rounds(host);
	host->servers[0].is_slow = host->servers[0].is_asked;
	host->servers[1].is_slow = host->servers[1].is_asked;
	return host->servers[1].is_slow;
}

/* The record of a named volume says that it is out. */
static inline void host_is_out(struct host *host, uint32_t server)
{
	rbx_upkeep_server_down(&host->upkeep, server);
	rbx_flow_go_on(&host->flow, rbx_held_out(&host->flow.held, server));
}

/* The server answers all that it was asked, and with that so many writes end well. */
static inline void answers_and_ends(struct host *host, uint32_t server, uint32_t count)
{
	host->servers[server].is_slow = false;
	rounds(host);
	assert_int_equal(host_ended(host, 0), count);
}

#endif
