/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * comings.c - servers that come to named volumes which are open.
 *
 * A server that was started anew without its memory is offered to each client that has such a
 * volume open, by a thread of that client: so anything may happen while it comes. What comes of
 * that is counted, and how often a volume is over and goes on (client/keeper.h).
 */
#include <stdio.h>

#include "client/keeper_state.h"
#include "core/membership_change.h"
#include "sim/host/wrap.h"
#include "sim/tally.h"
#include "sim/world.h"

/* ---- Empty servers ------------------------------------------------------------------------ */

/* Refused by a volume that has it already, at once. */
static void *offer_all(void *arg)
{
	struct rbx_sim_client *client = arg;

	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		const struct rbx_sim_server *server = &rbx_sim_world.servers[i];
		char address[16];

		snprintf(address, sizeof(address), "n%u:7000", server->node);
		if (server->server && server->starts_count > 1)
			(void)rbx_volume_add_server(client->volume, address);
	}
	client->is_offered = false;
	return NULL;
}

void rbx_sim_comings_offer(struct rbx_sim_client *client)
{
	if (!client->is_open || client->is_offered || rbx_sim_world.has_store)
		return;
	rbx_sim_comings_join(client);
	client->is_offered = true;
	client->offers = rbx_sim_spawn(client->node, offer_all, client);
}

void rbx_sim_comings_join(struct rbx_sim_client *client)
{
	if (client->offers)
		(void)rbx_sim_join(client->offers);
	client->offers = NULL;
}

/* ---- What comes of it --------------------------------------------------------------------- */

int __wrap_rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former)
{
	bool is_new = rbx_membership_place(&keeper->named->proposer.membership,
					   rbx_upkeep_server_incarnation(
						   &keeper->control->upkeep, server)) ==
		      RBX_PLACE_NOT;
	int err = __real_rbx_keeper_take(keeper, server, former);

	rbx_sim_tally(RBX_SIM_TALLY_newcomers, !err && is_new);
	return err;
}

int __wrap_rbx_keeper_again(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place)
{
	int err = __real_rbx_keeper_again(keeper, server, failed_place);

	rbx_sim_tally(RBX_SIM_TALLY_came_again, !err);
	return err;
}

void __wrap_rbx_keeper_lose(struct rbx_keeper *keeper)
{
	rbx_sim_tally(RBX_SIM_TALLY_volumes_over, 1);
	__real_rbx_keeper_lose(keeper);
}

void __wrap_rbx_held_resume(struct rbx_held *held)
{
	rbx_sim_tally(RBX_SIM_TALLY_volumes_go_on, 1);
	__real_rbx_held_resume(held);
}
