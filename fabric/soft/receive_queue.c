/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * receive_queue.c - takes receives and tells the peer about them.
 *
 * Each posted receive is credit for one message of the peer. Credit is sent with
 * acknowledgements. A peer that has none left, or is half a queue behind, is told at once. A
 * post that the peer need not know of yet sends nothing.
 */
#include "receive_queue.h"

#include <errno.h>

#include "device.h"
#include "output.h"
#include "queue_pair.h"

int soft_receive_pieces(struct soft_keys *keys, const struct soft_domain *domain,
			const struct rbx_recv_wr *wr, struct iovec *piece,
			uint64_t *length_bytes)
{
	uint32_t i;

	*length_bytes = 0;
	for (i = 0; i < wr->sge_count; i++) {
		const struct rbx_sge *sge = &wr->sges[i];

		if (!soft_keys_cover(keys, domain, sge, RBX_LOCAL_WRITE))
			return -EFAULT;
		if (!sge->length_bytes)
			continue;
		*piece++ = (struct iovec){ (void *)(uintptr_t)sge->addr,
					   sge->length_bytes };
		*length_bytes += sge->length_bytes;
	}
	return 0;
}

static int receive_queue_add(struct soft_qp *qp, const struct rbx_recv_wr *wr)
{
	uint32_t index = qp->recv_posted;
	uint32_t place = index & qp->recv_mask;
	/* Acquire, with the release in cq_pop(): see free_places(). */
	uint32_t freed = atomic_load_explicit(&qp->recv_freed,
					      memory_order_acquire);

	int err;

	if (qp->srq || wr->sge_count > qp->recv_max_sge)
		return -EINVAL;
	if (index - freed >= qp->recv_depth_count)
		return -ENOMEM;
	err = soft_receive_pieces(
		&qp->device->keys, qp->domain, wr,
		&qp->recv_pieces[(size_t)place * qp->recv_max_sge],
		&qp->receives[place].length_bytes);
	if (err)
		return err;
	qp->receives[place].wr_id = wr->wr_id;
	qp->recv_posted++;
	if (qp->state >= SOFT_QP_ERROR) {
		soft_qp_push_receive(qp, index,
				     (struct rbx_wc){ .status = -ECANCELED });
		qp->recv_done = qp->recv_posted;
	}
	return 0;
}

int soft_post_recv(struct rbx_qp *base, struct rbx_recv_wr *first,
		   struct rbx_recv_wr **bad)
{
	struct soft_qp *qp = soft_qp_of(base);
	struct rbx_recv_wr *wr;
	int err = 0;

	soft_qp_lock(qp);
	for (wr = first; wr; wr = wr->next) {
		err = receive_queue_add(qp, wr);
		if (err)
			break;
	}
	if (!qp->output_blocked &&
	    !(qp->holds_ack && soft_output_is_ack_alone(qp)))
		soft_output_flush(qp);
	soft_qp_unlock(qp);
	if (err && bad)
		*bad = wr;
	return err;
}
