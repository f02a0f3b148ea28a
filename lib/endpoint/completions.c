/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * completions.c - takes completions out of a completion queue of the fabric.
 *
 * A completion has its number in its ring (README.md). The fabric keeps the order, so all
 * before it have completed too: it frees all slots up to its own.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/endpoint/exchange.h"
#include "lib/endpoint/paced.h"

/* vector: NULL lets the device choose. */
static int cq_create(struct rbx_device *device, uint32_t depth,
		     const uint32_t *vector, struct rbx_cq **cq, char *error)
{
	if (!vector)
		return device->ops->create_cq(device, depth, cq, error);
	if (device->caps.completion_vectors)
		return device->ops->create_cq_on(device, depth, *vector, cq,
						 error);
	if (*vector == 0)
		return device->ops->create_cq(device, depth, cq, error);
	snprintf(error, RBX_ERROR_TEXT_MAX, "completion vector %u: %s has 0 to 0",
		 *vector, device->caps.name);
	return -EINVAL;
}

static int queue_create(struct rbx_context *ctx, uint32_t depth,
			const uint32_t *vector, struct rbx_queue **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_queue *queue;
	int err;

	if (!ctx || !out)
		return rbx_error(-EINVAL, "rbx_queue_create: a context must be given");
	err = rbx_guard_use(ctx, "rbx_queue_create");
	if (err)
		return err;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return rbx_error(-ENOMEM, "cannot allocate a queue");
	queue->ctx = ctx;
	queue->room_count = depth;
	err = cq_create(ctx->device, depth, vector, &queue->cq, error);
	if (err) {
		free(queue);
		return rbx_error(err, "%s", error);
	}
	pthread_mutex_init(&queue->lock, NULL);
	pthread_mutex_init(&queue->exchanges_lock, NULL);
	RBX_FETCH_ADD(&ctx->queues_count, 1);
	pthread_mutex_lock(&ctx->queues_lock);
	queue->next = ctx->queues;
	ctx->queues = queue;
	pthread_mutex_unlock(&ctx->queues_lock);
	*out = queue;
	return 0;
}

static void queue_unlink(struct rbx_queue *queue)
{
	struct rbx_context *ctx = queue->ctx;
	struct rbx_queue **at = &ctx->queues;

	pthread_mutex_lock(&ctx->queues_lock);
	while (*at != queue)
		at = &(*at)->next;
	*at = queue->next;
	pthread_mutex_unlock(&ctx->queues_lock);
}

void rbx_queues_visit_all(struct rbx_context *ctx)
{
	struct rbx_queue *queue;

	pthread_mutex_lock(&ctx->queues_lock);
	for (queue = ctx->queues; queue; queue = queue->next) {
		pthread_mutex_lock(&queue->lock);
		pthread_mutex_unlock(&queue->lock);
	}
	pthread_mutex_unlock(&ctx->queues_lock);
}

int rbx_queue_create(struct rbx_context *ctx, uint32_t depth,
		     struct rbx_queue **queue)
{
	return queue_create(ctx, depth, NULL, queue);
}

int rbx_queue_create_on(struct rbx_context *ctx, uint32_t depth, uint32_t vector,
			struct rbx_queue **queue)
{
	return queue_create(ctx, depth, &vector, queue);
}

int rbx_queue_destroy(struct rbx_queue *queue)
{
	uint32_t count;
	int err;

	if (!queue)
		return 0;
	err = rbx_guard_use(queue->ctx, "rbx_queue_destroy");
	if (err)
		return err;
	count = RBX_LOAD_ACQUIRE(&queue->endpoints_count);
	if (count)
		return rbx_error(-EBUSY, "rbx_queue_destroy: %u endpoints use it: rbx_endpoint_close() first",
				 count);
	queue_unlink(queue);
	queue->ctx->device->ops->destroy_cq(queue->cq);
	RBX_FETCH_ADD(&queue->ctx->queues_count, (uint32_t)-1);
	pthread_mutex_destroy(&queue->lock);
	pthread_mutex_destroy(&queue->exchanges_lock);
	free(queue);
	return 0;
}

/* ---- Polling --------------------------------------------------------------------*/

/* False: it is one that is not reported to the program. */
static bool translate(const struct rbx_wc *wc, struct rbx_completion *completion)
{
	struct rbx_endpoint *endpoint = wc->qp->user;
	bool is_receive = wc->wr_id & RBX_ENDPOINT_RECEIVE_ID;
	struct rbx_endpoint_ring *ring =
		is_receive ? &endpoint->receives : &endpoint->sends;
	uint32_t number = (uint32_t)wc->wr_id;
	struct rbx_endpoint_slot slot = { .is_silent = false };

	if (is_receive && endpoint->shared) {
		slot.user = rbx_shared_receives_complete(endpoint->shared,
							 number);
	} else {
		slot = ring->slots[number & ring->mask];
		/* From here on a thread that posts may use the slot again. */
		RBX_STORE_RELEASE(&ring->completed_count, number + 1);
	}
	if (is_receive && endpoint->exchanger) {
		rbx_exchanger_received(endpoint->exchanger, slot.user, wc);
		return false;
	}
	if (slot.is_of_exchange) {
		rbx_exchanger_posted(endpoint->exchanger, slot.user, wc->status);
		return false;
	}
	if (slot.is_silent && wc->status == 0)
		return false;
	*completion = (struct rbx_completion){
		.endpoint = endpoint,
		.user = slot.user,
		.status = wc->status,
		.kind = is_receive ? RBX_COMPLETION_RECEIVED :
				     RBX_COMPLETION_POSTED,
	};
	if (!is_receive || wc->status != 0)
		return true;
	if (wc->opcode == RBX_OP_RECV_WRITE)
		completion->kind = RBX_COMPLETION_WRITTEN;
	completion->length_bytes = wc->length_bytes;
	completion->has_immediate = wc->flags & RBX_WC_IMMEDIATE ? 1 : 0;
	completion->has_invalidated = wc->flags & RBX_WC_INVALIDATED ? 1 : 0;
	if (completion->has_immediate)
		completion->immediate = wc->immediate;
	if (completion->has_invalidated)
		completion->invalidated_key = wc->invalidated_rkey;
	return true;
}

static bool is_of_paced(const struct rbx_wc *wc)
{
	const struct rbx_endpoint *endpoint = wc->qp->user;

	return endpoint->paced && !(wc->wr_id & RBX_ENDPOINT_RECEIVE_ID);
}

static unsigned int take(struct rbx_queue *queue,
			 struct rbx_completion *completions, unsigned int max)
{
	const struct rbx_fabric_ops *ops = queue->cq->device->ops;
	struct rbx_wc wcs[RBX_POLL_BATCH];
	unsigned int count = 0;
	int asked, found, i;

	pthread_mutex_lock(&queue->lock);
	if (queue->done_first)
		count = rbx_paced_deliver(queue, completions, max);
	while (count < max) {
		bool settles = false;

		asked = (int)RBX_MIN(max - count, RBX_POLL_BATCH);
		found = ops->poll(queue->cq, wcs, asked);
		for (i = 0; i < found; i++) {
			if (is_of_paced(&wcs[i])) {
				rbx_paced_completed(queue, &wcs[i]);
				settles = true;
			} else {
				count += translate(&wcs[i], &completions[count]);
			}
		}
		if (settles) {
			rbx_paced_settle(queue);
			count += rbx_paced_deliver(queue, &completions[count],
						   max - count);
		}
		/* Another poll would probably find nothing. */
		if (found < asked)
			break;
	}
	pthread_mutex_unlock(&queue->lock);
	if (RBX_LOAD_ACQUIRE(&queue->exchangers_count))
		count += rbx_exchangers_run(queue, &completions[count], max - count);
	return count;
}

/* A deadline may pass while nothing completes. */
static int sleep_ms(const struct rbx_queue *queue, int left_ms)
{
	if (!RBX_LOAD_ACQUIRE(&queue->exchangers_count))
		return left_ms;
	return left_ms < 0 ? RBX_EXCHANGERS_TICK_MS :
			     RBX_MIN(left_ms, RBX_EXCHANGERS_TICK_MS);
}

/* Takes the event. The queue is polled next. */
static void hear(struct rbx_queue *queue)
{
	if (queue->is_armed)
		queue->cq->device->ops->consume_events(queue->cq);
	queue->is_armed = false;
}

int rbx_queue_arm(struct rbx_queue *queue)
{
	int err = rbx_guard_use(queue->ctx, "rbx_queue_arm");

	if (err)
		return err;
	hear(queue);
	err = queue->cq->device->ops->arm(queue->cq);
	queue->is_armed = true;
	return err ? rbx_error(-EIO, "the device cannot tell of completions (%d)", err) : 0;
}

int rbx_queue_fd(const struct rbx_queue *queue)
{
	return queue->cq->event_fd;
}

/* Waits until there is a completion, or the time is over. */
static int wait_and_take(struct rbx_queue *queue,
			 struct rbx_completion *completions, unsigned int max,
			 int timeout_ms)
{
	struct pollfd event = { queue->cq->event_fd, POLLIN, 0 };
	uint64_t begin_ns = rbx_now_ns();
	int left_ms, err;
	unsigned int count;

	do {
		err = rbx_queue_arm(queue);
		if (err)
			return err;
		count = take(queue, completions, max);
		left_ms = rbx_endpoint_left_ms(timeout_ms, begin_ns);
		if (count == 0 && left_ms != 0)
			(void)poll(&event, 1, sleep_ms(queue, left_ms));
	} while (count == 0 && left_ms != 0);
	return (int)count;
}

int rbx_queue_poll(struct rbx_queue *queue, struct rbx_completion *completions,
		   unsigned int max, int timeout_ms)
{
	unsigned int count;
	int err;

	if (!queue || !completions || max == 0)
		return rbx_error(-EINVAL, "rbx_queue_poll: a queue and room for completions must be given");
	err = rbx_guard_use(queue->ctx, "rbx_queue_poll");
	if (err)
		return err;
	max = RBX_MIN(max, (unsigned int)INT32_MAX);
	hear(queue);
	count = take(queue, completions, max);
	if (count != 0 || timeout_ms == 0)
		return (int)count;
	err = rbx_guard_thread("rbx_queue_poll");
	return err ? err : wait_and_take(queue, completions, max, timeout_ms);
}

int rbx_queue_run(struct rbx_queue *queue, int timeout_ms)
{
	struct rbx_completion completions[RBX_POLL_BATCH];
	int count = rbx_queue_poll(queue, completions, RBX_POLL_BATCH, timeout_ms);

	for (int i = 0; i < count; i++) {
		const struct rbx_endpoint *endpoint = completions[i].endpoint; // NOLINT

		if (endpoint->completed) {
			const char *before = rbx_callback_enter(
				"callback of rbx_queue_run()");

			endpoint->completed(&completions[i]);
			rbx_callback_leave(before);
		}
	}
	return count;
}
