/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_peer.c - see fake_peer.h.
 *
 * One lock guards servers and heap. A network thread holds its poller's lock
 * while it works, as a real poller does.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/random.h"
#include "lib/poller/plug.h"
#include "lib/poller/set.h"
#include "tests/lib/fake_peer.h"

#define PENDING_MAX (RBX_SUBMIT_MAX * 256u)
#define POLL_MAX 8
#define PEERS_MAX 32u

struct rbx_peer {
	struct rbx_context *ctx;
	struct fake_server *server;
	struct rbx_peer_events events;
	bool told_down;
};

struct pending {
	struct rbx_peer *peer; /* NULL: only to be ended */
	struct rbx_fragment *fragment;
};

static struct network {
	pthread_mutex_t lock;
	struct rbx_random random;
	struct fake_server servers[FAKE_SERVERS_MAX];
	uint32_t server_count;
	struct rbx_peer *peers[PEERS_MAX];
	uint32_t next_key;
	struct pending *pending;
	uint32_t pending_count;
	bool hold;
	bool stop;
	uint64_t fragments_count;
	uint64_t submits_count;
	uint64_t stale_count;
	uint64_t room_count;
	pthread_cond_t room;
} network = { .lock = PTHREAD_MUTEX_INITIALIZER,
	      .room = PTHREAD_COND_INITIALIZER };

static _Thread_local struct rbx_poller *current_poller;

static void lock(void)
{
	pthread_mutex_lock(&network.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&network.lock);
}

/* ---- The network ----------------------------------------------------------*/

static int32_t carry_out(const struct rbx_peer *peer,
			 const struct rbx_fragment *fragment)
{
	struct fake_server *server = peer->server;
	void *local = (void *)(uintptr_t)fragment->local_addr;
	uint64_t area = fragment->remote_addr / server->slab_bytes;

	if (server->down)
		return -EHOSTUNREACH;
	if (!fragment->rkey || server->keys[area] != fragment->rkey) {
		network.stale_count++;
		return -EACCES;
	}
	if (fragment->direction == RBX_DIRECTION_READ)
		memcpy(local, server->memory + fragment->remote_addr,
		       fragment->length_bytes);
	else
		memcpy(server->memory + fragment->remote_addr, local,
		       fragment->length_bytes);
	if (rbx_random_below(&network.random, 1000) < server->fail_permille)
		return -EIO;
	return 0;
}

/* Takes a random fragment off the network and carries it out. */
static struct rbx_fragment *carry_out_any(void)
{
	uint32_t i = rbx_random_below(&network.random, network.pending_count);
	struct pending pending = network.pending[i];

	network.pending[i] = network.pending[--network.pending_count];
	if (pending.peer)
		pending.fragment->status =
			carry_out(pending.peer, pending.fragment);
	return pending.fragment;
}

/* One poll: some random fragments end together. False: there are none. */
static bool network_step(void)
{
	struct rbx_fragment *list = NULL;
	uint32_t count, most;

	lock();
	count = network.hold ? 0 : network.pending_count;
	most = 1 + rbx_random_below(&network.random, POLL_MAX);
	for (count = RBX_MIN(count, most); count; count--) {
		struct rbx_fragment *fragment = carry_out_any();

		fragment->node.next = list ? &list->node : NULL;
		list = fragment;
	}
	unlock();
	if (list)
		list->done(list);
	return list != NULL;
}

static void *network_main(void *arg)
{
	struct rbx_poller *poller = arg;
	bool worked;

	current_poller = poller;
	while (!__atomic_load_n(&network.stop, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&poller->lock);
		worked = network_step();
		pthread_mutex_unlock(&poller->lock);
		if (!worked)
			usleep(20);
	}
	return NULL;
}

static void pending_add(struct rbx_peer *peer, struct rbx_fragment *first)
{
	struct rbx_node *node, *next;

	lock();
	network.submits_count += peer != NULL;
	for (node = &first->node; node; node = next) {
		next = node->next;
		RBX_ASSERT(network.pending_count < PENDING_MAX);
		network.fragments_count += peer != NULL;
		network.pending[network.pending_count++] = (struct pending){
			peer, rbx_fragment_of(node)
		};
	}
	unlock();
}

/* Called by the plug, which is the real one (lib/peer/internal.h). */
void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);

void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last)
{
	RBX_ASSERT(!last->node.next);
	pending_add(peer, first);
}

void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last)
{
	if (!rbx_plug_hold(peer, first, last))
		rbx_peer_send(peer, first, last);
}

void fake_network_hold(bool hold)
{
	lock();
	network.hold = hold;
	unlock();
}

static uint64_t read_locked(const uint64_t *number)
{
	uint64_t value;

	lock();
	value = *number;
	unlock();
	return value;
}

uint32_t fake_network_pending_count(void)
{
	uint32_t count;

	lock();
	count = network.pending_count;
	unlock();
	return count;
}

uint32_t fake_server_pending_count(struct fake_server *server)
{
	uint32_t i, count = 0;

	lock();
	for (i = 0; i < network.pending_count; i++)
		count += network.pending[i].peer &&
			 network.pending[i].peer->server == server;
	unlock();
	return count;
}

uint64_t fake_network_fragments_count(void)
{
	return read_locked(&network.fragments_count);
}

uint64_t fake_network_submits_count(void)
{
	return read_locked(&network.submits_count);
}

uint64_t fake_network_stale_count(void)
{
	return read_locked(&network.stale_count);
}

/* ---- Servers --------------------------------------------------------------*/

struct fake_server *fake_server_start(const char *address, uint64_t slab_bytes,
				      uint32_t area_count)
{
	struct fake_server *server;

	lock();
	server = &network.servers[network.server_count++];
	RBX_ASSERT(network.server_count <= FAKE_SERVERS_MAX);
	RBX_ASSERT(area_count <= FAKE_AREAS_MAX);
	memset(server, 0, sizeof(*server));
	strncpy(server->address, address, sizeof(server->address) - 1);
	server->slab_bytes = slab_bytes;
	server->area_count = area_count;
	server->memory = malloc(slab_bytes * area_count);
	unlock();
	return server;
}

void fake_server_kill(struct fake_server *server)
{
	uint32_t i;

	/* Who is told first: the promise of peer.h. */
	for (i = 0; i < PEERS_MAX; i++) {
		struct rbx_peer *peer = network.peers[i];

		if (peer && peer->server == server)
			peer->events.down(peer, "killed by the test",
					  peer->events.user);
	}
	lock();
	server->down = true;
	unlock();
}

void fake_server_evict(struct fake_server *server)
{
	uint32_t i, area, key;

	for (i = 0; i < PEERS_MAX; i++) {
		struct rbx_peer *peer = network.peers[i];

		if (!peer || peer->server != server)
			continue;
		for (area = 0; area < server->area_count; area++) {
			lock();
			key = server->keys[area];
			unlock();
			if (key)
				peer->events.evict(peer, area, 1000,
						   peer->events.user);
		}
	}
}

void fake_server_revoke(struct fake_server *server)
{
	uint32_t area;

	lock();
	for (area = 0; area < server->area_count; area++)
		server->keys[area] = 0;
	unlock();
}

void fake_server_set_fail(struct fake_server *server, uint32_t permille)
{
	lock();
	server->fail_permille = permille;
	unlock();
}

void fake_server_set_refuse(struct fake_server *server, int err)
{
	lock();
	server->refuse = err;
	unlock();
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

	lock();
	count = lent_count_locked(server);
	unlock();
	return count;
}

/* ---- lib/peer/peer.h -----------------------------------------------------------*/

static struct fake_server *find_server(const char *address)
{
	uint32_t i;

	for (i = 0; i < network.server_count; i++)
		if (!strcmp(network.servers[i].address, address))
			return &network.servers[i];
	return NULL;
}

int rbx_peer_open(struct rbx_context *ctx, const char *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer)
{
	struct fake_server *server;
	uint32_t i;

	lock();
	server = find_server(address);
	if (!server || server->down) {
		unlock();
		return rbx_error(-EHOSTUNREACH, "no server at %s", address);
	}
	server->sessions_count++;
	for (i = 0; network.peers[i]; i++)
		;
	RBX_ASSERT(i < PEERS_MAX);
	*peer = calloc(1, sizeof(**peer));
	(*peer)->ctx = ctx;
	(*peer)->server = server;
	(*peer)->events = *events;
	network.peers[i] = *peer;
	unlock();
	return 0;
}

void rbx_peer_close(struct rbx_peer *peer)
{
	uint32_t i;

	lock();
	peer->server->sessions_count--;
	for (i = 0; i < PEERS_MAX; i++)
		if (network.peers[i] == peer)
			network.peers[i] = NULL;
	for (i = 0; i < network.pending_count; i++)
		RBX_ASSERT(network.pending[i].peer != peer);
	unlock();
	free(peer);
}

const char *rbx_peer_address(const struct rbx_peer *peer)
{
	return peer->server->address;
}

uint64_t rbx_peer_slab_bytes(const struct rbx_peer *peer)
{
	return peer->server->slab_bytes;
}

uint64_t rbx_peer_free_bytes(const struct rbx_peer *peer)
{
	const struct fake_server *server = peer->server;
	uint64_t bytes;

	lock();
	bytes = (server->area_count - lent_count_locked(server)) *
		server->slab_bytes;
	unlock();
	return bytes;
}

static int map_locked(struct fake_server *server, struct rbx_grant *grant)
{
	uint32_t area;

	if (server->down)
		return rbx_error(-EHOSTUNREACH, "%s is down", server->address);
	if (server->refuse)
		return rbx_error(server->refuse, "%s refuses", server->address);
	for (area = 0; area < server->area_count && server->keys[area]; area++)
		;
	if (area == server->area_count)
		return rbx_error(-ENOSPC, "%s is full", server->address);
	server->keys[area] = ++network.next_key;
	memset(server->memory + area * server->slab_bytes, 0,
	       server->slab_bytes);
	*grant = (struct rbx_grant){
		.slab_id = area,
		.epoch = network.next_key,
		.remote_addr = area * server->slab_bytes,
		.length_bytes = server->slab_bytes,
		.rkey = network.next_key,
	};
	return 0;
}

int rbx_peer_map(struct rbx_peer *peer, struct rbx_grant *grant)
{
	int err;

	lock();
	err = map_locked(peer->server, grant);
	unlock();
	return err;
}

int rbx_peer_unmap(struct rbx_peer *peer, const struct rbx_grant *grant)
{
	int err = -ESTALE;

	lock();
	RBX_ASSERT(grant->length_bytes == peer->server->slab_bytes);
	if (peer->server->keys[grant->slab_id] == grant->rkey) {
		peer->server->keys[grant->slab_id] = 0;
		err = 0;
	}
	unlock();
	return err;
}

/* ---- lib/context.h, lib/poller/poller.h ------------------------------------------*/

const struct rbx_options *rbx_context_options(const struct rbx_context *ctx)
{
	return &ctx->options;
}

struct rbx_counters *rbx_context_counters(struct rbx_context *ctx)
{
	return &ctx->counters;
}

bool rbx_region_covers(const struct rbx_region *region, const void *buf,
		       size_t length, uint32_t *lkey)
{
	(void)buf;
	(void)length;
	*lkey = 77;
	return (uintptr_t)region == 1; /* any other is a wrong one */
}

void rbx_request_stamp(struct rbx_request *request)
{
	request->reserved[0] = 1;
}

void rbx_context_complete(struct rbx_context *ctx, struct rbx_request *request)
{
	(void)ctx;
	/* Stamped at submit, completed once, by a poller. */
	RBX_ASSERT(request->reserved[0] == 1 && current_poller);
	request->reserved[0] = 2;
	request->complete(request);
}

void rbx_context_made_room(struct rbx_context *ctx)
{
	(void)ctx;
	lock();
	network.room_count++;
	pthread_cond_broadcast(&network.room);
	unlock();
}

int rbx_wait_room(struct rbx_context *ctx, int timeout_ms)
{
	struct timespec until;
	int err;

	(void)ctx;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += timeout_ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	lock();
	err = pthread_cond_timedwait(&network.room, &network.lock, &until);
	unlock();
	return -err;
}

void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list)
{
	(void)poller;
	pending_add(NULL, list);
}

struct rbx_poller *rbx_poller_current(void)
{
	return current_poller;
}

void rbx_poller_visit(struct rbx_poller *poller)
{
	pthread_mutex_lock(&poller->lock);
}

void rbx_poller_leave(struct rbx_poller *poller)
{
	pthread_mutex_unlock(&poller->lock);
}

void rbx_pollers_visit_all(struct rbx_context *ctx)
{
	for (uint32_t i = 0; i < ctx->poller_count; i++) {
		rbx_poller_visit(ctx->pollers[i]);
		rbx_poller_leave(ctx->pollers[i]);
	}
}

int rbx_poll(struct rbx_context *ctx)
{
	int count = 0;

	if (ctx->options.pollers)
		return -EBUSY;
	pthread_mutex_lock(&ctx->pollers[0]->lock);
	current_poller = ctx->pollers[0];
	while (count < 8 && network_step())
		count++;
	current_poller = NULL;
	pthread_mutex_unlock(&ctx->pollers[0]->lock);
	return count;
}

struct rbx_context *fake_context_open(uint32_t threads, uint64_t seed)
{
	struct rbx_context *ctx = calloc(1, sizeof(*ctx));
	uint32_t i;

	lock();
	rbx_random_seed(&network.random, seed);
	network.pending = calloc(PENDING_MAX, sizeof(*network.pending));
	network.hold = false;
	network.stop = false;
	network.fragments_count = 0;
	network.submits_count = 0;
	network.stale_count = 0;
	unlock();
	ctx->options.fragment_bytes = 8192;
	ctx->options.requests_max = 256;
	ctx->options.pollers = threads;
	ctx->poller_count = RBX_MAX(threads, 1);
	for (i = 0; i < ctx->poller_count; i++) {
		ctx->pollers[i] = calloc(1, sizeof(*ctx->pollers[i]));
		pthread_mutex_init(&ctx->pollers[i]->lock, NULL);
		if (threads)
			pthread_create(&ctx->pollers[i]->thread, NULL,
				       network_main, ctx->pollers[i]);
	}
	return ctx;
}

void fake_context_close(struct rbx_context *ctx)
{
	uint32_t i;

	__atomic_store_n(&network.stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < ctx->poller_count; i++) {
		if (ctx->options.pollers)
			pthread_join(ctx->pollers[i]->thread, NULL);
		free(ctx->pollers[i]);
	}
	RBX_ASSERT(!network.pending_count);
	for (i = 0; i < network.server_count; i++) {
		RBX_ASSERT(!network.servers[i].sessions_count);
		free(network.servers[i].memory);
	}
	network.server_count = 0;
	free(network.pending);
	free(ctx);
}
