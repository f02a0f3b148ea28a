/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * check.c - invariants after every event.
 *
 * Between two events no fiber runs, so the state may be looked at without locks;
 * but one may stand in the middle of a step. So only what holds at every moment
 * is demanded here. What is demanded of each request is in load.c, of each
 * registration in hands.c, of each work request in the device.
 */
#include <inttypes.h>

#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/world.h"

/* What all queue pairs of a client may hold, and one more for each thread that
 * has added and not yet taken back. */
static void check_window(const struct rbx_sim_client *client)
{
	const struct rbx_window *window = &client->ctx->window;
	uint32_t peers = client->ctx->peer_slots_used;
	uint32_t limit = peers * (client->options.queue_pairs * RBX_SEND_DEPTH +
				  2 * RBX_SIM_THREADS_MAX + RBX_PEERS_MAX);
	uint64_t in_flight = window->in_flight;

	if (in_flight >> 40 > limit)
		rbx_sim_fail("window", "client %u: %" PRIu64 " work requests in flight, %u are possible",
			     client->index, in_flight >> 40, limit);
}

/* No slab of a server is part of two. */
static void check_slab(const struct rbx_sim_client *client,
		       const struct rbx_slab *slab, uint32_t slot)
{
	const struct rbx_volume_map *map = client->volume->map;
	const struct rbx_replica *mine = &slab->replicas[slot];

	for (uint32_t i = 0; i < map->slab_count; i++) {
		const struct rbx_slab *other = &map->slabs[i];

		for (uint32_t j = 0; j < map->shape.slots; j++) {
			const struct rbx_replica *theirs = &other->replicas[j];

			if (theirs == mine ||
			    theirs->state < RBX_REPLICA_REBUILDING ||
			    theirs->server != mine->server)
				continue;
			if (theirs->loan.slab_id == mine->loan.slab_id &&
			    theirs->loan.epoch == mine->loan.epoch)
				rbx_sim_fail("one-hand", "client %u: slabs %u and %u are the same",
					     client->index, slab->index,
					     other->index);
			if (other == slab && theirs->state != RBX_REPLICA_LOST &&
			    mine->state != RBX_REPLICA_LOST)
				rbx_sim_fail("replicas-apart", "client %u: two replicas of slab %u on one server",
					     client->index, slab->index);
		}
	}
}

/* One slab each time, in turn: over a run all of them many times. */
static void check_next_slab(const struct rbx_sim_client *client)
{
	const struct rbx_volume_map *map = client->volume->map;
	const struct rbx_slab *slab =
		&map->slabs[rbx_sim_events_run() % map->slab_count];
	uint8_t read_mask = 0, write_mask = 0;

	for (uint32_t i = 0; i < map->shape.slots; i++) {
		uint8_t state = slab->replicas[i].state;

		if (state == RBX_REPLICA_LIVE || state == RBX_REPLICA_LEAVING)
			read_mask |= (uint8_t)(1u << i);
		if (state == RBX_REPLICA_REBUILDING)
			write_mask |= (uint8_t)(1u << i);
		if (state >= RBX_REPLICA_REBUILDING)
			check_slab(client, slab, i);
	}
	write_mask |= read_mask;
	if (read_mask != slab->read_mask || write_mask != slab->write_mask)
		rbx_sim_fail("replica-masks", "client %u: slab %u reads %#x of %#x and writes %#x of %#x",
			     client->index, slab->index, slab->read_mask,
			     read_mask, slab->write_mask, write_mask);
}

void rbx_sim_check(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		const struct rbx_sim_client *client = &rbx_sim_world.clients[i];

		if (client->ctx == NULL || client->volume == NULL)
			continue;
		check_window(client);
		if (!rbx_sim_world.is_quiet || rbx_sim_events_run() % 64 == 0)
			check_next_slab(client);
	}
}
