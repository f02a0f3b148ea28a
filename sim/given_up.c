/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * given_up.c - worlds in whose end some servers are gone, and an operator gives them up.
 *
 * Nobody has the named volume open then, or its client lives on (given_up_beside.c).
 *
 * From then on each slab of which one of the others has all is read, with what was acknowledged
 * last. All other slabs fail, to be read and to be written, unless no data can have been lost. It
 * stays so when those given up are there again with their memory, even if a client that reached no
 * other server has had the volume from them, and has written. When what is lost was cleared, it is
 * zeros; and then those that are back come as new servers.
 *
 * If too few are left, one of these may have been OUT by what the others knew: a write has reached
 * some of them only, and is noted as behind. They are equal when the volume is open.
 *
 * If one more server is lost before the volume was opened again, it may have had the only copy of a
 * slab, and the volume stays shut.
 *
 * What servers have is looked at directly, before any of them is gone; or when a client that lives
 * on reaches only those, as it moves replicas until then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/named.h"
#include "core/extents.h"
#include "include/rdmabox/named_volume.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/given_up.h"
#include "sim/tally.h"
#include "sim/trace.h"

#define TRIES 600u
#define LOOK_AGAIN_NS (100 * RBX_SIM_MS)
/* A client that reaches only those given up has the volume so often. */
#define TIMES_FROM_GONE 3u

/* ---- The servers ------------------------------------------------------------------------- */

static void record_look(struct given_up *g)
{
	const struct rbx_named *named = g->client->volume->control.named;
	const struct rbx_wire_record *record = &named->record;
	uint32_t i, gone_count = 0, in_count = rbx_record_in_count(record);

	memcpy(g->name, record->name, sizeof(g->name));
	g->volume_id = record->volume_id;
	g->slabs_count = g->client->volume->control.flow.map->slab_count;
	for (i = 0; i < rbx_sim_world.servers_count; i++) {
		g->is_in[i] = rbx_record_is_in(
			record, rbx_sim_server_incarnation(rbx_sim_world.servers[i].node));
		gone_count += g->is_in[i] && g->is_gone[i];
	}
	g->copies = record->copies;
	g->gone_in_count = gone_count;
	g->left_in_count = in_count - gone_count;
	g->is_certain = in_count - gone_count >= in_count / 2 + 1;
	g->may_lose = !g->is_certain || gone_count >= record->copies;
}

/* Some of them, and never all. */
static void gone_draw(struct given_up *g)
{
	struct rbx_random *random = &g->client->random;
	uint32_t count = rbx_sim_world.servers_count;
	uint32_t left = rbx_random_below(random, count);
	uint32_t gone = (left + 1 + rbx_random_below(random, count - 1)) % count;

	for (uint32_t i = 0; i < count; i++) {
		g->is_gone[i] = i == gone || (i != left && rbx_random_below(random, 2));
		if (g->is_gone[i])
			g->gone[g->gone_count++] =
				rbx_sim_server_incarnation(rbx_sim_world.servers[i].node);
	}
}

static bool is_any_in_left(const struct given_up *g)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (g->is_in[i] && !g->is_gone[i])
			return true;
	return false;
}

void rbx_sim_given_up_find(struct given_up *g)
{
	g->is_found = calloc(g->slabs_count, sizeof(*g->is_found));
	if (!g->is_found)
		abort();
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		if (!g->is_in[i] || g->is_gone[i])
			continue;
		for (uint32_t slab = 0; slab < g->slabs_count; slab++)
			g->is_found[slab] |= rbx_sim_server_has_slab(&rbx_sim_world.servers[i],
								     g->volume_id, slab);
	}
}

static void gone_power(const struct given_up *g, bool on)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		if (!g->is_gone[i])
			continue;
		if (on)
			rbx_sim_server_start(&rbx_sim_world.servers[i]);
		else
			rbx_sim_server_power_off(&rbx_sim_world.servers[i]);
	}
}

/* Those that are left can be reached by nobody; or they can again. */
static void left_cut(const struct given_up *g, bool is_cut)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (!g->is_gone[i])
			rbx_sim_world.fabric->node_cut(rbx_sim_world.servers[i].node, is_cut);
}

static void gone_name(const struct given_up *g, char servers[RBX_SIM_SERVERS_TEXT])
{
	size_t at = 0;

	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (g->is_gone[i])
			at += (size_t)sprintf(servers + at, "%sn%u:7000", at ? "," : "",
					      rbx_sim_world.servers[i].node);
}

/* ---- The volume -------------------------------------------------------------------------- */

static int open_by_name(const struct given_up *g, struct rbx_volume **volume)
{
	struct rbx_volume_options options = g->client->volume_options;
	char servers[RBX_SIM_SERVERS_TEXT];

	rbx_sim_servers_name(servers, true);
	options.name = g->name;
	options.replicas = 1; /* as it was made */
	options.checksums = 0;
	options.take_over = true;
	options.event = NULL;
	return rbx_volume_open(g->ctx, volume, servers, 0, &options);
}

/* Servers that had power a moment ago are heard of as gone only later. */
static void opened(struct given_up *g)
{
	struct rbx_sim_client here;

	for (uint32_t i = 0; i < TRIES && open_by_name(g, &g->volume); i++) {
		g->volume = NULL;
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
	if (!g->volume)
		rbx_sim_fail("given-up", "the volume cannot be opened: %s", rbx_last_error());
	here = *g->client;
	here.volume = g->volume;
	rbx_sim_replicas_compare(&here, RBX_SIM_TALLY_replicas_at_open);
	if (!g->lives_on)
		g->client->volume = g->volume;
}

void rbx_sim_given_up_close(struct given_up *g)
{
	struct rbx_volume *volume = g->lives_on ? g->volume : rbx_sim_named_take(g->client);

	if (rbx_volume_close(volume))
		rbx_sim_fail("liveness", "client %u: %s", g->client->index, rbx_last_error());
	g->volume = NULL;
}

static bool is_zeros(const char *data, uint32_t length)
{
	return !data[0] && !memcmp(data, data + 1, length - 1);
}

static void slab_read(struct given_up *g, uint32_t slab, char *buf, uint32_t length)
{
	struct rbx_sim_client *client = g->client;
	uint64_t at = slab * rbx_sim_world.slab_bytes;
	uint64_t moment = rbx_sim_oracle_moment(client->oracle);
	bool is_lost = g->may_lose && !g->is_found[slab];
	int err = rbx_read(g->volume, buf, length, at);

	if (err != (is_lost && !g->is_cleared ? -EIO : 0))
		rbx_sim_fail("given-up", "slab %u, which was %s: a read ends with %d", slab,
			     g->is_found[slab] ? "found" : "not found", err);
	if (!is_lost)
		rbx_sim_oracle_read(client->oracle, at, buf, length, moment);
	else if (g->is_cleared && !is_zeros(buf, length))
		rbx_sim_fail("given-up", "slab %u was lost and cleared, and is no zeros", slab);
	rbx_sim_tally(RBX_SIM_TALLY_lost_by_decree, is_lost && err);
	rbx_sim_tally(RBX_SIM_TALLY_kept_by_decree, !is_lost);
}

/* A unit of it. */
static void slab_write(struct given_up *g, uint32_t slab, char *buf)
{
	struct rbx_sim_client *client = g->client;
	uint32_t length = client->load.unit_bytes, number;
	uint64_t at = slab * rbx_sim_world.slab_bytes;
	int err;

	if (g->may_lose && !g->is_found[slab]) {
		memset(buf, 0xff, length);
		err = rbx_write(g->volume, buf, length, at);
		if (err != -EIO)
			rbx_sim_fail("given-up", "slab %u is lost: a write ends with %d", slab, err);
		return;
	}
	number = rbx_sim_oracle_write(client->oracle, at, buf, length);
	err = rbx_write(g->volume, buf, length, at);
	rbx_sim_oracle_written(client->oracle, at, length, number, err);
	if (err)
		rbx_sim_fail("given-up", "slab %u: a write ends with %d", slab, err);
}

void rbx_sim_given_up_read(struct given_up *g, bool writes)
{
	char *buf = malloc(rbx_sim_world.slab_bytes);

	if (!buf)
		abort();
	opened(g);
	for (uint32_t i = 0; i < g->slabs_count; i++) {
		uint64_t left = g->client->size_bytes - i * rbx_sim_world.slab_bytes;

		slab_read(g, i, buf, (uint32_t)RBX_MIN(left, rbx_sim_world.slab_bytes));
		if (writes)
			slab_write(g, i, buf);
	}
	free(buf);
}

/* ---- The operator ------------------------------------------------------------------------ */

static int give_up_once(struct given_up *g, bool force)
{
	char servers[RBX_SIM_SERVERS_TEXT];

	rbx_sim_servers_name(servers, true);
	return rbx_volume_give_up(g->ctx, servers, g->name, g->gone, g->gone_count, force);
}

/* Whether one more server is needed that may have the only copy of a slab. */
static void one_more_is_needed(struct given_up *g)
{
	struct rbx_sim_server *server = rbx_sim_world.servers;
	struct rbx_volume *volume;

	if (g->copies > g->gone_in_count + 1 || g->left_in_count < 3)
		return;
	while (!g->is_in[server - rbx_sim_world.servers] ||
	       g->is_gone[server - rbx_sim_world.servers])
		server++;
	rbx_sim_server_power_off(server);
	if (!open_by_name(g, &volume))
		rbx_sim_fail("given-up", "the volume was opened, and a server is missing that may have the only copy of a slab");
	rbx_sim_server_start(server);
}

void rbx_sim_give_up_at_last(struct given_up *g)
{
	uint32_t tries = 0;

	/* Sessions that have ended are heard of as such later: until then somebody has it open. */
	while (!g->is_certain && give_up_once(g, false) != -EHOSTUNREACH && tries++ < TRIES)
		rbx_sim_sleep(LOOK_AGAIN_NS);
	while (tries < TRIES && give_up_once(g, !g->is_certain || g->lives_on) < 0 &&
	       tries++ < TRIES)
		rbx_sim_sleep(LOOK_AGAIN_NS);
	if (tries >= TRIES)
		rbx_sim_fail("given-up", "servers cannot be given up: %s", rbx_last_error());
	g->is_given_up = true;
}

static void *give_up(void *arg)
{
	struct given_up *g = arg;

	rbx_sim_give_up_at_last(g);
	one_more_is_needed(g);
	rbx_sim_given_up_read(g, true);
	rbx_sim_given_up_close(g);
	return NULL;
}

/* ---- What those left do not know ------------------------------------------------------------ */

/* A write has reached one of two replicas, and the other one is noted as behind. */
static void leave_behind(struct given_up *g, uint32_t slab)
{
	uint32_t length = g->client->load.unit_bytes, number;
	uint64_t at = slab * rbx_sim_world.slab_bytes;
	uint64_t extents = rbx_extents_of(0, length, (uint32_t)__builtin_ctzll(
							     rbx_sim_world.slab_bytes));
	void *first = NULL, *here;

	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		if (!g->is_in[i] || g->is_gone[i])
			continue;
		here = rbx_sim_server_slab(&rbx_sim_world.servers[i], g->volume_id, slab, 0);
		if (here && first) {
			number = rbx_sim_oracle_write(g->client->oracle, at, here, length);
			rbx_sim_oracle_written(g->client->oracle, at, length, number, -EIO);
			(void)rbx_sim_server_slab(&rbx_sim_world.servers[i], g->volume_id, slab,
						  extents);
			return;
		}
		first = first ? first : here;
	}
}

static void some_left_behind(struct given_up *g)
{
	if (g->is_certain || g->client->volume_options.checksums)
		return;
	for (uint32_t slab = 0; slab < g->slabs_count; slab++)
		leave_behind(g, slab);
}

/* They may be enough for the record of before. What is written so is seen by nobody else. */
static void *write_at_gone(void *arg)
{
	struct given_up *g = arg;
	uint32_t length = g->client->load.unit_bytes;
	struct rbx_volume *volume;
	char *buf = malloc(length);

	if (!buf)
		abort();
	memset(buf, 0xff, length);
	for (uint32_t times = 0; times < TIMES_FROM_GONE; times++) {
		if (open_by_name(g, &volume))
			break;
		rbx_sim_tally(RBX_SIM_TALLY_opened_by_gone, 1);
		for (uint32_t i = 0; i < g->slabs_count; i++)
			(void)rbx_write(volume, buf, length, i * rbx_sim_world.slab_bytes);
		(void)rbx_volume_close(volume);
	}
	free(buf);
	return NULL;
}

static void *go_on(void *arg)
{
	char servers[RBX_SIM_SERVERS_TEXT], gone[RBX_SIM_SERVERS_TEXT];
	struct given_up *g = arg;
	struct rbx_context *ctx = g->ctx;

	rbx_sim_servers_name(servers, true);
	gone_name(g, gone);
	rbx_sim_given_up_read(g, true);
	rbx_sim_given_up_close(g);
	if (rbx_volume_clear_lost(ctx, servers, g->name))
		rbx_sim_fail("given-up", "what is lost cannot be cleared: %s", rbx_last_error());
	g->is_cleared = true;
	if (rbx_volume_members_add(ctx, servers, g->name, gone))
		rbx_sim_fail("given-up", "servers that are back cannot come: %s", rbx_last_error());
	rbx_sim_given_up_read(g, false);
	return NULL;
}

static void *close_it(void *arg)
{
	rbx_sim_given_up_close(arg);
	return NULL;
}

static void give_up_alone(struct given_up *g)
{
	rbx_sim_on(g->client->node, close_it, g);
	rbx_sim_given_up_find(g);
	some_left_behind(g);
	gone_power(g, false);
	rbx_sim_on(g->client->node, give_up, g);
	gone_power(g, true);
}

/* With one replica nobody tells a client that it has lost its volume (docs/named-volumes.md). */
static bool lives_on(const struct given_up *g)
{
	return g->is_certain && g->client->volume->control.keeper &&
	       rbx_sim_world.fabric->pair_cut && rbx_sim_world.fabric->node_fence &&
	       rbx_random_below(&g->client->random, 2);
}

void rbx_sim_given_up(struct rbx_sim_client *client)
{
	struct given_up g = {
		.client = client,
		.ctx = client->ctx,
		.node = 1 + rbx_sim_world.servers_count + rbx_sim_world.clients_count +
			client->index,
	};

	if (!rbx_sim_world.gives_up || rbx_sim_world.servers_count < 2)
		return;
	gone_draw(&g);
	record_look(&g);
	if (!is_any_in_left(&g))
		return;
	g.lives_on = lives_on(&g);
	RBX_SIM_TRACE(client->node, "given-up", "certain", g.is_certain, "lives-on", g.lives_on);
	rbx_sim_tally(RBX_SIM_TALLY_given_up, 1);
	if (g.lives_on)
		rbx_sim_give_up_beside(&g);
	else
		give_up_alone(&g);
	left_cut(&g, true);
	rbx_sim_on(client->node, write_at_gone, &g);
	left_cut(&g, false);
	rbx_sim_on(client->node, go_on, &g);
	free(g.is_found);
}
