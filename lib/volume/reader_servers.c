/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader_servers.c - connects to the servers of a volume that is only read, see reader.h.
 *
 * Each server of the list or the pool is tried, until it tells that it has the volume; and once
 * more when it was lost: after a second, and then after twice as long each time. What a server has
 * told before it was lost counts no more.
 */
#include <stdlib.h>
#include <string.h>

#include "client/at_once.h"
#include "client/session.h"
#include "lib/volume/reader.h"

/* ---- Their names ----------------------------------------------------------------------------- */

static bool is_known(const struct rbx_reader *reader, const char *address)
{
	for (uint32_t i = 0; i < reader->server_count; i++)
		if (!strcmp(reader->servers[i].address, address))
			return true;
	return false;
}

int rbx_reader_names_take(struct rbx_reader *reader)
{
	size_t i, count = rbx_pool_members_get(reader->pool, reader->members, RBX_POOL_MEMBERS_MAX);

	for (i = 0; i < count && reader->server_count < RBX_SERVERS_MAX; i++) {
		struct rbx_reader_server *server = &reader->servers[reader->server_count];

		if (is_known(reader, reader->members[i].address))
			continue;
		server->reader = reader;
		rbx_text_copy(server->address, sizeof(server->address), reader->members[i].address);
		/* Pairs with those that go through the servers: they find this one whole. */
		RBX_STORE_RELEASE(&reader->server_count, reader->server_count + 1);
	}
	return reader->server_count ? 0 : rbx_error(-EINVAL, "the pool has no servers");
}

/* ---- One server ------------------------------------------------------------------------------ */

static void peer_down(struct rbx_peer *peer, void *user)
{
	struct rbx_reader_server *server = user;

	(void)peer;
	rbx_lock(&server->reader->lock);
	server->is_down = true;
	server->until_ns = 0;
	rbx_unlock(&server->reader->lock);
	rbx_reader_wake(server->reader);
}

/* Whether it is there under another name. */
static bool is_twice(struct rbx_reader_server *server, uint64_t incarnation)
{
	struct rbx_reader *reader = server->reader;
	bool is = false;

	rbx_lock(&reader->lock);
	for (uint32_t i = 0; i < RBX_LOAD_ACQUIRE(&reader->server_count); i++) {
		struct rbx_reader_server *other = &reader->servers[i];

		is |= other != server && other->incarnation == incarnation && !other->is_down;
	}
	server->incarnation = is ? 0 : incarnation;
	rbx_unlock(&reader->lock);
	return is;
}

/* Before there is a queue pair: they are made for the volume. */
static int peer_welcomed(struct rbx_peer *peer, void *user)
{
	struct rbx_reader_server *server = user;
	struct rbx_reader *reader = server->reader;
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_READ,
		.volume_id = reader->record.volume_id,
	};
	bool is_gone;
	int err;

	if (is_twice(server, rbx_peer_incarnation(peer)))
		return rbx_error(-EINVAL, "%s is there under another address", server->address);
	err = rbx_session_talk(rbx_peer_session(peer), &m);
	is_gone = !err && m.reading.record.flags & RBX_WIRE_REMOVED;
	rbx_lock(&reader->lock);
	server->gone_incarnation = is_gone ? server->incarnation : 0;
	rbx_unlock(&reader->lock);
	if (is_gone)
		return rbx_error(-ENOENT, "%s says that the volume was removed", server->address);
	if (!err && rbx_peer_slab_bytes(peer) != reader->record.slab_bytes)
		err = rbx_error(-EINVAL, "%s lends slabs of another length than the volume has",
				server->address);
	return err;
}

static void server_close(struct rbx_reader_server *server)
{
	struct rbx_reader *reader = server->reader;
	struct rbx_peer *peer = NULL;

	rbx_lock(&reader->lock);
	if (server->is_down && !server->parts_count && !server->is_asked) {
		peer = server->peer;
		server->peer = NULL;
	}
	rbx_unlock(&reader->lock);
	if (peer)
		rbx_peer_leave(peer);
}

/* The peer, or why there is none. */
static void tried(struct rbx_reader_server *server, struct rbx_peer *peer, int err)
{
	rbx_lock(&server->reader->lock);
	server->open_err = err;
	if (err) {
		server->incarnation = 0;
		rbx_text_copy(server->why, sizeof(server->why), rbx_error_text());
	} else {
		server->peer = peer;
		server->is_new = true;
	}
	rbx_unlock(&server->reader->lock);
	server->try_after_ns = !err ? RBX_READER_TRY_NS :
				      RBX_MIN(2 * RBX_MAX(server->try_after_ns, RBX_READER_TRY_NS),
					      RBX_READER_TRY_MOST_NS);
	server->try_at_ns = rbx_now_ns() + server->try_after_ns;
}

static int server_open(void *user, uint32_t index)
{
	struct rbx_reader *reader = user;
	struct rbx_reader_server *server = &reader->servers[index];
	const struct rbx_peer_events events = {
		.down = peer_down,
		.welcomed = peer_welcomed,
		.user = server,
	};
	struct rbx_peer *peer = NULL;
	int err;

	server_close(server);
	/* Only this thread changes it. */
	if (server->peer || rbx_now_ns() < server->try_at_ns)
		return 0;
	rbx_lock(&reader->lock);
	server->is_down = false;
	rbx_unlock(&reader->lock);
	err = rbx_peer_open(reader->volume->ctx, server->address, &events, &peer);
	tried(server, peer, err);
	rbx_reader_wake(reader);
	return 0;
}

/* ---- All ------------------------------------------------------------------------------------- */

static bool is_due(struct rbx_reader *reader)
{
	bool any = false;

	rbx_lock(&reader->lock);
	for (uint32_t i = 0; i < reader->server_count; i++) {
		const struct rbx_reader_server *server = &reader->servers[i];

		any |= (!server->peer || server->is_down) && rbx_now_ns() >= server->try_at_ns;
	}
	rbx_unlock(&reader->lock);
	return any;
}

void rbx_reader_connect(struct rbx_reader *reader)
{
	if (is_due(reader))
		(void)rbx_at_once(reader->server_count, server_open, reader);
}

static void *connects_run(void *user)
{
	struct rbx_reader *reader = user;
	const int fd = rbx_pool_event_fd(reader->pool);

	while (rbx_pool_worker_wait(&reader->worker, fd, RBX_READER_TRY_NS / 1000000)) {
		(void)rbx_reader_names_take(reader);
		rbx_reader_connect(reader);
	}
	return NULL;
}

int rbx_reader_connects_start(struct rbx_reader *reader)
{
	int err = rbx_pool_worker_open(&reader->worker);

	if (err)
		return err;
	reader->has_worker = true;
	return rbx_pool_worker_start(&reader->worker, connects_run, reader);
}

void rbx_reader_connects_stop(struct rbx_reader *reader)
{
	if (reader->has_worker)
		rbx_pool_worker_close(&reader->worker);
	reader->has_worker = false;
}

static int server_leave(void *user, uint32_t index)
{
	struct rbx_reader *reader = user;
	struct rbx_reader_server *server = &reader->servers[index];

	if (server->peer)
		rbx_peer_leave(server->peer);
	server->peer = NULL;
	return 0;
}

void rbx_reader_leave(struct rbx_reader *reader)
{
	for (uint32_t i = 0; i < reader->server_count; i++)
		if (reader->servers[i].peer)
			rbx_peer_stop_soon(reader->servers[i].peer);
	(void)rbx_at_once(reader->server_count, server_leave, reader);
}
