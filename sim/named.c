/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.c - the named volume of a client: made, changed and opened again and again, and what a
 * client that crashes leaves to the next one.
 */
#include <stdio.h>
#include <string.h>

#include "client/keeper.h"
#include "client/named.h"
#include "include/rdmabox/named_volume.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/tally.h"
#include "sim/world.h"

static void name_of(const struct rbx_sim_client *client, bool other, char name[16])
{
	snprintf(name, 16, "%c%u", other ? 'w' : 'v', client->index);
}

static uint32_t out_count(const struct rbx_volume *volume)
{
	const struct rbx_named *named = volume->control.named;

	return named ? named->record.members_count - rbx_record_in_count(&named->record) : 0;
}

static uint32_t in_count(const struct rbx_volume *volume)
{
	const struct rbx_named *named = volume->control.named;

	return named ? rbx_record_in_count(&named->record) : 0;
}

static void left(struct rbx_sim_client *client)
{
	client->left_out_count = out_count(client->volume);
	client->left_in_count = in_count(client->volume);
	client->left_members_count = rbx_sim_named_members(client);
}

struct rbx_volume *rbx_sim_named_take(struct rbx_sim_client *client)
{
	struct rbx_volume *volume = client->volume;

	left(client);
	client->volume = NULL;
	return volume;
}

/* It is made smaller than it has to be. What a client has left that died meanwhile goes by itself,
 * as soon as servers know of its end. */
static int make(struct rbx_sim_client *client, const char *servers, const char *name)
{
	struct rbx_volume_create_options options;
	int err;

	rbx_volume_create_options_defaults(&options);
	options.replicas = client->volume_options.replicas;
	options.checksums = client->volume_options.checksums;
	options.reserve = client->is_reserved;
	err = rbx_volume_create(client->ctx, servers, name, RBX_PAGE_BYTES, &options);
	return err && err != -EEXIST ? err : -EAGAIN;
}

static int grow(struct rbx_sim_client *client, const char *servers, const char *name)
{
	int err = rbx_volume_close(rbx_sim_named_take(client));

	if (!err)
		err = rbx_volume_grow(client->ctx, servers, name, client->size_bytes);
	return err ? err : -EAGAIN;
}

/* Once in each life of a client. It may be refused, if a server is lost. */
static int rename_to_other(struct rbx_sim_client *client, const char *servers, const char *name)
{
	char new_name[16];
	int err;

	client->is_renamed = true;
	name_of(client, !client->has_other_name, new_name);
	err = rbx_volume_close(rbx_sim_named_take(client));
	if (!err)
		err = rbx_volume_rename(client->ctx, servers, name, new_name);
	rbx_sim_tally(RBX_SIM_TALLY_renames, err == 0);
	return err ? err : -EAGAIN;
}

void rbx_sim_returns_tally(struct rbx_volume *volume)
{
	struct rbx_upkeep *upkeep = &volume->control.upkeep;

	rbx_sim_tally(RBX_SIM_TALLY_extents_kept, upkeep->extents_kept);
	rbx_sim_tally(RBX_SIM_TALLY_extents_stale, upkeep->extents_stale);
	rbx_sim_tally(RBX_SIM_TALLY_came_back, upkeep->back_count);
	upkeep->extents_kept = upkeep->extents_stale = upkeep->back_count = 0;
}

void rbx_sim_named_returned(struct rbx_volume *volume)
{
	rbx_sim_tally(RBX_SIM_TALLY_returned, 1);
	rbx_sim_returns_tally(volume);
}

/* Who names a server that is away says that it is not just forgotten. */
static int open_by_name(struct rbx_volume_options options, const char *name,
			struct rbx_context *ctx, struct rbx_volume **volume)
{
	char servers[RBX_SIM_SERVERS_TEXT];

	rbx_sim_servers_name(servers, true);
	options.name = name;
	options.replicas = 1; /* as it was made */
	options.checksums = 0;
	options.take_over = !options.read_only;
	return rbx_volume_open(ctx, volume, servers, 0, &options);
}

static int open_by_either(const struct rbx_sim_client *client, struct rbx_volume_options options,
			  struct rbx_context *ctx, struct rbx_volume **volume)
{
	char name[16];
	int err;

	options.event = NULL;
	name_of(client, true, name);
	err = open_by_name(options, name, ctx, volume);
	if (err != -ENOENT)
		return err;
	name_of(client, false, name);
	return open_by_name(options, name, ctx, volume);
}

int rbx_sim_named_open_beside(const struct rbx_sim_client *client, struct rbx_context *ctx,
			      struct rbx_volume **volume)
{
	struct rbx_volume_options options = client->volume_options;

	options.read_only = true;
	return open_by_either(client, options, ctx, volume);
}

int rbx_sim_named_open_for(const struct rbx_sim_client *client, struct rbx_context *ctx,
			   struct rbx_volume **volume)
{
	return open_by_either(client, client->volume_options, ctx, volume);
}

static int open_as(struct rbx_sim_client *client, const char *name)
{
	struct rbx_volume *volume;
	int err;

	err = open_by_name(client->volume_options, name, client->ctx, &client->volume);
	if (err)
		return err;
	err = rbx_sim_rival_fence(client);
	if (err) {
		volume = rbx_sim_named_take(client);
		(void)rbx_volume_close(volume);
		return err;
	}
	client->has_other_name = client->volume->control.named->record.name[0] == 'w';
	rbx_sim_tally(RBX_SIM_TALLY_opened_without,
		      out_count(client->volume) > client->left_out_count);
	rbx_sim_returns_tally(client->volume);
	rbx_sim_replicas_opened(client);
	return 0;
}

/* A named volume is made at first, made larger, and renamed. Later it is taken from the client that
 * has crashed, unless that one did not come to make it; by whichever name it has. */
static int open_or_change(struct rbx_sim_client *client)
{
	char servers[RBX_SIM_SERVERS_TEXT], name[16];
	int err;

	rbx_sim_servers_name(servers, false);
	name_of(client, true, name);
	err = open_as(client, name);
	if (err == -ENOENT) {
		name_of(client, false, name);
		err = open_as(client, name);
	}
	if (err == -ENOENT && !client->is_made)
		return make(client, servers, name);
	if (err)
		return err;
	name_of(client, client->has_other_name, name);
	rbx_sim_growth_memory(client);
	if (client->is_made)
		rbx_sim_growth_opened(client);
	else if (rbx_volume_size(client->volume) < client->size_bytes)
		return grow(client, servers, name);
	if (!client->is_renamed)
		return rename_to_other(client, servers, name);
	return 0;
}

int rbx_sim_named_open(struct rbx_sim_client *client)
{
	int err = open_or_change(client);

	client->is_made |= err == 0;
	return err;
}

void rbx_sim_named_remove(struct rbx_sim_client *client)
{
	char servers[RBX_SIM_SERVERS_TEXT], name[16];

	rbx_sim_servers_name(servers, false);
	name_of(client, client->has_other_name, name);
	if (rbx_volume_remove(client->ctx, servers, name, false))
		rbx_sim_fail("given-back", "client %u: %s", client->index, rbx_last_error());
}

/* ---- What is left ------------------------------------------------------------------------ */

bool rbx_sim_named_is_said(const struct rbx_volume *volume)
{
	const struct rbx_named *named = volume ? volume->control.named : NULL;

	return !named || (rbx_named_is_chosen(named) &&
			  named->record.copies == named->record.replicas);
}

void rbx_sim_named_left(struct rbx_sim_client *client)
{
	const struct rbx_volume *volume = client->volume;

	client->left_all_copies = volume && rbx_sim_named_is_said(volume);
	if (volume)
		left(client);
}

/* With two it is opened by both. */
bool rbx_sim_named_needs_all(const struct rbx_sim_client *client)
{
	return (client->volume ? in_count(client->volume) : client->left_in_count) < 3;
}

/* It knows which member is, or was, at this address, if any. */
static bool knows_member_at(const struct rbx_volume *volume, const char *address)
{
	const struct rbx_volume_control *control = &volume->control;

	for (uint32_t i = 0; i < control->server_count; i++)
		if (control->servers[i].peer &&
		    !strcmp(rbx_peer_name(control->servers[i].peer), address) &&
		    rbx_record_has_member(&control->named->record,
					  rbx_upkeep_server_incarnation(&control->upkeep, i)))
			return true;
	return rbx_keeper_former_at(control->keeper, address) != 0;
}

uint32_t rbx_sim_named_strangers(const struct rbx_sim_client *client)
{
	const struct rbx_volume *volume = client->volume;
	uint32_t count = 0;

	if (!volume || !volume->control.keeper || rbx_sim_world.has_memory_files ||
	    rbx_sim_world.has_store)
		return 0;
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		const struct rbx_sim_server *server = &rbx_sim_world.servers[i];
		char address[16];

		snprintf(address, sizeof(address), "n%u:7000", server->node);
		if ((server->server || !server->is_for_good) &&
		    !rbx_record_has_member(&volume->control.named->record,
					   rbx_sim_server_incarnation(server->node)) &&
		    !knows_member_at(volume, address))
			count++;
	}
	return count;
}

uint32_t rbx_sim_named_members(const struct rbx_sim_client *client)
{
	const struct rbx_named *named = client->volume ? client->volume->control.named : NULL;

	return named ? named->record.members_count : client->left_members_count;
}
