/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_peers.c - the peers of a context: each has a slot in its table, by which
 * parked combiners are found, and a poller for each of its lanes.
 */
#include "kernel/lib/context.h"
#include "kernel/lib/peer.h"

struct rbx_poller *rbx_context_poller_with_room_locked(struct rbx_context *ctx)
{
	struct rbx_poller *most = &ctx->pollers[0];
	uint32_t i;

	lockdep_assert_held(&ctx->peers_lock);
	for (i = 1; i < ctx->pollers_count; i++)
		if (ctx->pollers[i].lanes_left_count > most->lanes_left_count)
			most = &ctx->pollers[i];
	return most;
}

/* The first so many lanes have none any more. */
static void pollers_take_back(struct rbx_peer *peer, uint32_t lane_count)
{
	while (lane_count--)
		peer->lanes[lane_count].poller->lanes_left_count++;
}

static int pollers_assign(struct rbx_context *ctx, struct rbx_peer *peer)
{
	uint32_t i;

	for (i = 0; i < peer->lane_count; i++) {
		struct rbx_poller *poller =
			rbx_context_poller_with_room_locked(ctx);

		if (!poller->lanes_left_count) {
			pollers_take_back(peer, i);
			return -ENOSPC;
		}
		poller->lanes_left_count--;
		peer->lanes[i].poller = poller;
	}
	return 0;
}

int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	int err = -ENOSPC;
	uint32_t slot = 0;

	mutex_lock(&ctx->peers_lock);
	while (slot < RBX_PEERS_MAX && ctx->peers[slot])
		slot++;
	if (slot < RBX_PEERS_MAX)
		err = pollers_assign(ctx, peer);
	if (!err) {
		peer->channel.slot = slot;
		RBX_STORE_RELEASE(&ctx->peers[slot], peer);
		if (slot >= ctx->peer_slots_used)
			RBX_STORE_RELEASE(&ctx->peer_slots_used, slot + 1);
	}
	mutex_unlock(&ctx->peers_lock);
	return err;
}

void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	pollers_take_back(peer, peer->lane_count);
	RBX_STORE_RELEASE(&ctx->peers[peer->channel.slot], NULL);
	for (i = 0; i < ctx->pollers_count; i++)
		rbx_poller_visit(&ctx->pollers[i]);
	rbx_channel_leave(&peer->channel);
	mutex_unlock(&ctx->peers_lock);
}

static uint32_t slots_used(void *host)
{
	struct rbx_context *ctx = host;

	return RBX_LOAD_ACQUIRE(&ctx->peer_slots_used);
}

static struct rbx_channel *channel_at(void *host, uint32_t slot)
{
	struct rbx_context *ctx = host;
	struct rbx_peer *peer = RBX_LOAD_ACQUIRE(&ctx->peers[slot]);

	return peer ? &peer->channel : NULL;
}

static void combine(struct rbx_channel *channel)
{
	rbx_peer_combine(container_of(channel, struct rbx_peer, channel));
}

bool rbx_context_unpark(struct rbx_context *ctx)
{
	static const struct rbx_drive_channels channels = {
		.slots_used = slots_used,
		.at = channel_at,
		.combine = combine,
	};

	return rbx_drive_unpark(&channels, ctx, &ctx->window.turns);
}
