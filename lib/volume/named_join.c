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

/* ---- Who was at the same address ------------------------------------------------------- */

static const char *name_at(const struct rbx_volume *volume, uint32_t index)
{
	return rbx_peer_name(volume->control.servers[index].peer);
}

static bool is_dead(const struct rbx_volume *volume, uint32_t index)
{
	return volume->control.servers[index].peer &&
	       rbx_upkeep_server_is_down(&volume->control.upkeep, index);
}

/* The one at this address that is dead: what is there now is another one, or that one again. */
static uint64_t former_of(const struct rbx_volume *volume, const char *address)
{
	uint32_t i;

	for (i = 0; i < volume->control.server_count; i++)
		if (is_dead(volume, i) && !strcmp(name_at(volume, i), address))
			return volume->control.upkeep.servers[i].incarnation;
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (volume->formers[i].incarnation && !strcmp(volume->formers[i].address, address))
			return volume->formers[i].incarnation;
	return 0;
}

/* The place of a dead one is about to be given away, perhaps for nothing: who is there next at its
 * address is still to take its place in the record. */
static void former_note(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_former *former = volume->formers;
	uint32_t i;

	if (!is_dead(volume, index))
		return;
	for (i = 0; i < RBX_MEMBERS_MAX - 1; i++, former++)
		if (!former->incarnation || !strcmp(former->address, name_at(volume, index)))
			break;
	former->incarnation = volume->control.upkeep.servers[index].incarnation;
	rbx_text_copy(former->address, sizeof(former->address), name_at(volume, index));
}

static void former_drop(struct rbx_volume *volume, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (volume->formers[i].incarnation == incarnation)
			volume->formers[i].incarnation = 0;
}

/* ---- They come --------------------------------------------------------------------------*/

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
	former_note(volume, index);
	control->servers[index].is_newcomer = true;
	control->servers[index].is_to_return = returns;
	err = rbx_volume_server_add(volume, index, address, labels);
	control->servers[index].is_newcomer = false;
	if (err)
		return err;
	err = rbx_keeper_take(control->keeper, index, former);
	if (err)
		rbx_volume_server_drop(volume, index);
	else
		former_drop(volume, former);
	return err;
}

void rbx_volume_named_join_no_more(struct rbx_volume *volume)
{
	if (volume->control.keeper)
		rbx_keeper_take_no_more(volume->control.keeper);
}
