/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects a volume to its memory servers, and takes leave of them.
 *
 * Each of them takes a round trip or several, and one that does not answer the peer
 * timeout. So a few threads do it side by side. If one server cannot be connected those
 * that nobody has begun with are left, and the volume is not opened.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/poller/set.h"
#include "lib/volume/volume.h"

/* ---- Side by side -------------------------------------------------------------*/

struct side_by_side {
	struct rbx_volume *volume;
	void (*act)(struct side_by_side *all, uint32_t index);
	uint32_t next; /* atomic: place of the table */
	bool stop; /* atomic: begin with no other */
};

static void *side_main(void *arg)
{
	struct side_by_side *all = arg;
	uint32_t index;

	while (!RBX_LOAD_RELAXED(&all->stop) &&
	       (index = RBX_FETCH_ADD(&all->next, 1)) <
		       all->volume->server_count)
		all->act(all, index);
	return NULL;
}

/* Acts on each place of the table. This thread is one of those that do. */
static void do_side_by_side(struct side_by_side *all)
{
	uint32_t count = RBX_MIN(all->volume->server_count, RBX_CONNECTS_MAX);
	pthread_t threads[RBX_CONNECTS_MAX];
	uint32_t started = 0;

	while (started + 1 < count &&
	       !pthread_create(&threads[started], NULL, side_main, all))
		started++;
	(void)side_main(all);
	while (started)
		pthread_join(threads[--started], NULL);
}

/* ---- One server -----------------------------------------------------------------*/

static bool is_in_use(const struct rbx_volume *volume, const char *address)
{
	uint32_t i;

	for (i = 0; i < volume->server_count; i++)
		if (volume->servers[i].peer &&
		    !rbx_upkeep_server_is_down(&volume->upkeep, i) &&
		    !strcmp(rbx_peer_address(volume->servers[i].peer), address))
			return true;
	return false;
}

static int twice_error(const char *address)
{
	return rbx_error(-EINVAL, "server %s is named twice", address);
}

/* The server may be one that the volume has under another address. */
static int is_another_check(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_peer *peer = volume->servers[index].peer;
	uint32_t other;

	if (!rbx_upkeep_server_connected(&volume->upkeep, index,
					 rbx_peer_incarnation(peer), &other))
		return 0;
	return rbx_error(-EINVAL, "server %s is named twice: %s is the same one",
			 rbx_peer_address(peer),
			 rbx_peer_address(volume->servers[other].peer));
}

/* Others may look whether it is up. */
static void peer_set(struct rbx_volume *volume, uint32_t index,
		     struct rbx_peer *peer)
{
	rbx_lock(&volume->upkeep.servers_lock);
	volume->servers[index].peer = peer;
	rbx_unlock(&volume->upkeep.servers_lock);
}

static int peer_open(struct rbx_volume *volume, uint32_t index,
		     const char *address)
{
	const struct rbx_peer_events events =
		rbx_volume_peer_events(volume, index);
	struct rbx_peer *peer;
	int err;

	volume->servers[index].volume = volume;
	rbx_upkeep_server_begins(&volume->upkeep, index);
	err = rbx_peer_open(volume->ctx, address, &events, &peer);
	if (!err)
		peer_set(volume, index, peer);
	return err;
}

static void peer_close(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_peer *peer = volume->servers[index].peer;

	peer_set(volume, index, NULL);
	rbx_peer_close(peer);
}

int rbx_volume_server_open(struct rbx_volume *volume, uint32_t index,
			   const char *address)
{
	int err;

	/* Two replicas on one server would be lost together. */
	if (is_in_use(volume, address))
		return twice_error(address);
	/* The one that was here before is down, and nothing refers to it; the last
	 * completion may still be on its way out of it. */
	rbx_pollers_visit_all(volume->ctx);
	peer_close(volume, index);
	err = peer_open(volume, index, address);
	if (!err)
		err = is_another_check(volume, index);
	if (err)
		rbx_volume_server_close(volume, index);
	else
		volume->server_count = RBX_MAX(volume->server_count, index + 1);
	return err;
}

void rbx_volume_server_close(struct rbx_volume *volume, uint32_t index)
{
	peer_close(volume, index);
	rbx_upkeep_server_failed(&volume->upkeep, index);
}

/* ---- All at the beginning -------------------------------------------------------*/

static void open_act(struct side_by_side *all, uint32_t index)
{
	struct rbx_volume_server *server = &all->volume->servers[index];

	server->open_err = peer_open(all->volume, index, server->address);
	if (!server->open_err)
		return;
	/* Errors are of a thread: it is told by the one that opens the volume. */
	snprintf(server->reason, sizeof(server->reason), "%s",
		 rbx_last_error());
	RBX_STORE_RELAXED(&all->stop, true);
}

/* Why the first of them that could not be was not connected, or 0. */
static int open_error(struct rbx_volume *volume)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < volume->server_count && !err; i++)
		if (volume->servers[i].open_err)
			err = rbx_error(volume->servers[i].open_err, "%s",
					volume->servers[i].reason);
	return err;
}

/* "host:port,host:port", which is cut in pieces. */
static int addresses_take(struct rbx_volume *volume, char *list,
			  const char *servers)
{
	char *rest = list, *address;
	uint32_t i, count = 0;

	while ((address = strsep(&rest, ","))) {
		if (!*address)
			return rbx_error(-EINVAL, "servers \"%s\": \"host:port,host:port\" is wanted",
					 servers);
		if (count == RBX_SERVERS_MAX)
			return rbx_error(-EINVAL, "more than %u servers are given",
					 RBX_SERVERS_MAX);
		for (i = 0; i < count; i++)
			if (!strcmp(volume->servers[i].address, address))
				return twice_error(address);
		volume->servers[count++].address = address;
	}
	volume->server_count = count;
	return 0;
}

static int servers_open(struct rbx_volume *volume)
{
	struct side_by_side all = { .volume = volume, .act = open_act };
	uint32_t i;
	int err;

	do_side_by_side(&all);
	err = open_error(volume);
	for (i = 0; i < volume->server_count && !err; i++)
		err = is_another_check(volume, i);
	return err;
}

int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers)
{
	char *list = strdup(servers);
	int err;

	if (!list)
		return rbx_error(-ENOMEM, "out of memory");
	err = addresses_take(volume, list, servers);
	if (!err) {
		err = servers_open(volume);
		if (err)
			rbx_volume_servers_close(volume);
	}
	free(list);
	return err;
}

/* ---- And at the end -------------------------------------------------------------*/

static void close_act(struct side_by_side *all, uint32_t index)
{
	peer_close(all->volume, index);
}

void rbx_volume_servers_close(struct rbx_volume *volume)
{
	struct side_by_side all = { .volume = volume, .act = close_act };
	uint32_t i;

	for (i = 0; i < volume->server_count; i++)
		if (volume->servers[i].peer)
			rbx_peer_stop_soon(volume->servers[i].peer);
	/* A recovery asks whether the other servers are up (peer_hold()). */
	for (i = 0; i < volume->server_count; i++)
		if (volume->servers[i].peer)
			rbx_peer_stop(volume->servers[i].peer);
	do_side_by_side(&all);
}
