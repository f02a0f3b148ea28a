/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post.c - passes work requests to the device.
 *
 * A chain is translated into the array of its queue pair and posted by one
 * call, which is one doorbell. The scatter lists are not copied: an entry of
 * ours and one of libibverbs are the same in memory, as asserted below.
 *
 * The ring of the queue decides how much may be posted (see wr_ring.h). More is refused, and
 * so is what no device could carry out.
 *
 * A queue pair in error takes work and flushes it. All devices do so for sends. Soft-RoCE
 * looks at its receive queue only when a packet or a change of state comes, so after the end
 * of a connection each post of receives sets the state again.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>

#include "fabric/verbs/verbs.h"

#define RECV_BATCH_COUNT 16

static_assert(sizeof(struct rbx_sge) == sizeof(struct ibv_sge) &&
		      offsetof(struct rbx_sge, addr) ==
			      offsetof(struct ibv_sge, addr) &&
		      offsetof(struct rbx_sge, length_bytes) ==
			      offsetof(struct ibv_sge, length) &&
		      offsetof(struct rbx_sge, lkey) ==
			      offsetof(struct ibv_sge, lkey),
	      "scatter lists are handed on as they are");

static const enum ibv_wr_opcode opcodes[] = {
	[RBX_OP_WRITE] = IBV_WR_RDMA_WRITE,
	[RBX_OP_READ] = IBV_WR_RDMA_READ,
	[RBX_OP_SEND] = IBV_WR_SEND,
	[RBX_OP_OPEN_WINDOW] = IBV_WR_BIND_MW,
	[RBX_OP_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[RBX_OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
};

#define ATOMIC_BYTES 8u

static bool is_atomic(const struct rbx_wr *wr)
{
	return wr->opcode >= RBX_OP_COMPARE_SWAP;
}

static unsigned int send_flags(uint8_t flags)
{
	unsigned int out = 0;

	if (flags & RBX_WR_SIGNALED)
		out |= IBV_SEND_SIGNALED;
	if (flags & RBX_WR_INLINE)
		out |= IBV_SEND_INLINE;
	if (flags & (RBX_WR_FENCE | RBX_WR_INVALIDATE))
		out |= IBV_SEND_FENCE;
	return out;
}

/* Whether operation and flags fit together, and the device supports them. */
static int operation_check(const struct rbx_verbs_qp *qp,
			   const struct rbx_wr *wr)
{
	const struct rbx_device_caps *caps = &qp->qp.device->caps;
	const uint8_t both = RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE;

	if (is_atomic(wr) &&
	    (wr->sge_count != 1 || wr->sges->length_bytes != ATOMIC_BYTES ||
	     wr->flags & (both | RBX_WR_INLINE)))
		return -EINVAL;
	if (wr->opcode == RBX_OP_OPEN_WINDOW)
		return wr->sge_count || wr->flags & (both | RBX_WR_INLINE) ||
				       wr->window->is_open ?
			       -EINVAL :
			       0;
	if ((wr->flags & both) == both ||
	    (wr->flags & RBX_WR_INVALIDATE && wr->opcode != RBX_OP_SEND) ||
	    (wr->flags & RBX_WR_IMMEDIATE && wr->opcode == RBX_OP_READ))
		return -EINVAL;
	if ((is_atomic(wr) && !caps->has_atomics) ||
	    (wr->flags & RBX_WR_INVALIDATE && !caps->has_invalidate))
		return -EOPNOTSUPP;
	return 0;
}

/* Returns 0, or why no device, or not this one, could carry this out. */
static int send_check(const struct rbx_verbs_qp *qp, const struct rbx_wr *wr)
{
	uint64_t length_bytes = 0;
	uint32_t i;

	if (wr->opcode > RBX_OP_FETCH_ADD || wr->sge_count > qp->max_sge)
		return -EINVAL;
	if (wr->opcode > RBX_OP_SEND ||
	    wr->flags & (RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE))
		return operation_check(qp, wr);
	if (!(wr->flags & RBX_WR_INLINE))
		return 0;
	for (i = 0; i < wr->sge_count; i++)
		length_bytes += wr->sges[i].length_bytes;
	return wr->opcode == RBX_OP_READ ||
			       length_bytes > qp->qp.max_inline_bytes ?
		       -EINVAL :
		       0;
}

static void operation_translate(const struct rbx_wr *wr,
				struct ibv_send_wr *out)
{
	if (wr->flags & RBX_WR_IMMEDIATE) {
		out->opcode = wr->opcode == RBX_OP_SEND ?
				      IBV_WR_SEND_WITH_IMM :
				      IBV_WR_RDMA_WRITE_WITH_IMM;
		out->imm_data = htobe32(wr->immediate);
	} else if (wr->flags & RBX_WR_INVALIDATE) {
		out->opcode = IBV_WR_SEND_WITH_INV;
		out->invalidate_rkey = wr->invalidate_rkey;
	} else if (wr->opcode == RBX_OP_OPEN_WINDOW) {
		rbx_verbs_window_translate(wr->window, out);
	} else if (is_atomic(wr)) {
		out->wr.atomic.remote_addr = wr->remote_addr;
		out->wr.atomic.rkey = wr->rkey;
		out->wr.atomic.compare_add = wr->compare_add;
		out->wr.atomic.swap = wr->swap;
	}
}

static void send_translate(const struct rbx_wr *wr, struct ibv_send_wr *out)
{
	out->sg_list = (struct ibv_sge *)wr->sges;
	out->num_sge = (int)wr->sge_count;
	out->opcode = opcodes[wr->opcode];
	out->send_flags = send_flags(wr->flags);
	out->wr.rdma.remote_addr = wr->remote_addr;
	out->wr.rdma.rkey = wr->rkey;
	if (wr->opcode > RBX_OP_SEND ||
	    wr->flags & (RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE))
		operation_translate(wr, out);
}

/*
 * Fills wrs from the chain, as far as it is valid and fits. Returns how many it filled;
 * *rest: where the chain goes on, and *err: why it does.
 */
static uint32_t chain_translate(struct rbx_verbs_qp *qp, struct rbx_wr *wr,
				struct rbx_wr **rest, int *err)
{
	const uint32_t room = rbx_verbs_wr_ring_room(&qp->sends);
	uint32_t count = 0;

	for (*err = 0; wr; wr = wr->next) {
		*err = send_check(qp, wr);
		if (!*err && count == room)
			*err = -ENOMEM;
		if (*err)
			break;
		send_translate(wr, &qp->wrs[count]);
		qp->wrs[count].wr_id = rbx_verbs_wr_ring_note(&qp->sends, count,
							      wr->wr_id);
		if (count)
			qp->wrs[count - 1].next = &qp->wrs[count];
		qp->wrs[count++].next = NULL;
	}
	*rest = wr;
	return count;
}

int rbx_verbs_post_send(struct rbx_qp *rbx_qp, struct rbx_wr *first,
			struct rbx_wr **bad)
{
	struct rbx_verbs_qp *qp = rbx_verbs_qp(rbx_qp);
	struct ibv_send_wr *bad_wr;
	struct rbx_wr *rest;
	uint32_t posted;
	uint32_t i;
	int err;
	int device_err = 0;

	posted = chain_translate(qp, first, &rest, &err);
	if (posted)
		device_err = ibv_post_send(qp->ibv, qp->wrs, &bad_wr);
	/* What a failed device does not take is flushed without it. */
	if (device_err && !atomic_load(&qp->conn->device->has_failed)) {
		err = -device_err;
		posted = (uint32_t)(bad_wr - qp->wrs);
		for (rest = first, i = 0; i < posted; i++)
			rest = rest->next;
	}
	rbx_verbs_wr_ring_post(&qp->sends, posted);
	if (err && bad)
		*bad = rest;
	return err;
}

/* Devices read an entry of no bytes as one of 2^31, so such an entry may only be at the end. */
int rbx_verbs_recv_sge_count(const struct rbx_recv_wr *wr, uint32_t max_sge)
{
	uint32_t count = wr->sge_count, i;

	while (count && !wr->sges[count - 1].length_bytes)
		count--;
	for (i = 0; i < count; i++)
		if (!wr->sges[i].length_bytes)
			return -EINVAL;
	return count > max_sge ? -EINVAL : (int)count;
}

/* One call to the device; *rest is where the chain goes on. */
static int recv_post_batch(struct rbx_verbs_qp *qp, struct rbx_recv_wr *first,
			   struct rbx_recv_wr **rest)
{
	const uint32_t room = rbx_verbs_wr_ring_room(&qp->recvs);
	struct ibv_recv_wr wrs[RECV_BATCH_COUNT];
	struct ibv_recv_wr *bad_wr;
	struct rbx_recv_wr *wr = first;
	uint32_t count = 0;
	uint32_t i;
	int sge_count = 0;
	int err;

	for (; wr && count < RECV_BATCH_COUNT && count < room; wr = wr->next) {
		sge_count = rbx_verbs_recv_sge_count(wr, qp->recv_max_sge);
		if (sge_count < 0)
			break;
		wrs[count].wr_id = RBX_VERBS_WR_RECV |
			rbx_verbs_wr_ring_note(&qp->recvs, count, wr->wr_id);
		wrs[count].sg_list = (struct ibv_sge *)wr->sges;
		wrs[count].num_sge = sge_count;
		if (count)
			wrs[count - 1].next = &wrs[count];
		wrs[count++].next = NULL;
	}
	*rest = wr;
	if (!count)
		return sge_count < 0 ? sge_count : -ENOMEM;
	err = ibv_post_recv(qp->ibv, wrs, &bad_wr);
	if (err && atomic_load(&qp->conn->device->has_failed))
		err = 0; /* as for sends */
	if (err) {
		count = (uint32_t)(bad_wr - wrs);
		for (*rest = first, i = 0; *rest && i < count; i++)
			*rest = (*rest)->next;
	}
	rbx_verbs_wr_ring_post(&qp->recvs, count);
	return -err;
}

int rbx_verbs_post_recv(struct rbx_qp *rbx_qp, struct rbx_recv_wr *first,
			struct rbx_recv_wr **bad)
{
	struct rbx_verbs_qp *qp = rbx_verbs_qp(rbx_qp);
	struct rbx_recv_wr *rest = first;
	int err = qp->srq ? -EINVAL : 0;

	while (rest && !err)
		err = recv_post_batch(qp, rest, &rest);
	if (err && bad)
		*bad = rest;
	/* Pairs with the setting of `ended` before the move to error. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&qp->conn->ended))
		rbx_verbs_conn_flush(qp->conn);
	return err;
}
