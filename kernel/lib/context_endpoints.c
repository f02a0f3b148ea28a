/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_endpoints.c - what endpoints have of a context: room with a poller, and word
 * when its device goes.
 *
 * Room is given out by the lane, as peers have it, so that either finds what the other
 * has left.
 */
#include "kernel/lib/context.h"

uint32_t rbx_context_room_max(const struct rbx_context *ctx)
{
	return ctx->lanes_each_count * RBX_LANE_COMPLETIONS;
}

static uint32_t lanes_of(uint32_t completions_count)
{
	return DIV_ROUND_UP(completions_count, RBX_LANE_COMPLETIONS);
}

int rbx_context_take_room(struct rbx_context *ctx, uint32_t completions_count,
			  struct rbx_poller **out)
{
	uint32_t lanes_count = lanes_of(completions_count);
	struct rbx_poller *poller;
	int err = 0;

	mutex_lock(&ctx->peers_lock);
	poller = rbx_context_poller_with_room_locked(ctx);
	if (poller->lanes_left_count < lanes_count)
		err = -ENOSPC;
	else
		poller->lanes_left_count -= lanes_count;
	mutex_unlock(&ctx->peers_lock);
	if (!err)
		*out = poller;
	return err;
}

void rbx_context_give_room(struct rbx_poller *poller, uint32_t completions_count)
{
	mutex_lock(&poller->ctx->peers_lock);
	poller->lanes_left_count += lanes_of(completions_count);
	mutex_unlock(&poller->ctx->peers_lock);
}

/* Whoever comes after is_ready was taken back is not told by the walk of the list. */
int rbx_context_watch(struct rbx_context *ctx, struct rbx_device_watch *watch)
{
	int err = 0;

	mutex_lock(&ctx->watches_lock);
	if (READ_ONCE(ctx->is_ready))
		list_add(&watch->link, &ctx->watches);
	else
		err = -ENODEV;
	mutex_unlock(&ctx->watches_lock);
	return err;
}

void rbx_context_unwatch(struct rbx_context *ctx, struct rbx_device_watch *watch)
{
	mutex_lock(&ctx->watches_lock);
	list_del(&watch->link);
	mutex_unlock(&ctx->watches_lock);
}

void rbx_context_tell_watches(struct rbx_context *ctx)
{
	struct rbx_device_watch *watch;

	mutex_lock(&ctx->watches_lock);
	list_for_each_entry(watch, &ctx->watches, link)
		watch->gone(watch);
	mutex_unlock(&ctx->watches_lock);
}
