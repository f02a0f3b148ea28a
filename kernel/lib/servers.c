/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - the memory servers of a volume: what they say unasked, and what the
 * upkeep borrows from them.
 */
#include <linux/slab.h>

#include "core/last_copies.h"
#include "kernel/lib/volume.h"

/* ---- What they say unasked ----------------------------------------------------*/

static void peer_down(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	rbx_upkeep_server_down(&volume->upkeep,
			       (uint32_t)(server - volume->servers));
}

static void peer_evict(struct rbx_peer *peer,
		       const struct rbx_eviction *eviction, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	rbx_upkeep_evict(&volume->upkeep, (uint32_t)(server - volume->servers),
			 eviction);
}

static bool server_is_up(struct rbx_flow *flow, uint32_t server)
{
	return rbx_peer_is_up(rbx_volume_of_flow(flow)->servers[server].peer);
}

static bool peer_hold(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

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

/* ---- What the upkeep asks for ---------------------------------------------------*/

static struct rbx_session *session_of(struct rbx_upkeep *upkeep,
				      uint32_t server)
{
	return rbx_volume_of_upkeep(upkeep)->servers[server].peer->session;
}

static void server_ask(struct rbx_upkeep *upkeep, uint32_t server)
{
	rbx_session_ask(session_of(upkeep, server),
			&rbx_volume_of_upkeep(upkeep)->servers[server].ask);
}

static int server_answer(struct rbx_upkeep *upkeep, uint32_t server,
			 struct rbx_loan *loan)
{
	return rbx_session_answer(
		session_of(upkeep, server),
		&rbx_volume_of_upkeep(upkeep)->servers[server].ask, loan);
}

static int server_unmap(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	return rbx_session_unmap(session_of(upkeep, server), loan);
}

static int server_check(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	return rbx_session_check(session_of(upkeep, server), loan);
}

static uint64_t server_free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_session_free_bytes(session_of(upkeep, server));
}

/* By the keeper, which does no I/O for it: memory may have to be written here before
 * any is free. Without it writes of a lost slab end as those before them. */
static void *memory_lend(struct rbx_upkeep *upkeep, size_t size)
{
	return kvmalloc(size, GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
}

static void memory_take_back(struct rbx_upkeep *upkeep, void *memory)
{
	kvfree(memory);
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
	.tending = rbx_volume_trace_task,
};
