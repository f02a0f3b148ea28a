/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_join.c - servers that come into the pool become servers of a named volume that is open
 * (client/keeper_newcomer.c).
 *
 * If the servers are a list, those come that are OUT and can be reached again.
 *
 * A volume with one replica takes none: it has no record that could be changed while it is open.
 */
#include <string.h>

#include "client/keeper.h"
#include "lib/volume/named.h"

int rbx_volume_named_watch(struct rbx_volume *volume, const char *servers)
{
	if (!volume->control.keeper)
		return 0;
	volume->joins.only_returns = !rbx_pool_text_may_change(servers);
	return rbx_pool_open(&volume->joins.pool, servers);
}

/* The one at this address that is dead: what is there now is another one. */
static uint64_t former_of(const struct rbx_volume *volume, const char *address)
{
	const struct rbx_volume_control *control = &volume->control;
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (control->servers[i].peer &&
		    rbx_upkeep_server_is_down(&control->upkeep, i) &&
		    !strcmp(rbx_peer_name(control->servers[i].peer), address))
			return control->upkeep.servers[i].incarnation;
	return 0;
}

bool rbx_volume_named_may_return(const struct rbx_volume *volume)
{
	return rbx_keeper_any_is_out(volume->control.named);
}

int rbx_volume_named_join(struct rbx_volume *volume, uint32_t index, const char *address,
			  const char *labels, bool returns)
{
	struct rbx_volume_control *control = &volume->control;
	uint64_t former = former_of(volume, address);
	int err;

	if (!control->keeper)
		return rbx_error(-EOPNOTSUPP, "a named volume with one replica gets servers when no program has it open: rbx_volume_members_add()");
	if (index >= RBX_MEMBERS_MAX)
		return rbx_error(-ENOSPC, "a named volume has at most %u servers, including lost ones that are not replaced yet",
				 RBX_MEMBERS_MAX);
	if (!rbx_keeper_is_done_with(control->keeper, index))
		return rbx_error(-EAGAIN, "the server that had the place of %s is still waited for",
				 address);
	control->servers[index].is_newcomer = true;
	control->servers[index].is_to_return = returns;
	err = rbx_volume_server_add(volume, index, address, labels);
	control->servers[index].is_newcomer = false;
	if (err)
		return err;
	err = rbx_keeper_take(control->keeper, index, former);
	if (err)
		rbx_volume_server_drop(volume, index);
	return err;
}

void rbx_volume_named_join_no_more(struct rbx_volume *volume)
{
	if (volume->control.keeper)
		rbx_keeper_take_no_more(volume->control.keeper);
}
