/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_network.h - what the files of fake_peer.h share: the heap of fragments
 * under way, and the servers that they go to.
 *
 * One lock guards servers and heap. A network thread holds its poller's lock
 * while it works, as a real poller does.
 */
#ifndef RBX_TEST_FAKE_NETWORK_H
#define RBX_TEST_FAKE_NETWORK_H

#include "core/random.h"
#include "tests/lib/fake_peer.h"

#define FAKE_PENDING_MAX (RBX_SUBMIT_MAX * 256u)
#define FAKE_PEERS_MAX 128u

struct rbx_peer {
	struct rbx_context *ctx;
	struct fake_server *server;
	bool is_stopped;
	struct rbx_peer_events events;
	bool told_down;
};

struct fake_pending {
	struct rbx_peer *peer; /* NULL: only to be ended */
	struct rbx_fragment *fragment;
};

struct fake_network {
	pthread_mutex_t lock;
	struct rbx_random random;
	struct fake_server servers[FAKE_SERVERS_MAX];
	uint32_t server_count;
	struct rbx_peer *peers[FAKE_PEERS_MAX];
	uint32_t next_key;
	struct fake_pending *pending;
	uint32_t pending_count;
	bool hold;
	bool stop;
	uint64_t fragments_count;
	uint64_t submits_count;
	uint64_t stale_count;
	uint64_t room_count;
	pthread_cond_t room;
};

extern struct fake_network fake_network;

/* The poller that this thread is, or NULL. */
extern _Thread_local struct rbx_poller *fake_current_poller;

void fake_network_lock(void);
void fake_network_unlock(void);

/* Hands a list over. peer NULL: its fragments are only to be ended. */
void fake_network_add(struct rbx_peer *peer, struct rbx_fragment *first);
/* One poll: some random fragments end together. False: there are none. */
bool fake_network_step(void);
/* A network thread; arg: its poller. */
void *fake_network_main(void *arg);

#endif
