/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_context.c - of fake_peer.h the context and its pollers, in the place of
 * lib/context.c and lib/poller/poller.c.
 */
#include <stdlib.h>
#include <time.h>

#include "lib/outstanding.h"
#include "lib/poller/set.h"
#include "tests/lib/fake_network.h"

const struct rbx_options *rbx_context_options(const struct rbx_context *ctx)
{
	return &ctx->options;
}

struct rbx_counters *rbx_context_counters(struct rbx_context *ctx)
{
	return &ctx->counters;
}

/* No volume here has a name. */
struct rbx_sessions *rbx_context_sessions(struct rbx_context *ctx)
{
	(void)ctx;
	return NULL;
}

bool rbx_region_covers(const struct rbx_region *region, const void *buf,
		       size_t length, uint32_t *lkey)
{
	(void)buf;
	(void)length;
	*lkey = 77;
	return (uintptr_t)region == 1; /* any other is a wrong one */
}

bool rbx_region_is_dmabuf(const struct rbx_region *region)
{
	(void)region;
	return false;
}

void rbx_request_stamp(struct rbx_request *request)
{
	request->reserved[0] = 1;
}

void rbx_context_complete(struct rbx_context *ctx, struct rbx_request *request)
{
	(void)ctx;
	/* Stamped at submit, completed once, by a poller. */
	RBX_ASSERT(request->reserved[0] == 1 && fake_current_poller);
	request->reserved[0] = 2;
	rbx_request_end(request);
	request->complete(request);
}

void rbx_context_made_room(struct rbx_context *ctx)
{
	(void)ctx;
	fake_network_lock();
	fake_network.room_count++;
	pthread_cond_broadcast(&fake_network.room);
	fake_network_unlock();
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
	fake_network_lock();
	err = pthread_cond_timedwait(&fake_network.room, &fake_network.lock, &until);
	fake_network_unlock();
	return -err;
}

void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list)
{
	(void)poller;
	fake_network_add(NULL, list);
}

struct rbx_poller *rbx_poller_current(void)
{
	return fake_current_poller;
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
	fake_current_poller = ctx->pollers[0];
	while (count < 8 && fake_network_step())
		count++;
	fake_current_poller = NULL;
	pthread_mutex_unlock(&ctx->pollers[0]->lock);
	return count;
}

struct rbx_context *fake_context_open(uint32_t threads, uint64_t seed)
{
	struct rbx_context *ctx = calloc(1, sizeof(*ctx));
	uint32_t i;

	fake_network_lock();
	rbx_random_seed(&fake_network.random, seed);
	fake_network.pending = calloc(FAKE_PENDING_MAX, sizeof(*fake_network.pending));
	fake_network.hold = false;
	fake_network.stop = false;
	fake_network.fragments_count = 0;
	fake_network.submits_count = 0;
	fake_network.stale_count = 0;
	fake_network_unlock();
	ctx->options.fragment_bytes = 8192;
	ctx->options.requests_max = 256;
	ctx->options.pollers = threads;
	ctx->poller_count = RBX_MAX(threads, 1);
	for (i = 0; i < ctx->poller_count; i++) {
		ctx->pollers[i] = calloc(1, sizeof(*ctx->pollers[i]));
		pthread_mutex_init(&ctx->pollers[i]->lock, NULL);
		if (threads)
			pthread_create(&ctx->pollers[i]->thread, NULL,
				       fake_network_main, ctx->pollers[i]);
	}
	return ctx;
}

void fake_context_close(struct rbx_context *ctx)
{
	uint32_t i;

	__atomic_store_n(&fake_network.stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < ctx->poller_count; i++) {
		if (ctx->options.pollers)
			pthread_join(ctx->pollers[i]->thread, NULL);
		free(ctx->pollers[i]);
	}
	RBX_ASSERT(!fake_network.pending_count);
	for (i = 0; i < fake_network.server_count; i++) {
		RBX_ASSERT(!fake_network.servers[i].sessions_count);
		free(fake_network.servers[i].memory);
	}
	fake_network.server_count = 0;
	free(fake_network.pending);
	free(ctx);
}
