/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post.c - posts work requests and receives.
 *
 * Posting more than the depth ends the run: so code that counts its outstanding work requests
 * wrong is found here.
 */
#include <errno.h>

#include "sim/fail.h"
#include "sim/plain/plain.h"
#include "sim/sites.h"
#include "sim/trace.h"

struct plain_work *plain_work(const struct plain_qp *qp, uint32_t number)
{
	return &qp->works[number % qp->base.send_depth_count];
}

struct rbx_sge *plain_sges(const struct plain_qp *qp, uint32_t number)
{
	return &qp->sges[(size_t)(number % qp->base.send_depth_count) *
			 qp->max_sge];
}

struct rbx_sge *plain_recv_sges(const struct plain_qp *qp, uint32_t slot)
{
	return &qp->recv_sges[(size_t)slot * qp->recv_max_sge];
}

bool plain_brings(const struct plain_work *work)
{
	return work->opcode == RBX_OP_READ ||
	       work->opcode == RBX_OP_COMPARE_SWAP ||
	       work->opcode == RBX_OP_FETCH_ADD;
}

/* For each node: what it reads and writes, posted and not completed. */
static struct flight {
	uint64_t bytes;
	uint32_t work_requests;
} flights[RBX_SIM_NODES_MAX];

void plain_flight(const struct plain_qp *qp, uint32_t number, int sign)
{
	const struct plain_work *work = plain_work(qp, number);
	struct flight *flight = &flights[qp->node];

	if (work->opcode == RBX_OP_SEND || work->length_bytes == 0)
		return; /* these need no window */
	flight->bytes += (uint64_t)((int64_t)work->length_bytes * sign);
	flight->work_requests += (uint32_t)sign;
}

void plain_in_flight(uint32_t node, uint64_t *bytes, uint32_t *work_requests)
{
	*bytes = flights[node].bytes;
	*work_requests = flights[node].work_requests;
}

static void take(struct plain_qp *qp, const struct rbx_wr *wr,
		 uint64_t arrive_ns)
{
	struct plain_work *work = plain_work(qp, qp->posted_count);
	struct rbx_sge *sges = plain_sges(qp, qp->posted_count);

	RBX_ASSERT(wr->sge_count <= qp->max_sge);
	*work = (struct plain_work){
		.wr_id = wr->wr_id,
		.arrive_ns = arrive_ns,
		.remote_addr = wr->remote_addr,
		.compare_add = wr->compare_add,
		.swap = wr->swap,
		.rkey = wr->rkey,
		.immediate = wr->immediate,
		.opcode = wr->opcode,
		.flags = wr->flags,
		.sge_count = (uint8_t)wr->sge_count,
	};
	for (uint32_t i = 0; i < wr->sge_count; i++) {
		sges[i] = wr->sges[i];
		work->length_bytes += sges[i].length_bytes;
		/* The device owns the memory from here on. */
		if (plain_brings(work) &&
		    rbx_sim_site(RBX_SIM_SITE_scribble))
			plain_scribble((void *)(uintptr_t)sges[i].addr,
				       sges[i].length_bytes);
	}
	if (qp->state == PLAIN_ERROR && !qp->is_mute)
		plain_cq_add_error(qp->base.send_cq, qp, work->wr_id,
				   -ECANCELED);
	else
		plain_flight(qp, qp->posted_count, 1);
	qp->posted_count++;
}

static uint64_t arrival(const struct plain_qp *qp)
{
	uint64_t at_ns = rbx_sim_now() + plain_way_ns();

	if (qp->posted_count == qp->arrived_count)
		return at_ns;
	return RBX_MAX(at_ns, plain_work(qp, qp->posted_count - 1)->arrive_ns);
}

/* What a device refuses at once. */
static int check(const struct plain_qp *qp, const struct rbx_wr *wr)
{
	const uint8_t both = RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE;

	if (wr->opcode > RBX_OP_FETCH_ADD || wr->opcode == RBX_OP_OPEN_WINDOW ||
	    wr->flags & RBX_WR_INLINE ||
	    (wr->flags & both) == both ||
	    (wr->flags & RBX_WR_INVALIDATE && wr->opcode != RBX_OP_SEND) ||
	    (wr->flags & RBX_WR_IMMEDIATE && wr->opcode != RBX_OP_SEND &&
	     wr->opcode != RBX_OP_WRITE))
		return -EINVAL;
	if (qp->posted_count - qp->completed_count == qp->base.send_depth_count)
		rbx_sim_fail("queue-depth",
			     "a queue pair of %u gets one work request more",
			     qp->base.send_depth_count);
	return rbx_sim_site(RBX_SIM_SITE_post_full) ? -EIO : 0;
}

int plain_post_send(struct rbx_qp *base, struct rbx_wr *first,
		    struct rbx_wr **bad)
{
	struct plain_qp *qp = (struct plain_qp *)base;
	uint64_t arrive_ns = arrival(qp);
	uint32_t count = 0;
	int err = 0;

	for (; first && !err; first = first->next, count++) {
		*bad = first;
		err = check(qp, first);
		if (!err)
			take(qp, first, arrive_ns);
	}
	RBX_SIM_TRACE(qp->node, "post", "qp", qp->number, "count", count);
	if (qp->state == PLAIN_ERROR && !qp->is_mute) /* all of it was flushed */
		qp->completed_count = qp->arrived_count = qp->posted_count;
	else if (qp->state == PLAIN_CONNECTED &&
		 !rbx_sim_is_queued(&qp->arrives))
		rbx_sim_at(&qp->arrives, arrive_ns);
	return err;
}

static void take_receive(struct plain_qp *qp, const struct rbx_recv_wr *wr)
{
	uint32_t slot = (qp->recv_first + qp->recv_count++) %
			qp->recv_depth_count;
	struct plain_recv *recv = &qp->recvs[slot];

	*recv = (struct plain_recv){
		.wr_id = wr->wr_id,
		.sge_count = wr->sge_count,
	};
	for (uint32_t i = 0; i < wr->sge_count; i++) {
		const struct rbx_sge *sge = &wr->sges[i];

		plain_recv_sges(qp, slot)[i] = *sge;
		recv->length_bytes += sge->length_bytes;
		if (sge->length_bytes != 0)
			plain_scribble((void *)(uintptr_t)sge->addr,
				       sge->length_bytes);
	}
}

int plain_post_recv(struct rbx_qp *base, struct rbx_recv_wr *first,
		    struct rbx_recv_wr **bad)
{
	struct plain_qp *qp = (struct plain_qp *)base;

	for (; first; first = first->next) {
		*bad = first;
		if (first->sge_count > qp->recv_max_sge)
			return -EINVAL;
		if (qp->recv_count == qp->recv_depth_count)
			return -ENOMEM;
		if (qp->state == PLAIN_ERROR)
			plain_cq_add_error(base->recv_cq, qp, first->wr_id,
					   -ECANCELED);
		else
			take_receive(qp, first);
	}
	return 0;
}
