/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* paced.c - operations of a paced endpoint: posted, completed, and its end; see paced.h. */
#include <sched.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/endpoint/exchange.h"
#include "lib/endpoint/paced_state.h"

#define ROUNDS_MAX 64u

/* ---- Posting ----------------------------------------------------------------------*/

static uint8_t *inline_bytes_of(struct rbx_paced_op *op)
{
	return (uint8_t *)&op->sges[op->endpoint->segments_max];
}

/* Copies inline data, as the program may change its memory once post() has returned. */
static void inline_copy(struct rbx_paced_op *op)
{
	uint8_t *to = inline_bytes_of(op);

	for (uint32_t i = 0; i < op->wr.sge_count; i++) {
		rbx_port_copy(to, (void *)(uintptr_t)op->sges[i].addr,
			      op->sges[i].length_bytes);
		op->sges[i].addr = (uintptr_t)to;
		to += op->sges[i].length_bytes;
	}
}

/* Whether it may be merged: one segment, and nothing else goes with it. */
static bool is_plain(const struct rbx_operation *operation,
		     const struct rbx_wr *wr)
{
	const uint32_t more = RBX_OPERATION_INLINE | RBX_OPERATION_IMMEDIATE;

	return (operation->kind == RBX_OPERATION_READ ||
		operation->kind == RBX_OPERATION_WRITE) &&
	       !(operation->flags & more) && wr->sge_count == 1;
}

static void op_fill(struct rbx_paced_op *op, const struct rbx_operation *operation)
{
	struct rbx_fragment *fragment = &op->fragment;
	enum rbx_direction direction = RBX_DIRECTION_ORDERED;

	op->user = operation->user;
	op->is_silent = operation->flags & RBX_OPERATION_SILENT;
	op->is_of_exchange = operation->flags & RBX_OPERATION_OF_EXCHANGE;
	op->is_opening = NULL;
	rbx_operation_translate(op->endpoint, operation, op->sges, &op->wr);
	if (operation->flags & RBX_OPERATION_INLINE)
		inline_copy(op);
	if (is_plain(operation, &op->wr))
		direction = operation->kind == RBX_OPERATION_READ ?
				    RBX_DIRECTION_READ :
				    RBX_DIRECTION_WRITE;
	rbx_paced_fill(fragment, direction,
		       operation->flags & RBX_OPERATION_FENCE,
		       operation->flags & RBX_OPERATION_URGENT);
	fragment->rkey = operation->key;
	fragment->remote_addr = operation->address;
	for (uint32_t i = 0; i < op->wr.sge_count; i++)
		fragment->length_bytes += op->sges[i].length_bytes;
	if (op->wr.sge_count) {
		fragment->local_addr = op->sges[0].addr;
		fragment->lkey = op->sges[0].lkey;
	}
}

uint32_t rbx_paced_depth(const struct rbx_endpoint *endpoint)
{
	return endpoint->paced->paced.places_count;
}

static int room_check_locked(struct rbx_paced *paced, unsigned int count)
{
	if (rbx_paced_has_room(paced, count))
		return 0;
	return rbx_error(-EAGAIN, "%u are outstanding, of %u at most: poll first",
			 paced->places_count - paced->free_count,
			 paced->places_count);
}

int rbx_paced_post(struct rbx_endpoint *endpoint,
		   const struct rbx_operation *operations, unsigned int count)
{
	struct rbx_fragment *first = NULL, *last = NULL;
	struct rbx_paced *paced = &endpoint->paced->paced;
	bool combines = false;
	int err;

	pthread_mutex_lock(&endpoint->post_lock);
	err = room_check_locked(paced, count);
	for (unsigned int i = 0; i < count && !err; i++) {
		struct rbx_fragment *fragment = rbx_paced_take(paced);

		op_fill(rbx_paced_op_of(fragment), &operations[i]);
		rbx_fragment_append(&first, &last, fragment, fragment);
	}
	/* Under the lock, so that they keep the order in which they were posted. */
	if (first)
		combines = rbx_channel_submit(&paced->channel, first, last);
	pthread_mutex_unlock(&endpoint->post_lock);
	if (combines)
		rbx_paced_combine(&paced->channel);
	return err;
}

int rbx_paced_open_window(struct rbx_endpoint *endpoint, const struct rbx_wr *wr,
			  bool *is_opening, void *user)
{
	struct rbx_paced *paced = &endpoint->paced->paced;
	bool combines = false;
	int err;

	pthread_mutex_lock(&endpoint->post_lock);
	err = room_check_locked(paced, 1);
	if (!err) {
		struct rbx_paced_op *op = rbx_paced_op_of(rbx_paced_take(paced));

		op->user = user;
		op->is_silent = true;
		op->is_of_exchange = false;
		op->is_opening = is_opening;
		op->wr = *wr;
		rbx_paced_fill(&op->fragment, RBX_DIRECTION_ORDERED, false, false);
		combines = rbx_channel_submit(&paced->channel, &op->fragment,
					      &op->fragment);
	}
	pthread_mutex_unlock(&endpoint->post_lock);
	if (combines)
		rbx_paced_combine(&paced->channel);
	return err;
}

/* ---- Completing -------------------------------------------------------------------*/

void rbx_paced_completed(struct rbx_queue *queue, const struct rbx_wc *wc)
{
	struct rbx_endpoint *endpoint = wc->qp->user;
	struct rbx_paced *paced = &endpoint->paced->paced;

	if (wc->wr_id == RBX_PACED_MARKER_ID)
		rbx_paced_marked(paced, rbx_now_ns(), &queue->harvest);
	else
		rbx_drive_completed(&rbx_paced_drive, &paced->channel, 0,
				    (uint32_t)wc->wr_id, wc->status,
				    rbx_now_ns(), &queue->harvest);
}

static void done_append(struct rbx_queue *queue, struct rbx_fragment *list)
{
	struct rbx_fragment *next;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		rbx_fragment_append(&queue->done_first, &queue->done_last, list,
				    list);
	}
}

/* Lets channels go on that wait for the credit that came back. If other threads complete
 * so much meanwhile that this never ends, a poller does the next round. */
static void unpark(struct rbx_context *ctx)
{
	uint32_t rounds = 0;

	while (rbx_context_unpark(ctx) && ++rounds < ROUNDS_MAX)
		;
	if (rounds == ROUNDS_MAX)
		rbx_poller_unpark(ctx->pollers[0]);
}

void rbx_paced_settle(struct rbx_queue *queue)
{
	struct rbx_harvest *harvest = &queue->harvest;

	if (harvest->work_requests)
		rbx_harvest_settle(harvest, &queue->ctx->window, rbx_now_ns());
	done_append(queue, harvest->done_first);
	*harvest = (struct rbx_harvest){ 0 };
	/* Also if no credit came back: work requests that a device did not take gave
	 * theirs back before, and left this round to us. */
	unpark(queue->ctx);
}

unsigned int rbx_paced_deliver(struct rbx_queue *queue,
			       struct rbx_completion *completions,
			       unsigned int max)
{
	unsigned int count = 0;

	while (queue->done_first && count < max) {
		struct rbx_fragment *fragment = queue->done_first;
		struct rbx_paced_op *op = rbx_paced_op_of(fragment);

		queue->done_first = rbx_fragment_next(fragment);
		if (op->is_of_exchange)
			rbx_exchanger_posted(op->endpoint->exchanger, op->user,
					     fragment->status);
		else if (!op->is_silent || fragment->status)
			completions[count++] = (struct rbx_completion){
				.endpoint = op->endpoint,
				.user = op->user,
				.status = fragment->status,
				.kind = RBX_COMPLETION_POSTED,
			};
		if (op->is_opening)
			RBX_STORE_RELEASE(op->is_opening, false);
		rbx_paced_give(&op->endpoint->paced->paced, fragment);
	}
	return count;
}

/* ---- Making and ending ------------------------------------------------------------*/

static size_t op_bytes(const struct rbx_endpoint *endpoint)
{
	size_t bytes = sizeof(struct rbx_paced_op) +
		       endpoint->segments_max * sizeof(struct rbx_sge) +
		       endpoint->inline_bytes_max;

	return (bytes + _Alignof(struct rbx_paced_op) - 1) / _Alignof(struct rbx_paced_op) *
	       _Alignof(struct rbx_paced_op);
}

/* A ring has a power of two of slots. rbx_paced_begin() tells how many of them are used. */
static uint32_t ring_depth(const struct rbx_endpoint *endpoint)
{
	return endpoint->sends.mask + 1;
}

static int memory_make(struct rbx_paced_endpoint *paced, uint32_t depth_count)
{
	size_t bytes = op_bytes(paced->endpoint);

	paced->works = calloc(ring_depth(paced->endpoint),
			      sizeof(*paced->works));
	paced->ops = calloc(depth_count, bytes);
	if (!paced->works || !paced->ops)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	for (uint32_t i = 0; i < depth_count; i++) {
		struct rbx_paced_op *op = (struct rbx_paced_op *)(paced->ops + i * bytes);

		op->endpoint = paced->endpoint;
		rbx_paced_add(&paced->paced, &op->fragment);
	}
	return 0;
}

int rbx_paced_make(struct rbx_endpoint *endpoint, struct rbx_context *ctx,
		   uint32_t depth_count)
{
	struct rbx_paced_endpoint *paced = calloc(1, sizeof(*paced));
	int err;

	if (!paced)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	paced->endpoint = endpoint;
	err = memory_make(paced, depth_count);
	if (!err) {
		rbx_paced_init(&paced->paced, &rbx_paced_host, &ctx->planner,
			       &ctx->window, paced->works, ring_depth(endpoint));
		err = rbx_context_add_paced(ctx, &paced->paced.channel);
	}
	if (!err) {
		endpoint->paced = paced;
		return 0;
	}
	free(paced->works);
	free(paced->ops);
	free(paced);
	return err;
}

void rbx_paced_begin(struct rbx_endpoint *endpoint, uint32_t depth_count)
{
	struct rbx_paced *paced = &endpoint->paced->paced;

	rbx_channel_set_depth(&paced->channel, 0,
			      RBX_MIN(depth_count, paced->places_count));
}

void rbx_paced_disconnect(struct rbx_endpoint *endpoint)
{
	struct rbx_channel *channel = &endpoint->paced->paced.channel;

	rbx_paced_broken(channel);
	if (rbx_channel_unpark(channel))
		rbx_paced_combine(channel);
}

/* Drops its operations that wait to be polled: they are not reported any more. */
static void done_forget_locked(struct rbx_queue *queue,
			       const struct rbx_endpoint *endpoint)
{
	struct rbx_fragment *list = queue->done_first, *next;

	queue->done_first = NULL;
	for (; list; list = next) {
		next = rbx_fragment_next(list);
		if (rbx_paced_op_of(list)->endpoint != endpoint)
			rbx_fragment_append(&queue->done_first,
					    &queue->done_last, list, list);
	}
}

void rbx_paced_end(struct rbx_endpoint *endpoint)
{
	struct rbx_paced *paced = &endpoint->paced->paced;
	struct rbx_queue *queue = endpoint->queue;
	struct rbx_harvest harvest = { 0 };

	rbx_paced_broken(&paced->channel);
	/* After this no other thread posts, and none uses the queue pair, not even the
	 * thread that first found it broken. */
	while (!rbx_channel_seize(&paced->channel))
		sched_yield();
	rbx_context_remove_paced(queue->ctx, &paced->channel);
	/* After this no thread that polls holds a completion of it. Its credit goes to
	 * others. */
	pthread_mutex_lock(&queue->lock);
	endpoint->qp->device->ops->destroy_qp(endpoint->qp);
	rbx_paced_clear(paced, false, rbx_now_ns(), &harvest);
	rbx_harvest_settle(&harvest, &queue->ctx->window, rbx_now_ns());
	done_forget_locked(queue, endpoint);
	unpark(queue->ctx);
	pthread_mutex_unlock(&queue->lock);
}

void rbx_paced_free(struct rbx_endpoint *endpoint)
{
	struct rbx_paced_endpoint *paced = endpoint->paced;

	if (!paced)
		return;
	if (!endpoint->qp) /* else rbx_paced_end() has done it */
		rbx_context_remove_paced(endpoint->queue->ctx,
					 &paced->paced.channel);
	free(paced->works);
	free(paced->ops);
	free(paced);
}
