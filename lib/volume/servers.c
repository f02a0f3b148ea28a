/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - the memory servers of a volume: connected to, what they say
 * unasked, and what the upkeep borrows from them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/volume/volume.h"

/* ---- What they say unasked: told by the control thread ------------------------*/

static void peer_down(struct rbx_peer *peer, const char *reason, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	snprintf(server->reason, sizeof(server->reason), "%s", reason);
	rbx_upkeep_server_down(&volume->upkeep,
			       (uint32_t)(server - volume->servers));
}

static void peer_evict(struct rbx_peer *peer, uint64_t slab_id,
		       uint32_t grace_ms, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	(void)grace_ms; /* we are as quick as we can be */
	rbx_upkeep_evict(&volume->upkeep, (uint32_t)(server - volume->servers),
			 slab_id);
}

/* ---- Connecting ---------------------------------------------------------------*/

static bool is_in_use(const struct rbx_volume *volume, const char *address)
{
	uint32_t i;

	for (i = 0; i < RBX_SERVERS_MAX && volume->servers[i].peer; i++)
		if (!rbx_upkeep_server_is_down(&volume->upkeep, i) &&
		    !strcmp(rbx_peer_address(volume->servers[i].peer), address))
			return true;
	return false;
}

int rbx_volume_server_open(struct rbx_volume *volume, uint32_t index,
			   const char *address)
{
	struct rbx_volume_server *server = &volume->servers[index];
	struct rbx_peer_events events = {
		.down = peer_down,
		.evict = peer_evict,
		.user = server,
	};
	int err;

	/* Two replicas on one server would be lost together. */
	if (is_in_use(volume, address))
		return rbx_error(-EINVAL, "server %s is named twice", address);
	server->volume = volume;
	rbx_upkeep_server_begins(&volume->upkeep, index);
	err = rbx_peer_open(volume->ctx, address, &events, &server->peer);
	if (err)
		server->peer = NULL;
	return err;
}

void rbx_volume_server_close(struct rbx_volume *volume, uint32_t index)
{
	rbx_peer_close(volume->servers[index].peer);
	volume->servers[index].peer = NULL;
}

void rbx_volume_servers_close(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < RBX_SERVERS_MAX && volume->servers[i].peer; i++)
		rbx_volume_server_close(volume, i);
}

int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers,
			    uint32_t *count)
{
	char *list = strdup(servers);
	char *rest = list, *address;
	int err = 0;

	if (!list)
		return rbx_error(-ENOMEM, "out of memory");
	*count = 0;
	while (!err && (address = strsep(&rest, ","))) {
		if (!*address)
			err = rbx_error(-EINVAL, "servers \"%s\": \"host:port,host:port\" is wanted",
					servers);
		else if (*count == RBX_SERVERS_MAX)
			err = rbx_error(-EINVAL, "servers \"%s\": more than %u",
					servers, RBX_SERVERS_MAX);
		else
			err = rbx_volume_server_open(volume, *count, address);
		*count += !err;
	}
	free(list);
	if (err)
		rbx_volume_servers_close(volume);
	return err;
}

/* ---- What the upkeep asks for -------------------------------------------------*/

static struct rbx_peer *peer_of(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_volume_of_upkeep(upkeep)->servers[server].peer;
}

static struct rbx_grant grant_of(const struct rbx_upkeep *upkeep,
				 const struct rbx_loan *loan)
{
	return (struct rbx_grant){
		.slab_id = loan->slab_id,
		.epoch = loan->epoch,
		.remote_addr = loan->remote_addr,
		.length_bytes = 1ull << upkeep->flow->map->shape.slab_shift,
		.rkey = loan->rkey,
	};
}

static int server_map(struct rbx_upkeep *upkeep, uint32_t server,
		      struct rbx_loan *loan)
{
	struct rbx_grant grant;
	int err = rbx_peer_map(peer_of(upkeep, server), &grant);

	if (!err)
		*loan = (struct rbx_loan){
			.slab_id = grant.slab_id,
			.epoch = grant.epoch,
			.remote_addr = grant.remote_addr,
			.rkey = grant.rkey,
		};
	return err;
}

static int server_unmap(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	struct rbx_grant grant = grant_of(upkeep, loan);

	return rbx_peer_unmap(peer_of(upkeep, server), &grant);
}

static int server_check(struct rbx_upkeep *upkeep, uint32_t server,
			const struct rbx_loan *loan)
{
	struct rbx_grant grant = grant_of(upkeep, loan);

	return rbx_peer_check(peer_of(upkeep, server), &grant);
}

static uint64_t server_free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_peer_free_bytes(peer_of(upkeep, server));
}

const struct rbx_upkeep_ops rbx_volume_upkeep_ops = {
	.map = server_map,
	.unmap = server_unmap,
	.check = server_check,
	.free_bytes = server_free_bytes,
	.tell = rbx_volume_tell,
};
