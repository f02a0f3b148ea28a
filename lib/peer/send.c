/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send.c - from the channel to the queue pairs.
 *
 * The core plans, this file translates: a chain of work requests becomes a list
 * of the fabric's, on the stack, and is posted with one call. Only the last is
 * signaled. Runs in whichever thread is the combiner; no lock is held.
 */
#include "lib/peer/internal.h"

static void translate(const struct rbx_lane *lane, const struct rbx_work *work,
		      uint32_t number, struct rbx_wr *wr)
{
	wr->next = wr + 1;
	wr->wr_id = number;
	wr->sges = work->sges;
	wr->sge_count = work->sge_count;
	wr->opcode = work->direction == RBX_DIRECTION_READ ? RBX_OP_READ :
							     RBX_OP_WRITE;
	wr->flags = wr->opcode == RBX_OP_WRITE &&
				    work->length_bytes <=
					    lane->qp->max_inline_bytes ?
			    RBX_WR_INLINE :
			    0;
	wr->rkey = work->rkey;
	wr->remote_addr = work->remote_addr;
}

/*
 * Ends what a failed post left behind, without a completion. Combiners that wait
 * for the credit look again when the broken queue pair's receive is flushed.
 */
static void post_failed(struct rbx_peer *peer, const struct rbx_chain *chain,
			uint32_t count)
{
	struct rbx_lane *lane = &peer->lanes[chain->ring_index];
	struct rbx_harvest harvest = { .broken = true };

	/* The signal was to come with the last of the chain. */
	lane->tail_is_silent = count < chain->work_count;

	rbx_channel_not_posted(&peer->channel, chain, count, &harvest);
	rbx_window_give(&peer->ctx->window, harvest.work_requests,
			harvest.bytes);
	rbx_peer_keep(peer, &harvest);
	if (harvest.done_first)
		rbx_poller_end(lane->poller, harvest.done_first);
}

static void post(struct rbx_peer *peer, const struct rbx_chain *chain)
{
	struct rbx_lane *lane = &peer->lanes[chain->ring_index];
	struct rbx_send_ring *ring = &peer->channel.rings[chain->ring_index];
	struct rbx_wr wrs[RBX_CHAIN_MAX];
	struct rbx_wr *bad = wrs;

	for (uint32_t i = 0; i < chain->work_count; i++) {
		uint32_t number = chain->first_number + i;

		translate(lane, rbx_send_ring_slot(ring, number), number,
			  &wrs[i]);
	}
	wrs[chain->work_count - 1].next = NULL;
	wrs[chain->work_count - 1].flags |= RBX_WR_SIGNALED;
	if (lane->qp->device->ops->post_send(lane->qp, wrs, &bad))
		post_failed(peer, chain,
			    chain->work_count - (uint32_t)(bad - wrs));
}

static void refuse(struct rbx_peer *peer, struct rbx_fragment *list)
{
	for (struct rbx_node *node = &list->node; node; node = node->next)
		rbx_fragment_of(node)->status = -EHOSTUNREACH;
	rbx_poller_end(peer->lanes[0].poller, list);
}

void rbx_peer_combine(struct rbx_peer *peer)
{
	struct rbx_chain chain;

	for (uint32_t i = 0; i < RBX_COMBINE_MAX; i++) {
		if (!rbx_channel_combine(&peer->channel, rbx_now_ns(), &chain))
			return;
		if (chain.work_count != 0)
			post(peer, &chain);
		if (chain.refused != NULL)
			refuse(peer, chain.refused);
	}
	if (rbx_channel_yield(&peer->channel))
		rbx_poller_unpark(peer->lanes[0].poller);
}

void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last)
{
	if (rbx_channel_submit(&peer->channel, first, last))
		rbx_peer_combine(peer);
}

void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last)
{
	if (!rbx_plug_hold(peer, first, last))
		rbx_peer_send(peer, first, last);
}

void rbx_peer_keep(struct rbx_peer *peer, struct rbx_harvest *harvest)
{
	if (harvest->again_first != NULL) {
		pthread_mutex_lock(&peer->lock);
		if (peer->again_first == NULL)
			peer->again_first = harvest->again_first;
		else
			peer->again_last->node.next =
				&harvest->again_first->node;
		peer->again_last = harvest->again_last;
		pthread_mutex_unlock(&peer->lock);
		harvest->again_first = NULL;
		harvest->again_last = NULL;
	}
	if (harvest->broken)
		rbx_peer_note_broken(peer, "a work request failed");
}
