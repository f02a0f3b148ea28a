/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_network.c - see fake_network.h, and of fake_peer.h the network.
 */
#include "tests/lib/fake_network.h"

#include <unistd.h>

#define POLL_MAX 8

struct fake_network fake_network = { .lock = PTHREAD_MUTEX_INITIALIZER,
				     .room = PTHREAD_COND_INITIALIZER };

_Thread_local struct rbx_poller *fake_current_poller;

void fake_network_lock(void)
{
	pthread_mutex_lock(&fake_network.lock);
}

void fake_network_unlock(void)
{
	pthread_mutex_unlock(&fake_network.lock);
}

static int32_t carry_out(const struct rbx_peer *peer,
			 const struct rbx_fragment *fragment)
{
	struct fake_server *server = peer->server;
	void *local = (void *)(uintptr_t)fragment->local_addr;
	uint64_t area = fragment->remote_addr / server->slab_bytes;

	if (server->down)
		return -EHOSTUNREACH;
	if (!fragment->rkey || server->keys[area] != fragment->rkey) {
		fake_network.stale_count++;
		return -EACCES;
	}
	if (fragment->direction == RBX_DIRECTION_READ)
		memcpy(local, server->memory + fragment->remote_addr,
		       fragment->length_bytes);
	else
		memcpy(server->memory + fragment->remote_addr, local,
		       fragment->length_bytes);
	if (rbx_random_below(&fake_network.random, 1000) < server->fail_permille)
		return -EREMOTEIO;
	return 0;
}

/* Takes a random fragment off the network and carries it out. */
static struct rbx_fragment *carry_out_any(void)
{
	uint32_t i = rbx_random_below(&fake_network.random, fake_network.pending_count);
	struct fake_pending pending = fake_network.pending[i];

	fake_network.pending[i] = fake_network.pending[--fake_network.pending_count];
	if (pending.peer)
		pending.fragment->status =
			carry_out(pending.peer, pending.fragment);
	return pending.fragment;
}

bool fake_network_step(void)
{
	struct rbx_fragment *list = NULL;
	uint32_t count, most;

	fake_network_lock();
	count = fake_network.hold ? 0 : fake_network.pending_count;
	most = 1 + rbx_random_below(&fake_network.random, POLL_MAX);
	for (count = RBX_MIN(count, most); count; count--) {
		struct rbx_fragment *fragment = carry_out_any();

		fragment->node.next = list ? &list->node : NULL;
		list = fragment;
	}
	fake_network_unlock();
	if (list)
		list->done(list);
	return list != NULL;
}

void *fake_network_main(void *arg)
{
	struct rbx_poller *poller = arg;
	bool worked;

	fake_current_poller = poller;
	while (!__atomic_load_n(&fake_network.stop, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&poller->lock);
		worked = fake_network_step();
		pthread_mutex_unlock(&poller->lock);
		if (!worked)
			usleep(20);
	}
	return NULL;
}

void fake_network_add(struct rbx_peer *peer, struct rbx_fragment *first)
{
	struct rbx_node *node, *next;

	fake_network_lock();
	fake_network.submits_count += peer != NULL;
	for (node = &first->node; node; node = next) {
		next = node->next;
		RBX_ASSERT(fake_network.pending_count < FAKE_PENDING_MAX);
		fake_network.fragments_count += peer != NULL;
		fake_network.pending[fake_network.pending_count++] = (struct fake_pending){
			peer, rbx_fragment_of(node)
		};
	}
	fake_network_unlock();
}

void fake_network_hold(bool hold)
{
	fake_network_lock();
	fake_network.hold = hold;
	fake_network_unlock();
}

static uint64_t read_locked(const uint64_t *number)
{
	uint64_t value;

	fake_network_lock();
	value = *number;
	fake_network_unlock();
	return value;
}

uint32_t fake_network_pending_count(void)
{
	uint32_t count;

	fake_network_lock();
	count = fake_network.pending_count;
	fake_network_unlock();
	return count;
}

uint32_t fake_server_pending_count(struct fake_server *server)
{
	uint32_t i, count = 0;

	fake_network_lock();
	for (i = 0; i < fake_network.pending_count; i++)
		count += fake_network.pending[i].peer &&
			 fake_network.pending[i].peer->server == server;
	fake_network_unlock();
	return count;
}

uint64_t fake_network_fragments_count(void)
{
	return read_locked(&fake_network.fragments_count);
}

uint64_t fake_network_submits_count(void)
{
	return read_locked(&fake_network.submits_count);
}

uint64_t fake_network_stale_count(void)
{
	return read_locked(&fake_network.stale_count);
}
