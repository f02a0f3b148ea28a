/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * given_up_beside.c - servers are given up while the client of the volume lives on.
 *
 * It reaches only those that are gone, from when the operator asks the others for the volume: it
 * hears nothing of that, and ends by itself. When the operator has heard that it has happened, the
 * machine of that client neither reads nor writes any more: the device looks.
 */
#include <stdlib.h>

#include "include/rdmabox/named_volume.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/given_up.h"

#define THINK_NS_MAX (20 * RBX_SIM_MS)

static void late_check(const struct given_up *g, bool is_late, int err)
{
	if (is_late && !err)
		rbx_sim_fail("fenced", "client %u reads or writes at servers that were given up",
			     g->client->index);
}

static void client_reads(struct given_up *g, char *buf, uint32_t length, uint64_t at)
{
	uint64_t moment = rbx_sim_oracle_moment(g->client->oracle);
	bool is_late = g->is_given_up;
	int err = rbx_read(g->client->volume, buf, length, at);

	late_check(g, is_late, err);
	if (!err)
		rbx_sim_oracle_read(g->client->oracle, at, buf, length, moment);
}

static void client_writes(struct given_up *g, char *buf, uint32_t length, uint64_t at)
{
	struct rbx_sim_oracle *oracle = g->client->oracle;
	bool is_late = g->is_given_up;
	uint32_t number = is_late ? 0 : rbx_sim_oracle_write(oracle, at, buf, length);
	int err = rbx_write(g->client->volume, buf, length, at);

	late_check(g, is_late, err);
	if (!is_late)
		rbx_sim_oracle_written(oracle, at, length, number, err);
}

static void *client_lives(void *arg)
{
	struct given_up *g = arg;
	struct rbx_random *random = &g->client->random;
	uint32_t length = g->client->load.unit_bytes;
	char *buf = malloc(length);

	if (!buf)
		abort();
	while (!g->is_over) {
		uint64_t at = length * rbx_sim_between(random, 0,
						       g->client->size_bytes / length - 1);

		if (rbx_random_below(random, 2))
			client_reads(g, buf, length, at);
		else
			client_writes(g, buf, length, at);
		rbx_sim_sleep(rbx_sim_between(random, 0, THINK_NS_MAX));
	}
	free(buf);
	(void)rbx_volume_close(rbx_sim_named_take(g->client));
	return NULL;
}

/* The client reaches those that are left. */
static void client_divide(const struct given_up *g, bool is_cut)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (!g->is_gone[i])
			rbx_sim_world.fabric->pair_cut(g->client->node,
						       rbx_sim_world.servers[i].node, is_cut);
}

/* And the operator those that are gone. */
static void operator_divide(const struct given_up *g, bool is_cut)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (g->is_gone[i])
			rbx_sim_world.fabric->pair_cut(g->node, rbx_sim_world.servers[i].node,
						       is_cut);
}

/* Whose client does not know yet that it is shut out. */
static struct given_up *asked_for;

void rbx_sim_given_up_asked(void)
{
	if (!asked_for || asked_for->node != rbx_sim_node())
		return;
	client_divide(asked_for, true);
	rbx_sim_given_up_find(asked_for);
	asked_for = NULL;
}

static void *give_up_elsewhere(void *arg)
{
	struct given_up *g = arg;
	struct rbx_options options = g->client->options;

	if (!options.pollers)
		options.pollers = 1;
	if (rbx_open(&g->ctx, &options))
		rbx_sim_fail("start", "the operator: %s", rbx_last_error());
	rbx_sim_give_up_at_last(g);
	rbx_sim_world.fabric->node_fence(g->client->node, true);
	rbx_sim_given_up_read(g, true);
	rbx_sim_given_up_close(g);
	rbx_close(g->ctx);
	return NULL;
}

void rbx_sim_give_up_beside(struct given_up *g)
{
	struct rbx_sim_fiber *client;

	asked_for = g;
	operator_divide(g, true);
	client = rbx_sim_spawn(g->client->node, client_lives, g);
	rbx_sim_world.fabric->node_fence(g->node, false); /* a rival was there */
	rbx_sim_on(g->node, give_up_elsewhere, g);
	operator_divide(g, false);
	client_divide(g, false);
	rbx_sim_sleep(rbx_sim_between(&g->client->random, 0, 1000 * RBX_SIM_MS));
	g->is_over = true;
	(void)rbx_sim_join(client);
	rbx_sim_world.fabric->node_fence(g->client->node, false);
	g->lives_on = false;
	g->ctx = g->client->ctx;
}

