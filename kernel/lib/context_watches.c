/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* context_watches.c - tells users of a device when it is being removed. */
#include "kernel/lib/context.h"

/* If is_ready was cleared before the call, the walk of the list does not call this watch. */
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
