/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post.c - the host's half of a post: it writes work requests to its own memory
 * and rings the doorbell.
 *
 * A work request that is posted alone and is short enough is sent together with its doorbell,
 * in whole lines of 64 bytes that the core combines. A chain has a doorbell of 8 bytes, and
 * the NIC reads it by DMA. The calling core spends the time of the post, and the doorbell
 * leaves at its end.
 */
#include "sim/nic/qp.h"

#include "sim/sites.h"
#include "sim/trace.h"

#define LINE_BYTES 64u
#define DOORBELL_BYTES 8u

static uint32_t lines(uint32_t bytes)
{
	return (bytes + LINE_BYTES - 1) / LINE_BYTES;
}

static int check(const struct rbx_nic_qp *qp, const struct rbx_wr *wr)
{
	uint64_t bytes = 0;

	if (wr->opcode > RBX_OP_FETCH_ADD || wr->sge_count > qp->max_sge)
		return -EINVAL;
	if (wr->opcode > RBX_OP_SEND ||
	    wr->flags & (RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE))
		return -EOPNOTSUPP; /* not modelled, as caps say */
	for (uint32_t i = 0; i < wr->sge_count; i++)
		bytes += wr->sges[i].length_bytes;
	if (bytes > qp->device->params->message_bytes_max)
		return -EINVAL;
	if (wr->flags & RBX_WR_INLINE &&
	    (wr->opcode == RBX_OP_READ || bytes > qp->base.max_inline_bytes))
		return -EINVAL;
	if (qp->posted - qp->tail == qp->base.send_depth_count ||
	    rbx_sim_site(RBX_SIM_SITE_post_full))
		return -ENOMEM;
	return 0;
}

static void copy_inline(struct rbx_nic_op *op)
{
	uint8_t *to = op->inline_data;

	for (uint32_t i = 0; i < op->sge_count; i++) {
		memcpy(to, (const void *)(uintptr_t)op->sges[i].addr,
		       op->sges[i].length_bytes);
		to += op->sges[i].length_bytes;
	}
}

static struct rbx_nic_op *take_slot(struct rbx_nic_qp *qp,
				    const struct rbx_wr *wr)
{
	const struct rbx_nic_params *params = qp->device->params;
	struct rbx_nic_op *op = rbx_nic_qp_op(qp, qp->posted);

	op->number = qp->posted++;
	op->state = RBX_NIC_OP_POSTED;
	op->opcode = wr->opcode;
	op->flags = wr->flags;
	op->rkey = wr->rkey;
	op->remote_addr = wr->remote_addr;
	op->wr_id = wr->wr_id;
	op->sge_count = wr->sge_count;
	op->status = 0;
	op->rnr_count = 0;
	op->is_doomed = false;
	op->recv = NULL;
	op->length_bytes = 0;
	for (uint32_t i = 0; i < wr->sge_count; i++) {
		op->sges[i] = wr->sges[i];
		op->length_bytes += wr->sges[i].length_bytes;
	}
	op->wqe_bytes = params->wqe_header_bytes;
	if (op->flags & RBX_WR_INLINE) {
		copy_inline(op);
		op->wqe_bytes += op->length_bytes;
	} else {
		op->wqe_bytes += op->sge_count * params->wqe_sge_bytes;
	}
	return op;
}

/* Junk in the destination of a read, for programs that look too early. */
static void scribble(const struct rbx_nic_op *op)
{
	if (op->opcode != RBX_OP_READ || !rbx_sim_site(RBX_SIM_SITE_scribble))
		return;
	for (uint32_t i = 0; i < op->sge_count; i++) {
		if (rbx_nic_regions_find(&op->qp->device->regions,
					 op->qp->domain, op->sges[i].lkey,
					 op->sges[i].addr,
					 op->sges[i].length_bytes,
					 RBX_LOCAL_WRITE))
			memset((void *)(uintptr_t)op->sges[i].addr, 0xdb,
			       op->sges[i].length_bytes);
	}
}

static void ring(struct rbx_nic_qp *qp, struct rbx_nic_op *first,
		 uint32_t count)
{
	const struct rbx_nic_params *params = qp->device->params;
	uint64_t host_ns = (uint64_t)count * params->post_wqe_ns;
	uint32_t bytes = DOORBELL_BYTES;

	first->chain_count = count;
	if (rbx_nic_rings_whole(first)) {
		bytes = lines(first->wqe_bytes) * LINE_BYTES;
		host_ns += (uint64_t)lines(first->wqe_bytes) *
			   params->write_combine_line_ns;
	} else {
		host_ns += params->doorbell_ns;
	}
	RBX_SIM_TRACE(qp->device->node, "doorbell", "qp", qp->number, "count",
		      count);
	qp->device->doorbells++;
	qp->device->work_requests += count;
	rbx_nic_fetch(first,
		      rbx_nic_pcie_ring(&qp->device->pcie,
					rbx_nic_ps(rbx_nic_host()->now() + host_ns),
					bytes));
	rbx_nic_host()->spend(host_ns);
}

int rbx_nic_post_send(struct rbx_qp *base, struct rbx_wr *wr,
		      struct rbx_wr **bad)
{
	struct rbx_nic_qp *qp = rbx_nic_qp_of(base);
	struct rbx_nic_op *first = NULL;
	uint32_t count = 0;
	int err = 0;

	for (; wr; wr = wr->next) {
		struct rbx_nic_op *op;

		err = check(qp, wr);
		if (err)
			break;
		op = take_slot(qp, wr);
		if (qp->is_broken) {
			qp->done = qp->sent = qp->ready = qp->posted;
			rbx_nic_op_flush(op);
			continue;
		}
		scribble(op);
		first = first ? first : op;
		count++;
	}
	if (err && bad)
		*bad = wr;
	if (first)
		ring(qp, first, count);
	return err;
}

int rbx_nic_post_recv(struct rbx_qp *base, struct rbx_recv_wr *wr,
		      struct rbx_recv_wr **bad)
{
	struct rbx_nic_qp *qp = rbx_nic_qp_of(base);
	uint32_t count = 0;
	int err = 0;

	for (; wr; wr = wr->next, count++) {
		struct rbx_nic_recv *recv;

		if (wr->sge_count > 1) {
			err = -EOPNOTSUPP;
			break;
		}
		if (qp->recv_posted - qp->recv_tail == qp->recv_depth_count) {
			err = -ENOMEM;
			break;
		}
		recv = &qp->recvs[qp->recv_posted % qp->recv_depth_count];
		recv->number = qp->recv_posted++;
		recv->wr_id = wr->wr_id;
		recv->sge = wr->sge_count ? *wr->sges : (struct rbx_sge){ 0 };
		recv->is_done = false;
		if (qp->is_broken) {
			qp->recv_taken = qp->recv_posted;
			rbx_nic_recv_done(recv, -ECANCELED, 0);
		}
	}
	if (err && bad)
		*bad = wr;
	rbx_nic_host()->spend((uint64_t)count *
			      qp->device->params->post_wqe_ns);
	return err;
}
