/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_room.c - room in the completion queues of a context's pollers.
 *
 * Room is given to each queue pair, of peers and endpoints alike, at the poller that
 * serves the fewest. No queue can overrun. A poller whose queues are full gets another
 * one.
 */
#include "kernel/lib/context.h"

uint32_t rbx_context_room_max(const struct rbx_context *ctx)
{
	return ctx->qps_each_count * RBX_QP_COMPLETIONS;
}

static uint32_t qps_of(uint32_t completions_count)
{
	return DIV_ROUND_UP(completions_count, RBX_QP_COMPLETIONS);
}

static struct rbx_poller *least_locked(struct rbx_context *ctx)
{
	struct rbx_poller *least = &ctx->pollers[0];
	uint32_t i;

	lockdep_assert_held(&ctx->peers_lock);
	for (i = 1; i < ctx->pollers_count; i++)
		if (ctx->pollers[i].qps_count < least->qps_count)
			least = &ctx->pollers[i];
	return least;
}

/* Finds the queue of a poller with room for so many queue pairs. It may make one. */
static int cq_find_locked(struct rbx_poller *poller, uint32_t qps_count,
			  uint32_t *cq_index)
{
	struct rbx_context *ctx = poller->ctx;
	uint32_t i;

	lockdep_assert_held(&rbx_contexts_lock);
	lockdep_assert_held(&ctx->peers_lock);
	if (qps_count > ctx->qps_each_count)
		return -ENOSPC;
	for (i = 0; i < poller->cqs_count; i++)
		if (poller->cq_qps_counts[i] + qps_count <= ctx->qps_each_count)
			break;
	*cq_index = i;
	if (i == RBX_POLLER_CQS_MAX)
		return -ENOSPC;
	return i < poller->cqs_count ?
		       0 :
		       rbx_poller_grow(poller, ctx->device,
				       rbx_context_room_max(ctx));
}

int rbx_context_take_room(struct rbx_context *ctx, uint32_t completions_count,
			  struct rbx_poller **out, uint32_t *cq_index)
{
	uint32_t qps_count = qps_of(completions_count);
	unsigned int noio = rbx_contexts_take(); /* so that the device does not change */
	struct rbx_poller *poller;
	int err;

	mutex_lock(&ctx->peers_lock);
	poller = least_locked(ctx);
	err = cq_find_locked(poller, qps_count, cq_index);
	if (!err) {
		poller->qps_count += qps_count;
		poller->cq_qps_counts[*cq_index] += qps_count;
		*out = poller;
	}
	mutex_unlock(&ctx->peers_lock);
	rbx_contexts_give(noio);
	return err;
}

void rbx_context_give_room(struct rbx_poller *poller, uint32_t cq_index,
			   uint32_t completions_count)
{
	uint32_t qps_count = qps_of(completions_count);

	mutex_lock(&poller->ctx->peers_lock);
	poller->qps_count -= qps_count;
	poller->cq_qps_counts[cq_index] -= qps_count;
	mutex_unlock(&poller->ctx->peers_lock);
}
