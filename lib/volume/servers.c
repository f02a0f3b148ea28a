/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - the memory servers of a volume: connected to, what they say
 * unasked, and what the upkeep borrows from them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/last_copies.h"
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

static void peer_evict(struct rbx_peer *peer,
		       const struct rbx_eviction *eviction, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	rbx_upkeep_evict(&volume->upkeep, (uint32_t)(server - volume->servers),
			 eviction);
}

static bool server_is_up(struct rbx_flow *flow, uint32_t server)
{
	return rbx_peer_is_up(rbx_volume_of_flow(flow)->servers[server].peer);
}

static bool peer_hold(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;

	(void)peer;
	return rbx_last_copies_hold(&volume->flow,
				    (uint32_t)(server - volume->servers),
				    server_is_up);
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

/* The server may be one that the volume has under another address; closes it then. */
static int is_another_check(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_peer *peer = volume->servers[index].peer;
	uint32_t other;
	int err = rbx_upkeep_server_connected(&volume->upkeep, index,
					      rbx_peer_incarnation(peer),
					      &other);

	if (!err)
		return 0;
	err = rbx_error(-EINVAL, "server %s is named twice: %s is the same one",
			rbx_peer_address(peer),
			rbx_peer_address(volume->servers[other].peer));
	rbx_volume_server_close(volume, index);
	return err;
}

int rbx_volume_server_open(struct rbx_volume *volume, uint32_t index,
			   const char *address)
{
	struct rbx_volume_server *server = &volume->servers[index];
	struct rbx_peer_events events = {
		.down = peer_down,
		.evict = peer_evict,
		.hold = peer_hold,
		.wait = rbx_last_copies_wait,
		.user = server,
	};
	int err;

	/* Two replicas on one server would be lost together. */
	if (is_in_use(volume, address))
		return rbx_error(-EINVAL, "server %s is named twice", address);
	server->volume = volume;
	rbx_upkeep_server_begins(&volume->upkeep, index);
	err = rbx_peer_open(volume->ctx, address, &events, &server->peer);
	if (err) {
		server->peer = NULL;
		return err;
	}
	return is_another_check(volume, index);
}

void rbx_volume_server_close(struct rbx_volume *volume, uint32_t index)
{
	rbx_peer_close(volume->servers[index].peer);
	volume->servers[index].peer = NULL;
}

void rbx_volume_servers_close(struct rbx_volume *volume)
{
	uint32_t i, count = 0;

	while (count < RBX_SERVERS_MAX && volume->servers[count].peer)
		rbx_peer_stop_soon(volume->servers[count++].peer);
	/* A recovery asks whether the other servers are up (peer_hold()). */
	for (i = 0; i < count; i++)
		rbx_peer_stop(volume->servers[i].peer);
	for (i = 0; i < count; i++)
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

static void *memory_lend(struct rbx_upkeep *upkeep, size_t size)
{
	(void)upkeep;
	return malloc(size);
}

static void memory_take_back(struct rbx_upkeep *upkeep, void *memory)
{
	(void)upkeep;
	free(memory);
}

const struct rbx_upkeep_ops rbx_volume_upkeep_ops = {
	.map = server_map,
	.unmap = server_unmap,
	.check = server_check,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = server_free_bytes,
	.tell = rbx_volume_tell,
};
