/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send.c - from the channel to the queue pairs and back.
 *
 * The core plans, this file translates: a chain of work requests becomes a list
 * of the kernel's, in the lane's own array, and is posted with one call. Only the
 * last is signaled. Runs in whichever context is the combiner; nothing sleeps, and it is
 * not preempted: all that others submit meanwhile waits for it.
 *
 * The slot of a work request in its ring is also that of its struct ib_cqe, so a
 * completion tells its number by where its cqe stands.
 */
#include <linux/preempt.h>

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

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	struct rbx_peer *peer = rbx_peer_of_channel(channel);
	struct rbx_lane *lane =
		&rbx_kernel_peer(peer)->lanes[chain->ring_index];
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];
	struct ib_rdma_wr *last = &lane->wrs[chain->work_count - 1];
	const struct ib_send_wr *bad = &lane->wrs[0].wr;
	uint32_t i;

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
		return 0;
	return chain->work_count - (uint32_t)(rdma_wr(bad) - lane->wrs);
}

const struct rbx_drive rbx_peer_drive = {
	.now_ns = rbx_now_ns,
	.post = post,
	.broken = rbx_peer_note_failed,
	.keep = rbx_peer_keep,
	.end = rbx_peer_end_later,
	.wake = rbx_peer_unpark,
};

/* It has ceased to be the combiner; whether it waits for the window, which may
 * have opened by now, shows while nobody has gone on. */
static void trace_wait(struct rbx_peer *peer)
{
	if (rbx_parked_waits(rbx_channel_parked(&peer->channel)))
		trace_rdmabox_window_wait(
			peer, rbx_window_in_flight_bytes(&peer->ctx->window));
}

/* It is bounded (RBX_COMBINE_MAX). Where preemption is without limits the locks of a
 * device sleep, so it cannot be kept off. */
static void preemption_stop(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static void preemption_go_on(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

void rbx_peer_combine(struct rbx_peer *peer)
{
	preemption_stop();
	rbx_drive_combine(&rbx_peer_drive, &peer->channel);
	preemption_go_on();
	if (trace_rdmabox_window_wait_enabled())
		trace_wait(peer);
}

void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last)
{
	preemption_stop();
	if (rbx_channel_submit(&peer->channel, first, last))
		rbx_peer_combine(peer);
	preemption_go_on();
}

/* ---- And back ------------------------------------------------------------*/

void rbx_peer_work_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rbx_posted *posted =
		container_of(wc->wr_cqe, struct rbx_posted, cqe);
	struct rbx_lane *lane = posted->lane;
	struct rbx_peer *peer = lane->peer;
	struct rbx_poller *poller = lane->poller;
	uint32_t completed_count =
		peer->channel.rings[lane->ring_index].completed_count;
	uint32_t slot = (uint32_t)(posted - lane->posted);
	uint32_t number = completed_count +
			  (slot - completed_count) % RBX_SEND_DEPTH;
	int32_t status = rbx_ib_status(wc->status);

	if (lane->is_over)
		return; /* it counts as flushed, or will */
	trace_rdmabox_complete(peer, lane->ring_index, number, status);
	rbx_drive_completed(&rbx_peer_drive, &peer->channel, lane->ring_index,
			    number, status, poller->round_ns,
			    &poller->harvest);
}
