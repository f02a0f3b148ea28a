/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_channels.c - the channels of a context's window: a thread that has completed
 * something lets the parked ones try again.
 */
#include "core/drive.h"
#include "kernel/lib/context.h"
#include "kernel/lib/peer/peer.h"

int rbx_context_add_paced(struct rbx_context *ctx, struct rbx_channel *channel)
{
	bool is_added;

	mutex_lock(&ctx->peers_lock);
	is_added = rbx_channel_slots_add_paced(&ctx->channels, channel);
	mutex_unlock(&ctx->peers_lock);
	return is_added ? 0 : -ENOSPC;
}

void rbx_context_remove_channel(struct rbx_context *ctx,
				struct rbx_channel *channel)
{
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	rbx_channel_slots_remove(&ctx->channels, channel);
	for (i = 0; i < ctx->pollers_count; i++)
		rbx_poller_visit(&ctx->pollers[i]);
	rbx_channel_leave(channel);
	mutex_unlock(&ctx->peers_lock);
}

static void combine(struct rbx_channel *channel)
{
	if (rbx_channel_is_paced(channel))
		rbx_paced_combine(channel);
	else
		rbx_peer_combine(rbx_peer_of_channel(channel));
}

bool rbx_context_unpark(struct rbx_context *ctx)
{
	static const struct rbx_drive_channels channels = {
		.slots_used = rbx_channel_slots_used,
		.at = rbx_channel_slots_at,
		.combine = combine,
	};

	return rbx_drive_unpark(&channels, &ctx->channels, &ctx->window.turns);
}
