/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * retry.c - what a requester does if answers do not come.
 *
 * A timer runs while something is on the wire. If it ends and the oldest is the same as when
 * it was set, everything sent and not answered is sent again in order. After retry_count
 * times in a row the oldest fails with -ETIMEDOUT. A receiver that was not ready gets
 * rnr_timer_ns, and then the send and all behind it are sent again. After rnr_retry_count
 * times it fails with -ENOBUFS.
 */
#include "sim/nic/qp.h"

#include "sim/trace.h"

/* All from the oldest unanswered one on count as not sent. Those that are done and wait for
 * it stay done. */
static void send_again_from(struct rbx_nic_qp *qp, uint32_t number)
{
	uint32_t end = qp->sent;

	RBX_SIM_TRACE(qp->device->node, "again", "qp", qp->number, "from",
		      number);
	qp->sent = number;
	for (; number != end; number++) {
		struct rbx_nic_op *op = rbx_nic_qp_op(qp, number);

		if (op->state == RBX_NIC_OP_SENT &&
		    op->opcode == RBX_OP_READ)
			qp->reads_under_way--;
		rbx_nic_op_stop(op);
		op->state = RBX_NIC_OP_READY;
		qp->device->resent++;
	}
	rbx_nic_send(qp);
}

void rbx_nic_timer_set(struct rbx_nic_qp *qp)
{
	if (rbx_sim_is_queued(&qp->timer))
		return;
	qp->timer_number = qp->done;
	rbx_sim_after(&qp->timer, qp->device->params->retry_timeout_ns);
}

static void no_answer(struct rbx_nic_qp *qp)
{
	if (qp->done == qp->sent)
		return;
	if (qp->timer_number != qp->done) {
		qp->retries = 0;
	} else if (qp->retries++ == qp->device->params->retry_count) {
		struct rbx_nic_op *oldest = rbx_nic_qp_op(qp, qp->done);

		rbx_nic_op_done(oldest, -ETIMEDOUT);
		return;
	} else {
		send_again_from(qp, qp->done);
	}
	rbx_nic_timer_set(qp);
}

static void ring(struct rbx_sim_event *event)
{
	struct rbx_nic_qp *qp =
		RBX_CONTAINER_OF(event, struct rbx_nic_qp, timer);

	if (qp->pauses) {
		qp->pauses = false;
		rbx_nic_send(qp);
	} else {
		no_answer(qp);
	}
}

void rbx_nic_timer_init(struct rbx_nic_qp *qp)
{
	qp->timer.run = ring;
}

void rbx_nic_not_ready(struct rbx_nic_op *op)
{
	struct rbx_nic_qp *qp = op->qp;

	if (op->rnr_count++ == qp->device->params->rnr_retry_count) {
		rbx_nic_op_done(op, -ENOBUFS);
		return;
	}
	qp->pauses = true;
	send_again_from(qp, op->number);
	rbx_sim_after(&qp->timer, qp->device->params->rnr_timer_ns);
}
