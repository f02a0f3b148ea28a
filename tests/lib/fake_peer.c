/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_peer.c - of fake_peer.h the servers, and the peers in the place of
 * client/peer.c and lib/peer/peer.c.
 */
#include <stdlib.h>

#include "lib/poller/plug.h"
#include "tests/lib/fake_network.h"

/* ---- Servers --------------------------------------------------------------*/

struct fake_server *fake_server_start(const char *address, uint64_t slab_bytes,
				      uint32_t area_count)
{
	struct fake_server *server;

	fake_network_lock();
	server = &fake_network.servers[fake_network.server_count++];
	RBX_ASSERT(fake_network.server_count <= FAKE_SERVERS_MAX);
	RBX_ASSERT(area_count <= FAKE_AREAS_MAX);
	memset(server, 0, sizeof(*server));
	strncpy(server->address, address, sizeof(server->address) - 1);
	server->slab_bytes = slab_bytes;
	server->area_count = area_count;
	server->memory = malloc(slab_bytes * area_count);
	fake_network_unlock();
	return server;
}

void fake_server_kill(struct fake_server *server)
{
	uint32_t i;

	/* Who is told first: the promise of peer.h. */
	for (i = 0; i < FAKE_PEERS_MAX; i++) {
		struct rbx_peer *peer = fake_network.peers[i];

		if (peer && peer->server == server)
			peer->events.down(peer, peer->events.user);
	}
	fake_network_lock();
	server->down = true;
	fake_network_unlock();
}

static void evict(struct rbx_peer *peer, uint32_t area, uint32_t key)
{
	const struct rbx_eviction eviction = {
		.slab_id = area,
		.epoch = key,
		.until_ns = UINT64_MAX,
	};

	peer->events.evict(peer, &eviction, peer->events.user);
}

void fake_server_evict(struct fake_server *server)
{
	uint32_t i, area, key;

	for (i = 0; i < FAKE_PEERS_MAX; i++) {
		struct rbx_peer *peer = fake_network.peers[i];

		if (!peer || peer->server != server)
			continue;
		for (area = 0; area < server->area_count; area++) {
			fake_network_lock();
			key = server->keys[area];
			fake_network_unlock();
			if (key)
				evict(peer, area, key);
		}
	}
}

void fake_server_revoke(struct fake_server *server)
{
	uint32_t area;

	fake_network_lock();
	for (area = 0; area < server->area_count; area++)
		server->keys[area] = 0;
	fake_network_unlock();
}

void fake_server_set_fail(struct fake_server *server, uint32_t permille)
{
	fake_network_lock();
	server->fail_permille = permille;
	fake_network_unlock();
}

void fake_server_set_refuse(struct fake_server *server, int err)
{
	fake_network_lock();
	server->refuse = err;
	fake_network_unlock();
}

void fake_server_set_keep(struct fake_server *server, int err)
{
	fake_network_lock();
	server->keep = err;
	fake_network_unlock();
}

static uint32_t lent_count_locked(const struct fake_server *server)
{
	uint32_t area, count = 0;

	for (area = 0; area < server->area_count; area++)
		count += server->keys[area] != 0;
	return count;
}

uint32_t fake_server_lent_count(struct fake_server *server)
{
	uint32_t count;

	fake_network_lock();
	count = lent_count_locked(server);
	fake_network_unlock();
	return count;
}

/* ---- client/peer.h, lib/peer/peer.h -----------------------------------------------------------*/

static struct fake_server *find_server(const char *address)
{
	uint32_t i;

	for (i = 0; i < fake_network.server_count; i++)
		if (!strcmp(fake_network.servers[i].address, address))
			return &fake_network.servers[i];
	return NULL;
}

int rbx_peer_open(struct rbx_context *ctx, const char *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer)
{
	struct fake_server *server;
	uint32_t i;

	fake_network_lock();
	server = find_server(address);
	if (!server || server->down) {
		fake_network_unlock();
		return rbx_error(-EHOSTUNREACH, "no server at %s", address);
	}
	server->sessions_count++;
	for (i = 0; fake_network.peers[i]; i++)
		;
	RBX_ASSERT(i < FAKE_PEERS_MAX);
	*peer = calloc(1, sizeof(**peer));
	(*peer)->ctx = ctx;
	(*peer)->server = server;
	(*peer)->events = *events;
	fake_network.peers[i] = *peer;
	fake_network_unlock();
	return 0;
}

void rbx_peer_stop_soon(struct rbx_peer *peer)
{
	(void)peer;
}

void rbx_peer_stop(struct rbx_peer *peer)
{
	fake_network_lock();
	peer->is_stopped = true;
	fake_network_unlock();
}

/* As a recovery may at any time until it is stopped: asks the owner about the others.
 * All of a volume are stopped before the first is closed. */
static void recoveries_ask(void)
{
	struct rbx_peer *peers[FAKE_PEERS_MAX];
	uint32_t count = 0, i;

	fake_network_lock();
	for (i = 0; i < FAKE_PEERS_MAX; i++) {
		struct rbx_peer *peer = fake_network.peers[i];

		if (peer && !peer->is_stopped && peer->events.hold)
			peers[count++] = peer;
	}
	fake_network_unlock();
	for (i = 0; i < count; i++)
		(void)peers[i]->events.hold(peers[i], peers[i]->events.user);
}

void rbx_peer_leave(struct rbx_peer *peer)
{
	uint32_t i;

	if (peer->is_stopped) /* one of a volume that is closed */
		recoveries_ask();
	fake_network_lock();
	peer->server->sessions_count--;
	for (i = 0; i < peer->server->area_count; i++)
		if (peer->server->owners[i] == peer)
			peer->server->keys[i] = 0;
	for (i = 0; i < FAKE_PEERS_MAX; i++)
		if (fake_network.peers[i] == peer)
			fake_network.peers[i] = NULL;
	for (i = 0; i < fake_network.pending_count; i++)
		RBX_ASSERT(fake_network.pending[i].peer != peer);
	fake_network_unlock();
	free(peer);
}

bool rbx_peer_is_up(struct rbx_peer *peer)
{
	RBX_ASSERT(peer);
	return true;
}

void rbx_peer_renounce(struct rbx_peer *peer, const char *reason)
{
	(void)peer;
	(void)reason;
}

const char *rbx_peer_reason(const struct rbx_peer *peer)
{
	RBX_ASSERT(peer);
	return "killed by the test";
}

void rbx_peer_set_timeout(struct rbx_peer *peer, uint32_t peer_timeout_ms)
{
	(void)peer;
	(void)peer_timeout_ms;
}

const char *rbx_peer_name(const struct rbx_peer *peer)
{
	return peer->server->address;
}

uint64_t rbx_peer_incarnation(const struct rbx_peer *peer)
{
	return (uintptr_t)peer->server;
}

const char *rbx_peer_labels(const struct rbx_peer *peer)
{
	return peer->server->labels;
}

uint64_t rbx_peer_slab_bytes(const struct rbx_peer *peer)
{
	return peer->server->slab_bytes;
}

uint64_t rbx_peer_free_bytes(const struct rbx_peer *peer)
{
	const struct fake_server *server = peer->server;
	uint64_t bytes;

	fake_network_lock();
	bytes = (server->area_count - lent_count_locked(server)) *
		server->slab_bytes;
	fake_network_unlock();
	return bytes;
}

static int map_locked(struct rbx_peer *peer, struct rbx_loan *loan)
{
	struct fake_server *server = peer->server;
	uint32_t area;

	if (server->down)
		return rbx_error(-EHOSTUNREACH, "%s is down", server->address);
	if (server->refuse)
		return rbx_error(server->refuse, "%s refuses", server->address);
	for (area = 0; area < server->area_count && server->keys[area]; area++)
		;
	if (area == server->area_count)
		return rbx_error(-ENOSPC, "%s is full", server->address);
	server->keys[area] = ++fake_network.next_key;
	server->owners[area] = peer;
	memset(server->memory + area * server->slab_bytes, 0,
	       server->slab_bytes);
	*loan = (struct rbx_loan){
		.slab_id = area,
		.epoch = fake_network.next_key,
		.remote_addr = area * server->slab_bytes,
		.rkey = fake_network.next_key,
	};
	return 0;
}

int rbx_peer_map(struct rbx_peer *peer, struct rbx_loan *loan)
{
	int err;

	fake_network_lock();
	err = map_locked(peer, loan);
	fake_network_unlock();
	return err;
}

struct rbx_session *rbx_peer_session(struct rbx_peer *peer)
{
	(void)peer;
	return NULL; /* no volume here has a name */
}

int rbx_peer_check(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	int err;

	fake_network_lock();
	err = peer->server->keys[loan->slab_id] == loan->rkey ? 0 : -ESTALE;
	fake_network_unlock();
	return err;
}

int rbx_peer_unmap(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	int err = -ESTALE;

	fake_network_lock();
	if (peer->server->keep) {
		err = peer->server->keep;
	} else if (peer->server->keys[loan->slab_id] == loan->rkey) {
		peer->server->keys[loan->slab_id] = 0;
		err = 0;
	}
	fake_network_unlock();
	return err;
}

void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask)
{
	(void)peer;
	(void)ask;
}

int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask,
		    struct rbx_loan *loan)
{
	if (ask->kind == RBX_CALL_MAP)
		return rbx_peer_map(peer, loan);
	return ask->kind == RBX_CALL_UNMAP ? rbx_peer_unmap(peer, &ask->loan) :
					     rbx_peer_check(peer, &ask->loan);
}

/* Called by the plug, which is the real one (lib/peer/internal.h). */
void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);

void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last)
{
	RBX_ASSERT(!last->node.next);
	fake_network_add(peer, first);
}

void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last)
{
	if (!rbx_plug_hold(peer, first, last))
		rbx_peer_send(peer, first, last);
}
