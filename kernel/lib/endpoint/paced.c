/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.c - operations of a paced endpoint: posted, completed, and its end; see paced.h.
 *
 * A thread that posts may become the combiner, in any context, and so may the poller when
 * it completes something. The poller reports all operations that have ended, as for
 * peers. Closing takes the role of the combiner before the queue pair is drained, so that
 * nobody posts.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "core/paced.h"
#include "kernel/lib/endpoint/paced.h"
#include "kernel/lib/post_chain.h"

/* The channel's part of a slot of the ring. */
struct paced_op {
	struct rbx_fragment fragment;
	struct rbx_endpoint_slot *slot;
};

struct rbx_paced_endpoint {
	struct rbx_paced paced;
	struct rbx_endpoint *endpoint;
	struct rbx_work *works;
	struct paced_op *ops;
	uint32_t depth_count; /* of works */
	struct ib_cqe marker;
	struct rbx_posts posts;
};

static struct rbx_paced_endpoint *of_paced(struct rbx_paced *paced)
{
	return container_of(paced, struct rbx_paced_endpoint, paced);
}

static struct rbx_paced_endpoint *of_channel(struct rbx_channel *channel)
{
	return of_paced(container_of(channel, struct rbx_paced, channel));
}

static struct paced_op *op_of(struct rbx_fragment *fragment)
{
	return container_of(fragment, struct paced_op, fragment);
}

/* ---- The host of the channel --------------------------------------------------------*/

static struct ib_qp *qp_of(const struct rbx_paced_endpoint *paced)
{
	return paced->endpoint->conn.id->qp;
}

static struct ib_send_wr *ordered(struct rbx_work *work)
{
	return &op_of(work->first)->slot->wr.send;
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	struct rbx_paced_endpoint *paced = of_channel(channel);

	return rbx_post_chain(channel, chain, qp_of(paced), &paced->posts,
			      ordered);
}

static void wake(struct rbx_channel *channel)
{
	rbx_poller_unpark(of_channel(channel)->endpoint->poller);
}

static const struct rbx_drive drive = {
	.now_ns = rbx_now_ns,
	.post = post,
	.broken = rbx_paced_broken,
	.keep = rbx_paced_keep,
	.end = rbx_paced_refuse,
	.wake = wake,
};

static void disconnect(struct rbx_paced *paced)
{
	rbx_endpoint_disconnect(of_paced(paced)->endpoint);
}

static int post_marker(struct rbx_paced *base)
{
	struct rbx_paced_endpoint *paced = of_paced(base);
	const struct ib_rdma_wr marker = {
		.wr = {
			.wr_cqe = &paced->marker,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	return ib_post_send(qp_of(paced), &marker.wr, NULL);
}

static const struct rbx_paced_host host = {
	.disconnect = disconnect,
	.post_marker = post_marker,
};

void rbx_paced_combine(struct rbx_channel *channel)
{
	rbx_preemption_stop();
	rbx_drive_combine(&drive, channel);
	rbx_preemption_go_on();
}

/* ---- Posting ------------------------------------------------------------------------*/

bool rbx_paced_has_room_locked(struct rbx_endpoint *endpoint, uint32_t count)
{
	lockdep_assert_held(&endpoint->post_lock);
	return rbx_paced_has_room(&endpoint->paced->paced, count);
}

/* It may be merged if it has one segment and nothing else goes with it. */
static enum rbx_direction direction_of(const struct rbx_operation *operation,
				       const struct ib_send_wr *wr)
{
	if (wr->num_sge != 1 || operation->flags & RBX_OPERATION_IMMEDIATE)
		return RBX_DIRECTION_ORDERED;
	if (operation->kind == RBX_OPERATION_READ)
		return RBX_DIRECTION_READ;
	return operation->kind == RBX_OPERATION_WRITE ? RBX_DIRECTION_WRITE :
							RBX_DIRECTION_ORDERED;
}

static void op_fill(struct paced_op *op, const struct rbx_operation *operation)
{
	struct rbx_fragment *fragment = &op->fragment;
	const struct ib_send_wr *wr = &op->slot->wr.send;
	int i;

	rbx_operation_translate(operation, op->slot);
	rbx_paced_fill(fragment, direction_of(operation, wr),
		       operation->flags & RBX_OPERATION_FENCE,
		       operation->flags & RBX_OPERATION_URGENT);
	fragment->rkey = operation->key;
	fragment->remote_addr = operation->address;
	for (i = 0; i < wr->num_sge; i++)
		fragment->length_bytes += wr->sg_list[i].length;
	if (wr->num_sge) {
		fragment->local_addr = wr->sg_list[0].addr;
		fragment->lkey = wr->sg_list[0].lkey;
	}
}

struct rbx_channel *
rbx_paced_submit_locked(struct rbx_endpoint *endpoint,
			const struct rbx_operation *operations, uint32_t count)
{
	struct rbx_paced *paced = &endpoint->paced->paced;
	struct rbx_fragment *first = NULL, *last = NULL;
	uint32_t i;

	lockdep_assert_held(&endpoint->post_lock);
	for (i = 0; i < count; i++) {
		struct rbx_fragment *fragment = rbx_paced_take(paced);

		op_fill(op_of(fragment), &operations[i]);
		rbx_fragment_append(&first, &last, fragment, fragment);
	}
	return rbx_channel_submit(&paced->channel, first, last) ?
		       &paced->channel :
		       NULL;
}

/* ---- Completing ---------------------------------------------------------------------*/

/* A work request has completed. */
static void work_done(struct ib_cq *cq, struct ib_wc *wc)
{
	const struct rbx_posted *posted = rbx_posted_of(wc);
	struct rbx_paced_endpoint *paced =
		container_of(posted->posts, struct rbx_paced_endpoint, posts);
	struct rbx_channel *channel = &paced->paced.channel;
	struct rbx_poller *poller = paced->endpoint->poller;

	if (!paced->endpoint->is_over)
		rbx_drive_completed(&drive, channel, 0,
				    rbx_posted_number(posted,
						      &channel->rings[0]),
				    rbx_ib_status(wc->status),
				    poller->round.found_ns, &poller->round.harvest);
}

static void marker_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rbx_paced_endpoint *paced =
		container_of(wc->wr_cqe, struct rbx_paced_endpoint, marker);
	struct rbx_poller *poller = paced->endpoint->poller;

	if (!paced->endpoint->is_over)
		rbx_paced_marked(&paced->paced, poller->round.found_ns,
				 &poller->round.harvest);
}

void rbx_paced_slot_give(struct rbx_endpoint_slot *slot)
{
	struct rbx_paced_endpoint *paced = slot->endpoint->paced;

	rbx_paced_give(&paced->paced, &paced->ops[slot->number].fragment);
}

static struct rbx_fragment *operations_done(struct rbx_fragment *list)
{
	while (list && list->done == operations_done) {
		struct rbx_fragment *next = rbx_fragment_next(list);

		rbx_endpoint_operation_end(op_of(list)->slot, list->status);
		list = next;
	}
	return list;
}

/* ---- Making and ending --------------------------------------------------------------*/

static void places_make(struct rbx_paced_endpoint *paced)
{
	struct rbx_endpoint_ring *ring = &paced->endpoint->sends;
	uint32_t i;

	for (i = 0; i < ring->depth_count; i++) {
		struct paced_op *op = &paced->ops[i];

		op->slot = &ring->slots[i];
		op->slot->number = i;
		op->fragment.done = operations_done;
		rbx_paced_add(&paced->paced, &op->fragment);
	}
}

/* A power of two. The device has room for it, the marker and a drain. */
static uint32_t depth_of(const struct rbx_endpoint *endpoint)
{
	uint32_t depth = min_t(uint32_t, endpoint->sends.mask + 1,
			       RBX_SEND_DEPTH);
	uint32_t most = (uint32_t)endpoint->domain->device->attrs.max_qp_wr -
			RBX_PACED_MARKERS - 1;

	return min(depth, (uint32_t)rounddown_pow_of_two(most));
}

int rbx_paced_make(struct rbx_endpoint *endpoint)
{
	struct rbx_client *client = &endpoint->domain->client;
	struct rbx_paced_endpoint *paced = kvzalloc(sizeof(*paced), GFP_KERNEL);
	int err = -ENOMEM;

	if (!paced)
		return err;
	paced->endpoint = endpoint;
	paced->depth_count = depth_of(endpoint);
	paced->marker.done = marker_done;
	paced->works = kvcalloc(paced->depth_count, sizeof(*paced->works),
				GFP_KERNEL);
	paced->ops = kvcalloc(endpoint->sends.depth_count, sizeof(*paced->ops),
			      GFP_KERNEL);
	if (paced->works && paced->ops) {
		rbx_paced_init(&paced->paced, &host, &client->planner,
			       &client->ctx->window, paced->works,
			       paced->depth_count);
		rbx_posts_init(&paced->posts, work_done);
		places_make(paced);
		err = rbx_context_add_paced(client->ctx, &paced->paced.channel);
	}
	if (err)
		rbx_paced_free(paced);
	else
		endpoint->paced = paced;
	return err;
}

uint32_t rbx_paced_depth(const struct rbx_endpoint *endpoint)
{
	return endpoint->paced->depth_count;
}

void rbx_paced_disconnect(struct rbx_endpoint *endpoint)
{
	struct rbx_channel *channel = &endpoint->paced->paced.channel;

	rbx_paced_broken(channel);
	if (rbx_channel_unpark(channel))
		rbx_paced_combine(channel);
}

void rbx_paced_stop(struct rbx_endpoint *endpoint)
{
	struct rbx_channel *channel = &endpoint->paced->paced.channel;

	rbx_paced_broken(channel);
	while (!rbx_channel_seize(channel))
		cond_resched();
	rbx_context_remove_channel(endpoint->domain->client.ctx, channel);
}

void rbx_paced_finish(struct rbx_endpoint *endpoint, bool all_is_back)
{
	struct rbx_paced *paced = &endpoint->paced->paced;
	struct rbx_poller *poller = endpoint->poller;
	struct rbx_harvest harvest = { 0 };

	if (!poller) /* it never had a queue pair */
		return;
	rbx_poller_lock(poller);
	rbx_paced_clear(paced, all_is_back, ktime_get_ns(), &harvest);
	if (harvest.work_requests)
		rbx_harvest_settle(&harvest, paced->channel.window,
				   ktime_get_ns());
	rbx_drive_done(harvest.done_first);
	rbx_poller_unlock(poller);
	/* The credit that came back goes to others. */
	rbx_poller_unpark(poller);
}

void rbx_paced_free(struct rbx_paced_endpoint *paced)
{
	if (!paced)
		return;
	kvfree(paced->works);
	kvfree(paced->ops);
	kvfree(paced);
}
