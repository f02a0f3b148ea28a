/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_peers.c - adds and removes the peers of a context. Each has a slot among the
 * channels of the window, so that its parked combiner is found, and a poller for each of
 * its queue pairs.
 */
#include "kernel/lib/context.h"
#include "kernel/lib/peer/peer.h"

/* Takes the first queue pairs from their pollers. */
static void pollers_give(struct rbx_kernel_peer *peer, uint32_t qps_count)
{
	while (qps_count--)
		rbx_context_give_room(peer->qps[qps_count].poller,
				      peer->qps[qps_count].cq_index,
				      RBX_QP_COMPLETIONS);
}

static int pollers_take(struct rbx_context *ctx, struct rbx_kernel_peer *peer)
{
	uint32_t i;
	int err;

	for (i = 0; i < peer->qps_count; i++) {
		struct rbx_peer_qp *pair = &peer->qps[i];

		err = rbx_context_take_room(ctx, RBX_QP_COMPLETIONS,
					    &pair->poller, &pair->cq_index);
		if (err) {
			pollers_give(peer, i);
			return err;
		}
	}
	peer->peer.poller = peer->qps[0].poller;
	return 0;
}

static int slot_take(struct rbx_context *ctx, struct rbx_peer *peer)
{
	bool is_added;

	mutex_lock(&ctx->peers_lock);
	is_added = rbx_channel_slots_add_peer(&ctx->channels, &peer->channel);
	mutex_unlock(&ctx->peers_lock);
	return is_added ? 0 : -ENOSPC;
}

int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);
	int err = pollers_take(ctx, made);

	if (err)
		return err;
	err = slot_take(ctx, peer);
	if (err)
		pollers_give(made, made->qps_count);
	return err;
}

void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);

	rbx_context_remove_channel(ctx, &peer->channel);
	pollers_give(made, made->qps_count);
}
