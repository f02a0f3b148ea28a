/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * check.c - checks invariants after every event.
 *
 * Between two events no fiber runs, so the state may be read without locks. But a fiber may
 * be in the middle of a step, so only what holds at every moment is checked here. load.c
 * checks each request, hands.c each registration, and the device each work request.
 */
#include <inttypes.h>

#include "core/lender.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/tally.h"
#include "sim/world.h"

/*
 * What is in flight is within the program's limits, in bytes and in work requests, except for
 * a single one that is larger; and credit was taken for all of it. Credit itself may exceed
 * the limit for a moment: it is added first, and taken back if it was too much.
 */
static void check_window(const struct rbx_sim_client *client)
{
	const struct rbx_window *window = &client->ctx->window;
	uint32_t most = client->options.window_work_requests;
	uint32_t work_requests;
	uint64_t bytes;

	if (!rbx_window_has_room(window, RBX_PAGE_BYTES))
		rbx_sim_tally(RBX_SIM_TALLY_windows_full, 1);
	if (!rbx_sim_world.fabric->in_flight)
		return;
	rbx_sim_world.fabric->in_flight(client->node, &bytes, &work_requests);
	if (work_requests > 1 && (bytes > client->window_bytes ||
				  (most != 0 && work_requests > most)))
		rbx_sim_fail("window", "client %u: %" PRIu64 " bytes of %" PRIu64 ", %u work requests of %u in flight",
			     client->index, bytes, client->window_bytes,
			     work_requests, most);
	if (bytes > rbx_window_in_flight_bytes(window) ||
	    work_requests > rbx_window_in_flight_work_requests(window))
		rbx_sim_fail("window", "client %u: %" PRIu64 " bytes in flight with credit for %" PRIu64,
			     client->index, bytes,
			     rbx_window_in_flight_bytes(window));
}

/* No slab of a server is used in two places: not here and in one of those that follow. What comes
 * before has looked at this one. */
static void check_slab(const struct rbx_sim_client *client,
		       const struct rbx_slab *slab, uint32_t slot)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	const struct rbx_replica *mine = rbx_slab_replica(slab, slot);

	for (uint32_t i = rbx_slab_index(slab); i < map->slab_count; i++) {
		const struct rbx_slab *other = rbx_slab_at(&map->shape, i);

		for (uint32_t j = 0; j < map->shape.slots; j++) {
			const struct rbx_replica *theirs;
			bool is_lost;

			if (rbx_slab_state(other, j) < RBX_REPLICA_REBUILDING)
				continue;
			theirs = rbx_slab_replica(other, j);
			/* First what decides it for most. */
			if (theirs == mine || (other != slab && theirs->slab_id != mine->slab_id) ||
			    rbx_replica_server(theirs) != rbx_replica_server(mine))
				continue;
			is_lost = rbx_slab_state(slab, slot) == RBX_REPLICA_LOST ||
				  rbx_slab_state(other, j) == RBX_REPLICA_LOST;
			if (theirs->slab_id == mine->slab_id &&
			    theirs->epoch == mine->epoch)
				rbx_sim_fail("one-hand", "client %u: slabs %u and %u are the same",
					     client->index, rbx_slab_index(slab),
					     rbx_slab_index(other));
			if (theirs->slab_id == mine->slab_id && !is_lost)
				rbx_sim_fail("twin-loan", "client %u: slabs %u and %u are on two loans of the same",
					     client->index, rbx_slab_index(slab),
					     rbx_slab_index(other));
			if (other == slab && !is_lost)
				rbx_sim_fail("replicas-apart", "client %u: two replicas of slab %u on one server",
					     client->index, rbx_slab_index(slab));
		}
	}
}

/* One slab each time, in turn: over a run each of them many times. */
static void check_next_slab(const struct rbx_sim_client *client)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	const struct rbx_slab *slab =
		rbx_slab_at(&map->shape, rbx_sim_events_run() % map->slab_count);
	uint8_t read_mask = 0, write_mask = 0;

	for (uint32_t i = 0; i < map->shape.slots; i++) {
		uint8_t state = rbx_slab_state(slab, i);

		if (state == RBX_REPLICA_LIVE || state == RBX_REPLICA_LEAVING)
			read_mask |= (uint8_t)(1u << i);
		if (state == RBX_REPLICA_REBUILDING || state == RBX_REPLICA_RETURNED)
			write_mask |= (uint8_t)(1u << i);
		if ((state == RBX_REPLICA_AWAY) > slab->has_away)
			rbx_sim_fail("replica-masks", "client %u: slab %u forgets what is away",
				     client->index, rbx_slab_index(slab));
		if (state >= RBX_REPLICA_REBUILDING)
			check_slab(client, slab, i);
	}
	if (rbx_sim_world.racks_count)
		rbx_sim_racks_check(client, slab);
	rbx_sim_tally(RBX_SIM_TALLY_slabs_looked_at, 1);
	write_mask |= read_mask;
	rbx_sim_tally(RBX_SIM_TALLY_holes_looked_at,
		      slab->has_holes && slab->read_mask);
	/* Memory borrowed for a blank or a dead slab is about to be used, or was discarded. */
	if (slab->blank || slab->placing)
		read_mask = write_mask = 0;
	if (read_mask != slab->read_mask || write_mask != slab->write_mask)
		rbx_sim_fail("replica-masks", "client %u: slab %u reads %#x of %#x and writes %#x of %#x",
			     client->index, rbx_slab_index(slab), slab->read_mask,
			     read_mask, slab->write_mask, write_mask);
}

/* A server that has restarted may lend with exactly the values of the one before. */
static bool is_used(const struct rbx_volume *volume, uint64_t incarnation,
		    const struct rbx_lender_loan *loan)
{
	const struct rbx_volume_map *map = volume->control.flow.map;

	for (uint32_t i = 0; map && i < map->slab_count * map->shape.slots;
	     i++) {
		const struct rbx_slab *slab =
			rbx_slab_at(&map->shape, i / map->shape.slots);
		uint32_t slot = i % map->shape.slots;
		const struct rbx_replica *replica;

		if (rbx_slab_state(slab, slot) < RBX_REPLICA_REBUILDING ||
		    rbx_slab_state(slab, slot) == RBX_REPLICA_LOST)
			continue;
		replica = rbx_slab_replica(slab, slot);
		if (replica->slab_id == loan->slab_id &&
		    replica->epoch == loan->epoch &&
		    rbx_upkeep_server_incarnation(&volume->control.upkeep,
						  rbx_replica_server(replica)) == incarnation)
			return true;
	}
	return false;
}

void rbx_sim_check_unused(uint32_t server_node,
			  const struct rbx_lender_loan *loan)
{
	uint64_t incarnation = rbx_sim_server_incarnation(server_node);

	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		const struct rbx_sim_client *client = &rbx_sim_world.clients[i];

		if (client->volume && incarnation &&
		    is_used(client->volume, incarnation, loan))
			rbx_sim_fail("loan-in-use", "client %u: a resume ends slab %" PRIu64 " of server %u, which it uses",
				     client->index, loan->slab_id,
				     server_node);
	}
}

void rbx_sim_check(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rbx_sim_client *client = &rbx_sim_world.clients[i];

		if (!client->ctx || !client->volume)
			continue;
		check_window(client);
		rbx_sim_outage_look(client);
		if (!rbx_sim_world.may_lose && !rbx_sim_world.may_fail)
			rbx_sim_first_copies_look(client);
		if (!rbx_sim_world.is_quiet || rbx_sim_events_run() % 64 == 0)
			check_next_slab(client);
	}
}
