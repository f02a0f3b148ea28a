/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lane.c - from the channel to the queue pairs and back.
 *
 * The core plans, this file translates: a chain of work requests becomes a list
 * of the kernel's, in the lane's own array, and is posted with one call. Only the
 * last is signaled. Runs in whichever context is the combiner; nothing sleeps.
 *
 * The slot of a work request in its ring is also that of its struct ib_cqe, so a
 * completion tells its number by where its cqe stands.
 */
#include <linux/slab.h>

#include "kernel/lib/peer.h"
#include "kernel/lib/trace.h"

static_assert(sizeof(struct rbx_sge) == sizeof(struct ib_sge) &&
		      offsetof(struct rbx_sge, addr) ==
			      offsetof(struct ib_sge, addr) &&
		      offsetof(struct rbx_sge, length_bytes) ==
			      offsetof(struct ib_sge, length) &&
		      offsetof(struct rbx_sge, lkey) ==
			      offsetof(struct ib_sge, lkey),
	      "scatter lists are handed on as they are");

/* ---- There ------------------------------------------------------------------*/

static void translate(struct rbx_lane *lane, struct rbx_work *work,
		      uint32_t number, struct ib_rdma_wr *wr)
{
	wr->wr = (struct ib_send_wr){
		.next = &(wr + 1)->wr,
		.wr_cqe = &lane->posted[number % RBX_SEND_DEPTH].cqe,
		.sg_list = (struct ib_sge *)work->sges,
		.num_sge = (int)work->sge_count,
		.opcode = work->direction == RBX_DIRECTION_READ ?
				  IB_WR_RDMA_READ :
				  IB_WR_RDMA_WRITE,
	};
	wr->remote_addr = work->remote_addr;
	wr->rkey = work->rkey;
}

/* Keeps what is to be sent again, and notes a break. */
static void keep(struct rbx_peer *peer, struct rbx_harvest *harvest)
{
	unsigned long flags;

	if (harvest->again_first != NULL) {
		spin_lock_irqsave(&peer->lock, flags);
		if (peer->again_first == NULL)
			peer->again_first = harvest->again_first;
		else
			peer->again_last->node.next =
				&harvest->again_first->node;
		peer->again_last = harvest->again_last;
		spin_unlock_irqrestore(&peer->lock, flags);
		harvest->again_first = NULL;
		harvest->again_last = NULL;
	}
	if (harvest->broken)
		rbx_peer_note_broken(peer, "a work request failed");
	harvest->broken = false;
}

/* Ends what a failed post left behind, without a completion. */
static void post_failed(struct rbx_peer *peer, const struct rbx_chain *chain,
			uint32_t count)
{
	struct rbx_harvest harvest = { .broken = true };

	rbx_channel_not_posted(&peer->channel, chain, count, &harvest);
	rbx_window_give(&peer->ctx->window, harvest.work_requests,
			harvest.bytes);
	keep(peer, &harvest);
	if (harvest.done_first)
		rbx_poller_end(&peer->ctx->poller, harvest.done_first);
}

static uint64_t chain_bytes(struct rbx_send_ring *ring,
			    const struct rbx_chain *chain)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < chain->work_count; i++)
		bytes += rbx_send_ring_slot(ring, chain->first_number + i)
				 ->length_bytes;
	return bytes;
}

static void post(struct rbx_peer *peer, const struct rbx_chain *chain)
{
	struct rbx_lane *lane = &peer->lanes[chain->ring_index];
	struct rbx_send_ring *ring = &peer->channel.rings[chain->ring_index];
	struct ib_rdma_wr *last = &lane->wrs[chain->work_count - 1];
	const struct ib_send_wr *bad = &lane->wrs[0].wr;
	uint32_t i, bad_index;

	for (i = 0; i < chain->work_count; i++) {
		uint32_t number = chain->first_number + i;

		translate(lane, rbx_send_ring_slot(ring, number), number,
			  &lane->wrs[i]);
	}
	last->wr.next = NULL;
	last->wr.send_flags = IB_SEND_SIGNALED;
	if (trace_rdmabox_post_enabled())
		trace_rdmabox_post(peer, chain->ring_index, chain->first_number,
				   chain->work_count, chain_bytes(ring, chain));
	if (likely(!ib_post_send(lane->conn.id->qp, &lane->wrs[0].wr, &bad)))
		return;
	bad_index = (uint32_t)(rdma_wr(bad) - lane->wrs);
	post_failed(peer, chain, chain->work_count - bad_index);
}

static void refuse(struct rbx_peer *peer, struct rbx_fragment *list)
{
	struct rbx_fragment *fragment;

	for (fragment = list; fragment; fragment = rbx_fragment_next(fragment))
		fragment->status = -EHOSTUNREACH;
	rbx_poller_end(&peer->ctx->poller, list);
}

/* It has ceased to be the combiner; whether it waits for the window, which may
 * have opened by now, shows while nobody has gone on. */
static void trace_wait(struct rbx_peer *peer)
{
	if (rbx_parked_waits(rbx_channel_parked(&peer->channel)))
		trace_rdmabox_window_wait(
			peer, rbx_window_in_flight_bytes(&peer->ctx->window));
}

void rbx_peer_combine(struct rbx_peer *peer)
{
	struct rbx_chain chain;
	uint32_t i;

	for (i = 0; i < RBX_COMBINE_MAX; i++) {
		if (!rbx_channel_combine(&peer->channel, ktime_get_ns(),
					 &chain)) {
			if (trace_rdmabox_window_wait_enabled())
				trace_wait(peer);
			return;
		}
		if (chain.work_count != 0)
			post(peer, &chain);
		if (chain.refused != NULL)
			refuse(peer, chain.refused);
	}
	if (rbx_channel_yield(&peer->channel))
		rbx_poller_unpark(&peer->ctx->poller);
}

void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last)
{
	if (rbx_channel_submit(&peer->channel, first, last))
		rbx_peer_combine(peer);
}

/* ---- And back ------------------------------------------------------------*/

static void work_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rbx_posted *posted =
		container_of(wc->wr_cqe, struct rbx_posted, cqe);
	struct rbx_lane *lane = posted->lane;
	struct rbx_peer *peer = lane->peer;
	struct rbx_poller *poller = &peer->ctx->poller;
	uint32_t completed_count =
		peer->channel.rings[lane->ring_index].completed_count;
	uint32_t slot = (uint32_t)(posted - lane->posted);
	uint32_t number = completed_count +
			  (slot - completed_count) % RBX_SEND_DEPTH;
	int32_t status = rbx_ib_status(wc->status);

	trace_rdmabox_complete(peer, lane->ring_index, number, status);
	/* Before the ring may look idle to a fence: what has failed is to be
	 * sent again before the fence may pass. */
	if (status != 0)
		rbx_peer_note_broken(peer, "a work request failed");
	rbx_channel_complete(&peer->channel, lane->ring_index, number, status,
			     poller->round_ns, &poller->harvest);
	if (poller->harvest.broken)
		keep(peer, &poller->harvest);
}

/* ---- Queue pairs --------------------------------------------------------------*/

static void lane_ended(struct rbx_ib_conn *conn)
{
	struct rbx_lane *lane = container_of(conn, struct rbx_lane, conn);

	rbx_peer_note_broken(lane->peer, "the connection has ended");
}

static int connect_lane(struct rbx_peer *peer, struct rbx_lane *lane)
{
	struct rbx_context *ctx = peer->ctx;
	struct ib_qp_init_attr init = {
		.send_cq = ctx->poller.cq,
		.recv_cq = ctx->poller.cq,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			/* One more on either side, for ib_drain_qp(). */
			.max_send_wr = RBX_SEND_DEPTH + 1,
			.max_recv_wr = 1,
			.max_send_sge = peer->client->planner.sge_max,
			.max_recv_sge = 1,
		},
	};
	int err = rbx_session_connect_qp(peer->session, &lane->conn, &init,
					 lane_ended);

	if (err)
		rbx_ib_conn_destroy(&lane->conn);
	return err;
}

int rbx_peer_connect_lanes(struct rbx_peer *peer)
{
	uint32_t i, j;

	for (i = 0; i < peer->lane_count; i++) {
		struct rbx_lane *lane = &peer->lanes[i];
		int err;

		lane->peer = peer;
		lane->ring_index = i;
		for (j = 0; j < RBX_SEND_DEPTH; j++)
			lane->posted[j] = (struct rbx_posted){
				.cqe.done = work_done,
				.lane = lane,
			};
		err = connect_lane(peer, lane);
		if (err) {
			rbx_peer_destroy_lanes(peer);
			return err;
		}
	}
	return 0;
}

/*
 * What has completed without a signal is told of by nothing, once the queue pair
 * is in error: what is flushed is only what had not completed. The drain stands
 * for it, being the last. Then it is all done, and the poller, which could have
 * something in hand, is waited for.
 */
static void complete_rest(struct rbx_peer *peer, struct rbx_lane *lane)
{
	struct rbx_context *ctx = peer->ctx;
	struct rbx_harvest harvest = { 0 };
	uint64_t now_ns = ktime_get_ns();

	mutex_lock(&ctx->poller.lock);
	rbx_channel_complete_rest(&peer->channel, lane->ring_index, now_ns,
				  &harvest);
	mutex_unlock(&ctx->poller.lock);
	if (!harvest.done_first)
		return;
	rbx_harvest_settle(&harvest, &ctx->window, now_ns);
	rbx_poller_end(&ctx->poller, harvest.done_first);
}

void rbx_peer_destroy_lanes(struct rbx_peer *peer)
{
	uint32_t i;

	/* All of them first, so that they come to their end together. */
	for (i = 0; i < peer->lane_count; i++)
		if (peer->lanes[i].conn.id && peer->lanes[i].conn.id->qp)
			rbx_ib_conn_disconnect(&peer->lanes[i].conn);
	for (i = 0; i < peer->lane_count; i++) {
		rbx_ib_conn_destroy(&peer->lanes[i].conn);
		complete_rest(peer, &peer->lanes[i]);
	}
}
