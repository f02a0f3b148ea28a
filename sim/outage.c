/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * outage.c - worlds in which more servers are away together than a named volume can do without:
 * they are cut off, or restart with their memory files, or the client is cut off from all.
 *
 * Requests may fail meanwhile, and nothing that was acknowledged is lost. A slab whose first write
 * was under way may be of no use until the volume is opened again (core/upkeep_first.c). A request
 * fails only if its slab is of no use, or if meanwhile its volume was over, or one of the servers
 * was given up or had FAILED. A client that goes on finds the same servers again, as long as no
 * other one has opened the volume (client/keeper_over.c).
 * So when the world has healed, each volume that is open serves all requests again, without being
 * opened anew.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/keeper_state.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define AWAY_NS_MAX (14000 * RBX_SIM_MS)
/* Instead of servers the client is away. */
#define ONE_IN_CLIENT 3u
/* One in so many servers stays. */
#define ONE_IN_STAYS 4u
/* Servers that have FAILED are tried every few seconds (lib/volume/joins.c). */
#define GOES_ON_NS (120000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (50 * RBX_SIM_MS)

static uint64_t draw_below(uint64_t most)
{
	return rbx_sim_site_draw(RBX_SIM_SITE_outage, 0, most - 1);
}

/* Together, and back one after another. */
void rbx_sim_outages_harm(void)
{
	struct rbx_sim_client *client =
		&rbx_sim_world.clients[draw_below(rbx_sim_world.clients_count)];

	if (!rbx_sim_site(RBX_SIM_SITE_outage))
		return;
	if (!draw_below(ONE_IN_CLIENT)) {
		rbx_sim_client_cut(client, draw_below(AWAY_NS_MAX));
		return;
	}
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (draw_below(ONE_IN_STAYS) && rbx_sim_world.servers[i].server)
			rbx_sim_harm_cut(&rbx_sim_world.servers[i], draw_below(AWAY_NS_MAX));
}

static bool is_over(const struct rbx_sim_client *client)
{
	return rbx_keeper_is_over(client->volume->control.keeper);
}

/* Its replicas are about to be taken from its former place to the new one
 * (client/keeper_again.c). */
static bool is_coming_from(const struct rbx_keeper *keeper, uint32_t server)
{
	return keeper->newcomer.has_begun && keeper->newcomer.failed_place == server;
}

/* A server that has come again, or is OUT, has left its former place. */
static bool any_is_away(const struct rbx_volume_control *control)
{
	const struct rbx_keeper *keeper = control->keeper;

	for (uint32_t i = 0; i < control->server_count; i++)
		if ((rbx_server_set_has(&keeper->members, i) || is_coming_from(keeper, i)) &&
		    (RBX_LOAD_RELAXED(&control->servers[i].has_failed) ||
		     RBX_LOAD_RELAXED(&control->servers[i].is_given_up)))
			return true;
	return false;
}

/* Without a lock: no fiber runs meanwhile. */
static bool has_failed(const struct rbx_held *held, uint32_t server)
{
	return !rbx_server_set_has(&held->out, server) &&
	       (held->ends || rbx_server_set_has(&held->failed, server));
}

/* Whether a server may be asked for what is in a slab: what is sent to one that has FAILED
 * fails. */
static bool is_readable(const struct rbx_flow *flow, uint32_t index)
{
	const struct rbx_slab *slab = rbx_slab_at(&flow->map->shape, index);

	for (uint32_t mask = slab->read_mask; mask; mask &= mask - 1)
		if (!has_failed(&flow->held,
				rbx_replica_server(rbx_slab_replica(
					slab, (uint32_t)__builtin_ctz(mask)))))
			return true;
	return slab->blank;
}

void rbx_sim_outage_look(struct rbx_sim_client *client)
{
	const struct rbx_flow *flow = &client->volume->control.flow;

	if (!rbx_sim_world.may_fail)
		return;
	if (is_over(client))
		client->over_at_ns = rbx_sim_now();
	if (any_is_away(&client->volume->control))
		client->away_at_ns = rbx_sim_now();
	RBX_ASSERT(flow->map->slab_count <= RBX_SIM_SLABS_MAX);
	for (uint32_t i = 0; i < flow->map->slab_count; i++)
		if (!is_readable(flow, i))
			client->unreadable_at_ns[i] = rbx_sim_now();
}

/* From its beginning on. A server that has the only replica may come again just before a read ends
 * that had been sent to its former place. */
static bool was_all_readable(const struct rbx_sim_client *client, const struct rbx_sim_slot *slot)
{
	const struct rbx_request *request = &slot->request;
	uint64_t last = request->offset + request->length_bytes - 1;
	uint64_t i;

	for (i = request->offset / rbx_sim_world.slab_bytes;
	     i <= last / rbx_sim_world.slab_bytes; i++)
		if (client->unreadable_at_ns[i] >= slot->at_ns ||
		    !is_readable(&client->volume->control.flow, (uint32_t)i))
			return false;
	return true;
}

/* Nothing is sent while the volume is over. Else a read ends well if any server can be asked that
 * has it, and a write only if none is away. */
bool rbx_sim_outage_excuses(const struct rbx_sim_client *client, const struct rbx_sim_slot *slot)
{
	const struct rbx_request *request = &slot->request;
	bool was_over, were_away;

	if (!rbx_sim_world.may_fail || request->status != -EIO)
		return false;
	was_over = client->over_at_ns >= slot->at_ns || is_over(client);
	were_away = client->away_at_ns >= slot->at_ns || any_is_away(&client->volume->control);
	if (!was_over && (request->op == RBX_READ || !were_away) &&
	    was_all_readable(client, slot))
		return false;
	rbx_sim_tally(RBX_SIM_TALLY_away_requests, 1);
	return true;
}

/* ---- When all are there again ------------------------------------------------------------ */

struct probe {
	struct rbx_sim_client *client;
	uint64_t at;
	int status;
};

static void *write_and_read(void *arg)
{
	struct probe *probe = arg;
	struct rbx_sim_client *client = probe->client;
	uint32_t length = client->load.unit_bytes;
	char *buf = malloc(length);
	uint64_t moment;
	uint32_t number;

	if (!buf)
		abort();
	number = rbx_sim_oracle_write(client->oracle, probe->at, buf, length);
	probe->status = rbx_write(client->volume, buf, length, probe->at);
	rbx_sim_oracle_written(client->oracle, probe->at, length, number, probe->status);
	moment = rbx_sim_oracle_moment(client->oracle);
	if (!probe->status)
		probe->status = rbx_read(client->volume, buf, length, probe->at);
	if (!probe->status)
		rbx_sim_oracle_read(client->oracle, probe->at, buf, length, moment);
	free(buf);
	return NULL;
}

static bool has_writes(const struct rbx_sim_client *client, uint64_t at)
{
	return rbx_sim_oracle_has_writes(client->oracle, at, rbx_sim_world.slab_bytes);
}

/* A page of each slab. */
static void goes_on(struct rbx_sim_client *client)
{
	uint64_t until_ns = rbx_sim_now() + GOES_ON_NS;
	struct probe probe = { .client = client };

	while (probe.at < client->size_bytes) {
		rbx_sim_on(client->node, write_and_read, &probe);
		if (probe.status == 0 ||
		    (!is_readable(&client->volume->control.flow,
				  (uint32_t)(probe.at / rbx_sim_world.slab_bytes)) &&
		     !has_writes(client, probe.at))) {
			probe.at += rbx_sim_world.slab_bytes;
			continue;
		}
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("goes-on", "client %u: requests fail long after all healed: %d",
				     client->index, probe.status);
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}

void rbx_sim_outage_over(void)
{
	for (uint32_t i = 0; rbx_sim_world.may_fail && i < rbx_sim_world.clients_count; i++)
		goes_on(&rbx_sim_world.clients[i]);
}
