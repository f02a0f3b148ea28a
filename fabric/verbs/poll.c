/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll.c - takes completions from the device.
 *
 * Normally: a batch from libibverbs. Each entry is matched with its queue pair by number and
 * converted to our form. An empty poll takes no lock of ours.
 *
 * The first completion with an error shows that the device has put a queue pair into error;
 * the peer may not know. So the connection is ended there, which tells the peer and flushes
 * the rest.
 *
 * A completion whose queue pair is not in the table belongs to one that was destroyed, and is
 * dropped. Matching is under the lookup lock of the queue, so a thread that destroys a queue
 * pair can wait for a poll that has just found it.
 */
#include <endian.h>

#include "fabric/verbs/status.h"
#include "fabric/verbs/verbs.h"

#define POLL_BATCH_COUNT 32

static void completion_translate(struct rbx_verbs_qp *qp,
				 const struct ibv_wc *in, struct rbx_wc *out)
{
	const bool is_recv = in->wr_id & RBX_VERBS_WR_RECV;
	struct rbx_verbs_wr_ring *ring = is_recv ? &qp->recvs : &qp->sends;

	out->qp = &qp->qp;
	out->wr_id = in->wr_id & RBX_VERBS_WR_SHARED ?
			     rbx_verbs_srq_complete(qp->srq, in->wr_id) :
			     rbx_verbs_wr_ring_complete(
				     ring, in->wr_id & ~RBX_VERBS_WR_RECV);
	out->status = is_recv ? rbx_verbs_recv_status(in->status) :
				rbx_verbs_send_status(in->status);
	if (out->status)
		return;
	out->opcode = rbx_verbs_wc_opcode(in->opcode);
	out->length_bytes = in->byte_len;
	out->flags = 0;
	if (in->wc_flags & IBV_WC_WITH_IMM) {
		out->flags = RBX_WC_IMMEDIATE;
		out->immediate = be32toh(in->imm_data);
	} else if (in->wc_flags & IBV_WC_WITH_INV) {
		out->flags = RBX_WC_INVALIDATED;
		out->invalidated_rkey = in->invalidated_rkey;
	}
}

/* Whether it was reported already, when the device failed (events.c). */
static bool was_flushed(struct rbx_verbs_qp *qp, const struct ibv_wc *in)
{
	struct rbx_verbs_wr_ring *ring =
		in->wr_id & RBX_VERBS_WR_RECV ? &qp->recvs : &qp->sends;

	return atomic_load_explicit(&qp->conn->device->has_failed,
				    memory_order_relaxed) &&
	       !(in->wr_id & RBX_VERBS_WR_SHARED) &&
	       (in->wr_id & ~RBX_VERBS_WR_RECV) < ring->completed;
}

/* Returns how many entries of wcs were filled. */
static int completions_match(struct rbx_verbs_cq *cq, const struct ibv_wc *in,
			     int count, struct rbx_wc *wcs)
{
	struct rbx_verbs_device *device = rbx_verbs_device(cq->cq.device);
	struct rbx_verbs_qp *qp;
	int filled = 0;
	int i;

	pthread_mutex_lock(&cq->lookup_lock);
	for (i = 0; i < count; i++) {
		qp = rbx_verbs_qp_table_find(&device->qps, in[i].qp_num);
		if (!qp && in[i].wr_id & RBX_VERBS_WR_SHARED)
			rbx_verbs_srq_return(device, in[i].wr_id);
		if (!qp || was_flushed(qp, &in[i]))
			continue;
		completion_translate(qp, &in[i], &wcs[filled]);
		if (wcs[filled].status)
			rbx_verbs_conn_end(qp->conn);
		filled++;
	}
	pthread_mutex_unlock(&cq->lookup_lock);
	return filled;
}

int rbx_verbs_poll(struct rbx_cq *rbx_cq, struct rbx_wc *wcs, int max)
{
	struct rbx_verbs_cq *cq = rbx_verbs_cq(rbx_cq);
	struct ibv_wc batch[POLL_BATCH_COUNT];
	int filled = 0;
	int asked;
	int got;

	do {
		asked = max - filled < POLL_BATCH_COUNT ? max - filled :
							  POLL_BATCH_COUNT;
		got = ibv_poll_cq(cq->ibv, asked, batch);
		if (got > 0)
			filled += completions_match(cq, batch, got,
						    wcs + filled);
	} while (got == asked && filled < max);
	if (filled < max &&
	    atomic_load_explicit(&rbx_verbs_device(rbx_cq->device)->has_failed,
				 memory_order_relaxed))
		filled += rbx_verbs_failed_flush(cq, wcs + filled, max - filled);
	return filled;
}
