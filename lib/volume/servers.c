/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - the memory servers of a volume: what they say unasked, and what the
 * upkeep borrows from them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/last_copies.h"
#include "lib/volume/volume.h"

/* ---- What they say unasked: told by the control thread ------------------------*/

static void peer_down(struct rbx_peer *peer, const char *reason, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	snprintf(server->reason, sizeof(server->reason), "%s", reason);
	rbx_upkeep_server_down(&volume->upkeep,
			       (uint32_t)(server - volume->servers));
}

static void peer_evict(struct rbx_peer *peer,
		       const struct rbx_eviction *eviction, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	rbx_upkeep_evict(&volume->upkeep, (uint32_t)(server - volume->servers),
			 eviction);
}

/* Its place may be given to another one meanwhile. */
static bool server_is_up(struct rbx_flow *flow, uint32_t server)
{
	struct rbx_volume *volume = rbx_volume_of_flow(flow);
	struct rbx_peer *peer;
	bool is_up;

	rbx_lock(&volume->upkeep.servers_lock);
	peer = volume->servers[server].peer;
	is_up = peer && rbx_peer_is_up(peer);
	rbx_unlock(&volume->upkeep.servers_lock);
	return is_up;
}

static bool peer_hold(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	return rbx_last_copies_hold(&volume->flow,
				    (uint32_t)(server - volume->servers),
				    server_is_up);
}

struct rbx_peer_events rbx_volume_peer_events(struct rbx_volume *volume,
					      uint32_t index)
{
	return (struct rbx_peer_events){
		.down = peer_down,
		.evict = peer_evict,
		.hold = peer_hold,
		.wait = rbx_last_copies_wait,
		.user = &volume->servers[index],
	};
}

/* ---- What the upkeep asks for -------------------------------------------------*/

static struct rbx_peer *peer_of(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_volume_of_upkeep(upkeep)->servers[server].peer;
}

static void server_ask(struct rbx_upkeep *upkeep, uint32_t server)
{
	rbx_peer_ask(peer_of(upkeep, server),
		     &rbx_volume_of_upkeep(upkeep)->servers[server].ask);
}

static int server_answer(struct rbx_upkeep *upkeep, uint32_t server,
			 struct rbx_loan *loan)
{
	return rbx_peer_answer(
		peer_of(upkeep, server),
		&rbx_volume_of_upkeep(upkeep)->servers[server].ask, loan);
}

static int server_unmap(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	return rbx_peer_unmap(peer_of(upkeep, server), loan);
}

static int server_check(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	return rbx_peer_check(peer_of(upkeep, server), loan);
}

static uint64_t server_free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_peer_free_bytes(peer_of(upkeep, server));
}

static void *memory_lend(struct rbx_upkeep *upkeep, size_t size)
{
	(void)upkeep;
	return malloc(size);
}

static void memory_take_back(struct rbx_upkeep *upkeep, void *memory)
{
	(void)upkeep;
	free(memory);
}

const struct rbx_upkeep_ops rbx_volume_upkeep_ops = {
	.ask = server_ask,
	.answer = server_answer,
	.unmap = server_unmap,
	.check = server_check,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = server_free_bytes,
	.tell = rbx_volume_tell,
};
