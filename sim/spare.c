/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spare.c - which servers can be spared: harm.c ends none, and empties none, without which a volume
 * could not be read or opened any more.
 */
#include "core/limits.h"
#include "sim/world.h"

bool rbx_sim_all_survive_a_loss(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (!rbx_sim_client_survives_a_loss(&rbx_sim_world.clients[i]))
			return false;
	return true;
}

static bool any_needs_all(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rbx_sim_named_needs_all(&rbx_sim_world.clients[i]))
			return true;
	return false;
}

/* For a server that ends or drains it matters in worlds with a store alone: elsewhere more stay
 * than a volume needs. */
static bool any_announced_needs_all(void)
{
	return rbx_sim_world.has_store && any_needs_all();
}

/* A server that was started anew may be a member beside its former self, which is OUT, if a client
 * did not know which one that was (client/emptied.h). The next open takes the former one for one
 * that it does not find, so until it is forgotten no other server may end; nor before one has come
 * that will be a member in this way: it may become one while the other server ends. */
static bool any_has_former_members(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rbx_sim_named_members(&rbx_sim_world.clients[i]) +
			    rbx_sim_named_strangers(&rbx_sim_world.clients[i]) >
		    rbx_sim_world.servers_count)
			return true;
	return false;
}

bool rbx_sim_may_be_emptied(void)
{
	return rbx_sim_servers_up() > 2 && !any_has_former_members() &&
	       rbx_sim_all_survive_a_loss() && !any_needs_all();
}

/* As many stay as a rebuild needs. */
bool rbx_sim_may_be_one_fewer(void)
{
	return rbx_sim_servers_up() > RBX_REPLICAS_MAX && !any_has_former_members() &&
	       !any_announced_needs_all();
}

bool rbx_sim_may_end(void)
{
	return rbx_sim_may_be_one_fewer() &&
	       (!rbx_sim_world.is_named || rbx_sim_all_survive_a_loss());
}

bool rbx_sim_may_stop(void)
{
	return !rbx_sim_world.is_named ||
	       (rbx_sim_all_survive_a_loss() && !any_announced_needs_all());
}
