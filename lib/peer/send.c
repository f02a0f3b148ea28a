/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send.c - from the channel to the queue pairs.
 *
 * The core plans, this file translates. Runs in whichever thread is the combiner; no lock
 * is held.
 */
#include "lib/peer/internal.h"
#include "lib/post_chain.h"

static struct rbx_peer_qp *pair_of(struct rbx_channel *channel,
				   uint32_t ring_index)
{
	struct rbx_peer *peer = rbx_peer_of_channel(channel);

	return &rbx_user_peer(peer)->qps[ring_index];
}

static void translate(const struct rbx_qp *qp, const struct rbx_work *work,
		      struct rbx_wr *wr)
{
	wr->sges = work->sges;
	wr->sge_count = work->sge_count;
	wr->opcode = work->direction == RBX_DIRECTION_READ ? RBX_OP_READ :
							     RBX_OP_WRITE;
	wr->flags = wr->opcode == RBX_OP_WRITE &&
				    work->length_bytes <= qp->max_inline_bytes ?
			    RBX_WR_INLINE :
			    0;
	wr->rkey = work->rkey;
	wr->remote_addr = work->remote_addr;
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	struct rbx_peer_qp *pair = pair_of(channel, chain->ring_index);
	uint32_t missed_count =
		rbx_post_chain(channel, chain, pair->qp, translate);

	/* The signal was to come with the last of the chain. */
	if (missed_count)
		pair->tail_is_silent = missed_count < chain->work_count;
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

void rbx_peer_combine(struct rbx_peer *peer)
{
	rbx_drive_combine(&rbx_peer_drive, &peer->channel);
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
