/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - opens and closes a connection to one memory server.
 *
 * The session comes first, then the data queue pairs, then the recovery that
 * restores both. Closing goes backwards: nothing is outstanding then, so there is
 * nothing to restore.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/peer/internal.h"

static void session_lost(void *user, const char *reason)
{
	rbx_peer_note_broken(user, reason);
}

static void session_evict(void *user, const struct rbx_eviction *eviction)
{
	struct rbx_peer *peer = user;

	if (peer->events.evict)
		peer->events.evict(peer, eviction, peer->events.user);
}

/* To who opens a peer it is the same whether nobody listens there or nothing
 * answers; the text says which. */
static int open_session(struct rbx_peer *peer, const char *address)
{
	struct rbx_session_events events = {
		.lost = session_lost,
		.evict = session_evict,
		.user = peer,
	};

	int err = rbx_session_open_name(peer->ctx->sessions, address, &events,
					&peer->session);

	return err == -ECONNREFUSED ? -EHOSTUNREACH : err;
}

static int start_recovery(struct rbx_peer *peer)
{
	int err = -pthread_create(&peer->recovery_thread, NULL,
				  rbx_peer_recovery_main, peer);

	return err ? rbx_error(err, "cannot start a thread: %s",
			       strerror(-err)) :
		     0;
}

static void init_lock(struct rbx_peer *peer)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&peer->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&peer->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void free_peer(struct rbx_peer *peer)
{
	pthread_cond_destroy(&peer->changed);
	pthread_mutex_destroy(&peer->lock);
	free(peer->works);
	free(peer);
}

/* As deep as the device allows, to RBX_SEND_DEPTH; rings are powers of two. */
static uint32_t send_depth(const struct rbx_device_caps *caps)
{
	uint32_t depth_count = RBX_SEND_DEPTH;

	while (depth_count > caps->max_send_wr && depth_count > 1)
		depth_count /= 2;
	return depth_count;
}

/* Memory and fields; nothing is connected yet. */
static struct rbx_peer *new_peer(struct rbx_context *ctx,
				 const struct rbx_peer_events *events)
{
	struct rbx_peer *peer = calloc(1, sizeof(*peer));
	uint32_t lane_count = ctx->options.queue_pairs;

	if (peer == NULL)
		return NULL;
	peer->works = calloc((size_t)lane_count * RBX_SEND_DEPTH,
			     sizeof(*peer->works));
	if (peer->works == NULL) {
		free(peer);
		return NULL;
	}
	init_lock(peer);
	peer->ctx = ctx;
	if (events)
		peer->events = *events;
	rbx_recovery_init(&peer->recovery, &peer->channel,
			  (uint64_t)ctx->options.peer_timeout_ms * 1000000);
	peer->send_depth_count = send_depth(&ctx->device->caps);
	rbx_channel_init(&peer->channel, &ctx->planner, &ctx->window);
	for (uint32_t i = 0; i < lane_count; i++) {
		rbx_channel_add_ring(&peer->channel,
				     &peer->works[i * RBX_SEND_DEPTH],
				     peer->send_depth_count);
		peer->lanes[i].peer = peer;
		peer->lanes[i].ring_index = i;
	}
	peer->lane_count = lane_count;
	return peer;
}

int rbx_peer_open(struct rbx_context *ctx, const char *address,
		  const struct rbx_peer_events *events, struct rbx_peer **out)
{
	struct rbx_peer *peer = new_peer(ctx, events);
	bool broken;
	int err;

	if (peer == NULL)
		return rbx_error(-ENOMEM, "cannot allocate a peer");
	err = rbx_context_add_peer(ctx, peer);
	if (err)
		goto out_free;
	err = open_session(peer, address);
	if (err)
		goto out_remove;
	err = rbx_peer_connect_lanes(peer, 0);
	if (err)
		goto out_close_session;
	pthread_mutex_lock(&peer->lock); /* the recovery sees it when it is open */
	err = start_recovery(peer);
	broken = !err && rbx_recovery_opened(&peer->recovery, rbx_now_ns());
	pthread_mutex_unlock(&peer->lock);
	if (err)
		goto out_destroy_lanes;
	if (broken)
		rbx_peer_note_broken(peer, "it broke while it was opened");
	RBX_FETCH_ADD(&ctx->peers_count, 1);
	*out = peer;
	return 0;

out_destroy_lanes:
	rbx_peer_destroy_lanes(peer);
out_close_session:
	rbx_session_close(peer->session);
out_remove:
	rbx_context_remove_peer(ctx, peer);
out_free:
	free_peer(peer);
	return err;
}

void rbx_peer_stop_soon(struct rbx_peer *peer)
{
	pthread_mutex_lock(&peer->lock);
	rbx_recovery_close(&peer->recovery);
	pthread_cond_signal(&peer->changed);
	pthread_mutex_unlock(&peer->lock);
}

void rbx_peer_stop(struct rbx_peer *peer)
{
	if (peer->is_stopped)
		return;
	rbx_peer_stop_soon(peer);
	pthread_join(peer->recovery_thread, NULL);
	peer->is_stopped = true;
}

int rbx_peer_close(struct rbx_peer *peer)
{
	struct rbx_context *ctx;
	int err;

	if (peer == NULL)
		return 0;
	ctx = peer->ctx;
	err = rbx_guard_wait(ctx, "rbx_peer_close");
	if (err)
		return err;
	if (RBX_LOAD_ACQUIRE(&peer->remotes_count) != 0)
		return rbx_error(-EBUSY, "rbx_peer_close: memory that was borrowed from %s is still there; rbx_return() it first",
				 rbx_peer_address(peer));
	rbx_peer_stop(peer);
	RBX_ASSERT(rbx_channel_idle(&peer->channel));
	rbx_peer_destroy_lanes(peer);
	rbx_session_close(peer->session);
	rbx_context_remove_peer(ctx, peer);
	free_peer(peer);
	RBX_FETCH_ADD(&ctx->peers_count, (uint32_t)-1);
	return 0;
}

bool rbx_peer_is_up(struct rbx_peer *peer)
{
	return rbx_peer_state_is_settled(&peer->recovery.state,
					 rbx_now_ns());
}

const char *rbx_peer_address(const struct rbx_peer *peer)
{
	return rbx_session_name(peer->session);
}

uint64_t rbx_peer_incarnation(const struct rbx_peer *peer)
{
	return rbx_session_incarnation(peer->session);
}

uint64_t rbx_peer_slab_bytes(const struct rbx_peer *peer)
{
	return rbx_session_slab_bytes(peer->session);
}

uint64_t rbx_peer_free_bytes(const struct rbx_peer *peer)
{
	return rbx_session_free_bytes(peer->session);
}

int rbx_peer_map(struct rbx_peer *peer, struct rbx_loan *loan)
{
	return rbx_session_map(peer->session, loan);
}

void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask)
{
	rbx_session_ask(peer->session, ask);
}

int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask,
		    struct rbx_loan *loan)
{
	return rbx_session_answer(peer->session, ask, loan);
}

int rbx_peer_unmap(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	return rbx_session_unmap(peer->session, loan);
}

int rbx_peer_check(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	return rbx_session_check(peer->session, loan);
}
