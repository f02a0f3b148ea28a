/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.c - see paced.h.
 *
 * The end. With the first failure the channel is dead: what is posted comes back flushed,
 * and what waits to be posted, or comes later, is refused. Nothing of the device tells of
 * that, and who polls may sleep: so a marker is posted on the queue pair, behind all else.
 * It also tells of what was before it without a signal, if the device took a part of a
 * chain and not its end.
 */
#include <sched.h>
#include <stdlib.h>

#include "core/drive.h"
#include "lib/clock.h"
#include "lib/endpoint/paced.h"

#define MARK_TRIES 8u
#define ROUNDS_MAX 64u

struct op {
	struct rbx_fragment fragment;
	struct rbx_endpoint *endpoint;
	void *user;
	bool is_silent;
	struct rbx_wr wr; /* of what is ordered; its list follows */
	struct rbx_sge sges[];
};

struct rbx_paced {
	struct rbx_channel channel;
	struct rbx_endpoint *endpoint;
	bool is_dead; /* atomic: it has failed, or is closed */
	bool is_marked; /* atomic: a marker is posted */
	bool is_wanted; /* atomic: its turn is over with nothing outstanding */
	struct rbx_work *works;
	uint8_t *ops;
	uint32_t depth_count;
	struct rbx_fragment *free_first; /* with post_lock */
	uint32_t free_count;
	struct rbx_node *freed; /* atomic: by who polls, newest first */
};

static struct rbx_paced *paced_of(struct rbx_channel *channel)
{
	return RBX_CONTAINER_OF(channel, struct rbx_paced, channel);
}

static struct op *op_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct op, fragment);
}

/* ---- The host of its channel ------------------------------------------------------*/

static void translate(const struct rbx_work *work, struct rbx_wr *wr)
{
	if (work->direction == RBX_DIRECTION_ORDERED) {
		*wr = op_of(work->first)->wr;
		return;
	}
	*wr = (struct rbx_wr){
		.sges = work->sges,
		.sge_count = work->sge_count,
		.opcode = work->direction == RBX_DIRECTION_READ ? RBX_OP_READ :
								  RBX_OP_WRITE,
		.rkey = work->rkey,
		.remote_addr = work->remote_addr,
	};
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	struct rbx_qp *qp = paced_of(channel)->endpoint->qp;
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];
	struct rbx_wr wrs[RBX_CHAIN_MAX];
	struct rbx_wr *bad = wrs;

	for (uint32_t i = 0; i < chain->work_count; i++) {
		uint32_t number = chain->first_number + i;

		translate(rbx_send_ring_slot(ring, number), &wrs[i]);
		wrs[i].wr_id = number;
		wrs[i].next = &wrs[i + 1];
	}
	wrs[chain->work_count - 1].next = NULL;
	wrs[chain->work_count - 1].flags |= RBX_WR_SIGNALED;
	if (!qp->device->ops->post_send(qp, wrs, &bad))
		return 0;
	return chain->work_count - (uint32_t)(bad - wrs);
}

/* Its receives end too. */
static void broken(struct rbx_channel *channel)
{
	struct rbx_paced *paced = paced_of(channel);
	struct rbx_qp *qp = paced->endpoint->qp;

	if (RBX_EXCHANGE(&paced->is_dead, true))
		return;
	qp->device->ops->disconnect(qp);
	rbx_channel_set_state(channel, RBX_CHANNEL_HALTED);
	rbx_channel_set_state(channel, RBX_CHANNEL_DEAD);
}

static void mark(struct rbx_paced *paced)
{
	struct rbx_qp *qp = paced->endpoint->qp;
	struct rbx_wr marker = {
		.wr_id = RBX_PACED_MARKER_ID,
		.opcode = RBX_OP_WRITE,
		.flags = RBX_WR_SIGNALED,
	};
	struct rbx_wr *bad;
	uint32_t try;

	if (RBX_EXCHANGE(&paced->is_marked, true))
		return;
	/* There is room. A device that fails in this, too, is left to close(). */
	for (try = 0; try < MARK_TRIES; try++)
		if (!qp->device->ops->post_send(qp, &marker, &bad))
			return;
}

/* One by one, so that who takes them all finds their order by turning it round. */
static void push(struct rbx_queue *queue, struct rbx_fragment *list)
{
	struct rbx_fragment *next;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = NULL;
		rbx_drive_push_ended(&queue->ended, list);
	}
}

/* By the combiner: so nobody posts at the same time. */
static void end(struct rbx_channel *channel, struct rbx_fragment *list)
{
	struct rbx_paced *paced = paced_of(channel);

	push(paced->endpoint->queue, list);
	mark(paced);
}

/* What the device has not taken. The connection is over, so it is not tried again. */
static void keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	struct rbx_fragment *list = harvest->again_first, *each;

	for (each = list; each; each = rbx_fragment_next(each))
		each->status = -EHOSTUNREACH;
	harvest->again_first = harvest->again_last = NULL;
	end(channel, list);
}

static void wake(struct rbx_channel *channel)
{
	RBX_STORE_RELEASE(&paced_of(channel)->is_wanted, true);
}

static const struct rbx_drive drive = {
	.now_ns = rbx_now_ns,
	.post = post,
	.broken = broken,
	.keep = keep,
	.end = end,
	.wake = wake,
};

/* With nothing outstanding nobody else goes on with it. */
void rbx_paced_combine(struct rbx_channel *channel)
{
	struct rbx_paced *paced = paced_of(channel);

	do {
		rbx_drive_combine(&drive, channel);
	} while (RBX_EXCHANGE(&paced->is_wanted, false) &&
		 rbx_channel_unpark(channel));
}

/* ---- There ------------------------------------------------------------------------*/

/* What has come back since is there as well. */
static void refill_locked(struct rbx_paced *paced)
{
	struct rbx_fragment *list = rbx_drive_take_ended(&paced->freed), *next;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = paced->free_first ? &paced->free_first->node :
						      NULL;
		paced->free_first = list;
		paced->free_count++;
	}
}

static struct op *op_take_locked(struct rbx_paced *paced)
{
	struct rbx_fragment *fragment = paced->free_first;

	paced->free_first = rbx_fragment_next(fragment);
	paced->free_count--;
	return op_of(fragment);
}

static uint8_t *inline_bytes_of(struct op *op)
{
	return (uint8_t *)&op->sges[op->endpoint->segments_max];
}

/* The memory is the program's again when post() returns. */
static void inline_copy(struct op *op)
{
	uint8_t *to = inline_bytes_of(op);

	for (uint32_t i = 0; i < op->wr.sge_count; i++) {
		rbx_port_copy(to, (void *)(uintptr_t)op->sges[i].addr,
			      op->sges[i].length_bytes);
		op->sges[i].addr = (uintptr_t)to;
		to += op->sges[i].length_bytes;
	}
}

/* Whether it may be merged: a lone stretch, and nothing comes along. */
static bool is_plain(const struct rbx_operation *operation,
		     const struct rbx_wr *wr)
{
	const uint32_t more = RBX_OPERATION_INLINE | RBX_OPERATION_IMMEDIATE;

	return (operation->kind == RBX_OPERATION_READ ||
		operation->kind == RBX_OPERATION_WRITE) &&
	       !(operation->flags & more) && wr->sge_count == 1;
}

static void op_fill(struct op *op, const struct rbx_operation *operation)
{
	struct rbx_fragment *fragment = &op->fragment;
	uint8_t flags = RBX_FRAGMENT_HAS_LKEY | RBX_FRAGMENT_NO_RESEND;

	op->user = operation->user;
	op->is_silent = operation->flags & RBX_OPERATION_SILENT;
	rbx_operation_translate(op->endpoint, operation, op->sges, &op->wr);
	if (operation->flags & RBX_OPERATION_INLINE)
		inline_copy(op);
	if (operation->flags & RBX_OPERATION_FENCE)
		flags |= RBX_FRAGMENT_FENCE;
	if (operation->flags & RBX_OPERATION_URGENT)
		flags |= RBX_FRAGMENT_URGENT;
	*fragment = (struct rbx_fragment){
		.direction = operation->kind == RBX_OPERATION_READ ?
				     RBX_DIRECTION_READ :
				     RBX_DIRECTION_WRITE,
		.flags = flags,
		.rkey = operation->key,
		.remote_addr = operation->address,
	};
	for (uint32_t i = 0; i < op->wr.sge_count; i++)
		fragment->length_bytes += op->sges[i].length_bytes;
	if (op->wr.sge_count) {
		fragment->local_addr = op->sges[0].addr;
		fragment->lkey = op->sges[0].lkey;
	}
	if (is_plain(operation, &op->wr))
		return;
	fragment->direction = RBX_DIRECTION_ORDERED;
	fragment->flags |= RBX_FRAGMENT_ORDERED_FLAGS;
}

int rbx_paced_post(struct rbx_endpoint *endpoint,
		   const struct rbx_operation *operations, unsigned int count)
{
	struct rbx_fragment *first = NULL, *last = NULL;
	struct rbx_paced *paced = endpoint->paced;
	bool combines = false;
	int err = 0;

	pthread_mutex_lock(&endpoint->post_lock);
	refill_locked(paced);
	if (count > paced->free_count)
		err = rbx_error(-EAGAIN, "%u are outstanding, and there is room for %u: poll first",
				paced->depth_count - paced->free_count,
				paced->depth_count);
	for (unsigned int i = 0; i < count && !err; i++) {
		struct op *op = op_take_locked(paced);

		op_fill(op, &operations[i]);
		rbx_fragment_append(&first, &last, &op->fragment, &op->fragment);
	}
	/* Under the lock: in the order in which they were posted. */
	if (first)
		combines = rbx_channel_submit(&paced->channel, first, last);
	pthread_mutex_unlock(&endpoint->post_lock);
	if (combines)
		rbx_paced_combine(&paced->channel);
	return err;
}

/* ---- And back ---------------------------------------------------------------------*/

void rbx_paced_completed(struct rbx_endpoint *endpoint, const struct rbx_wc *wc,
			 struct rbx_harvest *harvest)
{
	struct rbx_paced *paced = endpoint->paced;

	if (wc->wr_id == RBX_PACED_MARKER_ID) {
		/* Nothing is posted after a marker but another one: it is over. */
		rbx_channel_complete_rest(&paced->channel, 0, rbx_now_ns(),
					  harvest);
		/* Then what was refused is looked at. Pairs with end(): it was pushed
		 * first, and marked if this is not seen to be over. */
		(void)RBX_EXCHANGE(&paced->is_marked, false);
	} else {
		rbx_drive_completed(&drive, &paced->channel, 0,
				    (uint32_t)wc->wr_id, wc->status,
				    rbx_now_ns(), harvest);
	}
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

/* Lets those that wait for what has come back go on. If others complete so much meanwhile
 * that rounds are left to us again and again, a poller has the next. */
static void unpark(struct rbx_context *ctx)
{
	uint32_t rounds = 0;

	while (rbx_context_unpark(ctx) && ++rounds < ROUNDS_MAX)
		;
	if (rounds == ROUNDS_MAX)
		rbx_poller_unpark(ctx->pollers[0]);
}

/* What was refused is told of after what was posted before it. */
static void refused_take(struct rbx_queue *queue)
{
	struct rbx_fragment *newest = rbx_drive_take_ended(&queue->ended);
	struct rbx_fragment *list = NULL, *next;

	for (; newest; newest = next) {
		next = rbx_fragment_next(newest);
		newest->node.next = list ? &list->node : NULL;
		list = newest;
	}
	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = NULL;
		if (rbx_channel_idle(&op_of(list)->endpoint->paced->channel))
			done_append(queue, list);
		else
			push(queue, list);
	}
}

void rbx_paced_settle(struct rbx_queue *queue, struct rbx_harvest *harvest)
{
	if (harvest->work_requests)
		rbx_harvest_settle(harvest, &queue->ctx->window, rbx_now_ns());
	done_append(queue, harvest->done_first);
	refused_take(queue);
	/* Also if it brings no credit: what a device has not taken gave it back before,
	 * and left the round to us. */
	unpark(queue->ctx);
}

unsigned int rbx_paced_deliver(struct rbx_queue *queue,
			       struct rbx_completion *completions,
			       unsigned int max)
{
	unsigned int count = 0;

	while (queue->done_first && count < max) {
		struct rbx_fragment *fragment = queue->done_first;
		struct op *op = op_of(fragment);

		queue->done_first = rbx_fragment_next(fragment);
		if (!op->is_silent || fragment->status)
			completions[count++] = (struct rbx_completion){
				.endpoint = op->endpoint,
				.user = op->user,
				.status = fragment->status,
				.kind = RBX_COMPLETION_POSTED,
			};
		fragment->node.next = NULL;
		/* From here on whoever posts may use it again. */
		rbx_drive_push_ended(&op->endpoint->paced->freed, fragment);
	}
	return count;
}

/* ---- Made, and ended ----------------------------------------------------------------*/

static size_t op_bytes(const struct rbx_endpoint *endpoint)
{
	size_t bytes = sizeof(struct op) +
		       endpoint->segments_max * sizeof(struct rbx_sge) +
		       endpoint->inline_bytes_max;

	return (bytes + _Alignof(struct op) - 1) / _Alignof(struct op) *
	       _Alignof(struct op);
}

static uint32_t power_of_two_below(uint32_t count)
{
	uint32_t power = 1;

	while (power <= count / 2)
		power *= 2;
	return power;
}

static int memory_make(struct rbx_paced *paced, uint32_t depth_count)
{
	size_t bytes = op_bytes(paced->endpoint);

	paced->works = calloc(depth_count, sizeof(*paced->works));
	paced->ops = calloc(depth_count, bytes);
	if (!paced->works || !paced->ops)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	for (uint32_t i = 0; i < depth_count; i++) {
		struct op *op = (struct op *)(paced->ops + i * bytes);

		op->endpoint = paced->endpoint;
		rbx_drive_push_ended(&paced->freed, &op->fragment);
	}
	return 0;
}

int rbx_paced_make(struct rbx_endpoint *endpoint, struct rbx_context *ctx,
		   uint32_t depth_count)
{
	struct rbx_paced *paced = calloc(1, sizeof(*paced));
	int err;

	if (!paced)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	paced->endpoint = endpoint;
	paced->depth_count = depth_count;
	err = memory_make(paced, depth_count);
	if (!err) {
		rbx_channel_init(&paced->channel, &ctx->planner, &ctx->window);
		paced->channel.keys_are_not_loans = true;
		rbx_channel_add_ring(&paced->channel, paced->works,
				     power_of_two_below(depth_count));
		err = rbx_context_add_paced(ctx, &paced->channel);
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
	rbx_channel_set_depth(&endpoint->paced->channel, 0,
			      RBX_MIN(depth_count,
				      endpoint->paced->depth_count));
}

/* What of it waits to be polled is not told of any more. */
static void done_forget_locked(struct rbx_queue *queue,
			       const struct rbx_endpoint *endpoint)
{
	struct rbx_fragment *list, *next;

	done_append(queue, rbx_drive_take_ended(&queue->ended));
	list = queue->done_first;
	queue->done_first = NULL;
	for (; list; list = next) {
		next = rbx_fragment_next(list);
		if (op_of(list)->endpoint != endpoint)
			rbx_fragment_append(&queue->done_first,
					    &queue->done_last, list, list);
	}
}

void rbx_paced_end(struct rbx_endpoint *endpoint)
{
	struct rbx_paced *paced = endpoint->paced;
	struct rbx_queue *queue = endpoint->queue;
	struct rbx_harvest harvest = { 0 };

	broken(&paced->channel);
	/* From here on nobody else posts; then nobody else has the queue pair in hand, such
	 * as who found first that it is broken. */
	while (!rbx_channel_seize(&paced->channel))
		sched_yield();
	rbx_context_remove_paced(queue->ctx, &paced->channel);
	/* Nor has who polls a completion that names it. Its credit is for others. */
	pthread_mutex_lock(&queue->lock);
	endpoint->qp->device->ops->destroy_qp(endpoint->qp);
	rbx_channel_abandon(&paced->channel, 0, &harvest);
	rbx_harvest_settle(&harvest, &queue->ctx->window, rbx_now_ns());
	done_forget_locked(queue, endpoint);
	unpark(queue->ctx);
	pthread_mutex_unlock(&queue->lock);
}

void rbx_paced_free(struct rbx_endpoint *endpoint)
{
	struct rbx_paced *paced = endpoint->paced;

	if (!paced)
		return;
	if (!endpoint->qp) /* else it was ended */
		rbx_context_remove_paced(endpoint->queue->ctx, &paced->channel);
	free(paced->works);
	free(paced->ops);
	free(paced);
}
