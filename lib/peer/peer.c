/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - makes a connection to one memory server, with memory and options of the
 * program. client/peer.c opens and closes it.
 */
#include <stdlib.h>

#include "lib/peer/internal.h"

/* As deep as the device allows, up to RBX_SEND_DEPTH; a ring is a power of two. */
static uint32_t send_depth(const struct rbx_device_caps *caps)
{
	uint32_t depth_count = RBX_SEND_DEPTH;

	while (depth_count > caps->max_send_wr && depth_count > 1)
		depth_count /= 2;
	return depth_count;
}

static void add_pair(struct rbx_user_peer *user, uint32_t index)
{
	struct rbx_peer_qp *pair = &user->qps[index];

	pair->peer = &user->peer;
	pair->ring_index = index;
	rbx_channel_add_ring(&user->peer.channel,
			     &user->works[index * RBX_SEND_DEPTH],
			     user->send_depth_count);
}

static struct rbx_user_peer *peer_make(struct rbx_context *ctx,
				       const struct rbx_peer_events *events)
{
	struct rbx_user_peer *user = calloc(1, sizeof(*user));
	uint32_t i;

	if (!user)
		return NULL;
	user->qps_count = ctx->options.queue_pairs;
	user->works = calloc((size_t)user->qps_count * RBX_SEND_DEPTH,
			     sizeof(*user->works));
	if (!user->works) {
		free(user);
		return NULL;
	}
	rbx_peer_prepare(&user->peer, ctx, &ctx->repairs, &ctx->planner,
			 &ctx->window, ctx->options.peer_timeout_ms, events);
	pthread_mutex_init(&user->remotes_lock, NULL);
	user->send_depth_count = send_depth(&ctx->device->caps);
	for (i = 0; i < user->qps_count; i++)
		add_pair(user, i);
	RBX_FETCH_ADD(&ctx->peers_count, 1);
	return user;
}

void rbx_peer_free(struct rbx_peer *peer)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);
	struct rbx_context *ctx = peer->ctx;

	pthread_mutex_destroy(&user->remotes_lock);
	free(user->works);
	free(user);
	RBX_FETCH_ADD(&ctx->peers_count, (uint32_t)-1);
}

int rbx_peer_open(struct rbx_context *ctx, const char *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer)
{
	struct rbx_user_peer *user = peer_make(ctx, events);
	int err;

	if (!user)
		return rbx_error(-ENOMEM, "cannot allocate a peer");
	err = rbx_peer_connect_to(&user->peer, address);
	if (err)
		rbx_peer_free(&user->peer);
	else
		*peer = &user->peer;
	return err;
}

/* The caller gets the same error if nobody listens there and if nothing answers; only the
 * text tells them apart. */
int rbx_peer_open_session(struct rbx_peer *peer, const void *address,
			  const struct rbx_session_events *events)
{
	int err = rbx_session_open_name(peer->ctx->sessions, address, events,
					&peer->session);

	return err == -ECONNREFUSED ? -EHOSTUNREACH : err;
}

int rbx_peer_close(struct rbx_peer *peer)
{
	int err;

	if (!peer)
		return 0;
	err = rbx_guard_wait(peer->ctx, "rbx_peer_close");
	if (err)
		return err;
	if (RBX_LOAD_ACQUIRE(&rbx_user_peer(peer)->remotes_count) != 0)
		return rbx_error(-EBUSY, "rbx_peer_close: memory that was borrowed from %s is still there; rbx_return() it first",
				 rbx_peer_name(peer));
	rbx_peer_leave(peer);
	return 0;
}
