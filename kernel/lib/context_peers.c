/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_peers.c - the peers of a context: each has a slot in its table, by which
 * parked combiners are found, and a poller for each of its lanes.
 */
#include "kernel/lib/context.h"
#include "kernel/lib/peer.h"

/* The first so many lanes have none any more. */
static void pollers_give(struct rbx_kernel_peer *peer, uint32_t lane_count)
{
	while (lane_count--)
		rbx_context_give_room(peer->lanes[lane_count].poller,
				      peer->lanes[lane_count].cq_index,
				      RBX_LANE_COMPLETIONS);
}

static int pollers_take(struct rbx_context *ctx, struct rbx_kernel_peer *peer)
{
	uint32_t i;
	int err;

	for (i = 0; i < peer->lane_count; i++) {
		struct rbx_lane *lane = &peer->lanes[i];

		err = rbx_context_take_room(ctx, RBX_LANE_COMPLETIONS,
					    &lane->poller, &lane->cq_index);
		if (err) {
			pollers_give(peer, i);
			return err;
		}
	}
	peer->peer.poller = peer->lanes[0].poller;
	return 0;
}

static int slot_take(struct rbx_context *ctx, struct rbx_peer *peer)
{
	uint32_t slot = 0;

	mutex_lock(&ctx->peers_lock);
	while (slot < RBX_PEERS_MAX && ctx->peers[slot])
		slot++;
	if (slot < RBX_PEERS_MAX) {
		peer->channel.slot = slot;
		RBX_STORE_RELEASE(&ctx->peers[slot], peer);
		if (slot >= ctx->peer_slots_used)
			RBX_STORE_RELEASE(&ctx->peer_slots_used, slot + 1);
	}
	mutex_unlock(&ctx->peers_lock);
	return slot < RBX_PEERS_MAX ? 0 : -ENOSPC;
}

int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);
	int err = pollers_take(ctx, made);

	if (err)
		return err;
	err = slot_take(ctx, peer);
	if (err)
		pollers_give(made, made->lane_count);
	return err;
}

void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	RBX_STORE_RELEASE(&ctx->peers[peer->channel.slot], NULL);
	for (i = 0; i < ctx->pollers_count; i++)
		rbx_poller_visit(&ctx->pollers[i]);
	rbx_channel_leave(&peer->channel);
	mutex_unlock(&ctx->peers_lock);
	pollers_give(made, made->lane_count);
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
	rbx_peer_combine(rbx_peer_of_channel(channel));
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
