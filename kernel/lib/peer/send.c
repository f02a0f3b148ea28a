/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send.c - posts the chains of a peer's channel to its queue pairs, and handles
 * completions.
 *
 * The core plans, and post_chain.h translates. Posting runs in the context of the
 * combiner; nothing sleeps, and it is not preempted.
 */
#include "kernel/lib/peer/peer.h"
#include "kernel/lib/trace.h"

/* ---- Posting --------------------------------------------------------------------*/

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
	struct rbx_peer_qp *pair =
		&rbx_kernel_peer(peer)->qps[chain->ring_index];
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];

	const struct rbx_chain mapped = {
		.ring_index = chain->ring_index,
		.first_number = chain->first_number,
		.work_count = rbx_late_map(pair, chain),
	};
	uint32_t missed_count = chain->work_count - mapped.work_count;
	uint32_t end = chain->first_number + chain->work_count;

	if (trace_rdmabox_post_enabled())
		trace_rdmabox_post(peer, chain->ring_index, chain->first_number,
				   chain->work_count, chain_bytes(ring, chain));
	if (likely(mapped.work_count))
		missed_count += rbx_post_chain(channel, &mapped, pair->conn.id->qp,
					       &pair->posts, NULL);
	if (unlikely(missed_count))
		rbx_late_not_posted(pair, end - missed_count, end);
	return missed_count;
}

const struct rbx_drive rbx_peer_drive = {
	.now_ns = rbx_now_ns,
	.post = post,
	.broken = rbx_peer_note_failed,
	.keep = rbx_peer_keep,
	.end = rbx_peer_end_later,
	.wake = rbx_peer_unpark,
};

/* This thread has ceased to be the combiner. If it waits for the window, this can only be
 * seen while nobody else has gone on; the window may have opened by now. */
static void trace_wait(struct rbx_peer *peer)
{
	if (rbx_parked_waits(rbx_channel_parked(&peer->channel)))
		trace_rdmabox_window_wait(
			peer, rbx_window_in_flight_bytes(&peer->ctx->window));
}

void rbx_peer_combine(struct rbx_peer *peer)
{
	rbx_preemption_stop();
	rbx_drive_combine(&rbx_peer_drive, &peer->channel);
	rbx_preemption_go_on();
	if (trace_rdmabox_window_wait_enabled())
		trace_wait(peer);
}

void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last)
{
	rbx_preemption_stop();
	if (rbx_channel_submit(&peer->channel, first, last))
		rbx_peer_combine(peer);
	rbx_preemption_go_on();
}

/* ---- Completing -----------------------------------------------------------------*/

void rbx_peer_work_done(struct ib_cq *cq, struct ib_wc *wc)
{
	const struct rbx_posted *posted = rbx_posted_of(wc);
	struct rbx_peer_qp *pair =
		container_of(posted->posts, struct rbx_peer_qp, posts);
	struct rbx_peer *peer = pair->peer;
	struct rbx_poller *poller = pair->poller;
	uint32_t number = rbx_posted_number(
		posted, &peer->channel.rings[pair->ring_index]);
	int32_t status = rbx_ib_status(wc->status);

	if (pair->is_over)
		return; /* it counts as flushed, or will do */
	trace_rdmabox_complete(peer, pair->ring_index, number, status);
	if (unlikely(READ_ONCE(pair->late.posted_count) != pair->late.ended_count))
		rbx_late_unmap_until(pair, number + 1);
	rbx_drive_completed(&rbx_peer_drive, &peer->channel, pair->ring_index,
			    number, status, poller->round.found_ns,
			    &poller->round.harvest);
}
