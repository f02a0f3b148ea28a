/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * complete.c - handles answers at the requester, and completions.
 *
 * The data that the answer needs is looked up once more in the caches: the context, the work
 * request, and for a read the translations of its destination. Then a unit processes it. A
 * work request that has its status waits for those before it. Completions of a queue pair are
 * written in order, and unsignaled ones not at all. The first that fails ends the queue pair.
 */
#include "sim/nic/cq.h"
#include "sim/nic/qp.h"

#include "sim/sites.h"
#include "sim/trace.h"

#define CQE_BYTES 64u
#define LATE_NS_MAX 1000000u
/* The fields of a completion with an error that mean nothing. */
#define JUNK_OPCODE 0xdb
#define JUNK_LENGTH 0xdbdbdbdbu

/* When the CQE is in memory: after those before it. */
static uint64_t cqe_ns(struct rbx_nic_device *device, uint64_t *written_ps)
{
	uint64_t at_ps =
		rbx_nic_pcie_write(&device->pcie,
				   rbx_nic_span_at(rbx_nic_ps(rbx_sim_now())),
				   CQE_BYTES)
			.tail_ps;

	if (rbx_sim_site(RBX_SIM_SITE_late_completion))
		at_ps += rbx_nic_ps(rbx_sim_site_draw(
			RBX_SIM_SITE_late_completion, 1000, LATE_NS_MAX));
	*written_ps = RBX_MAX(*written_ps, at_ps);
	return rbx_nic_ns(*written_ps);
}

static void hide(struct rbx_wc *wc)
{
	if (wc->status == 0)
		return;
	wc->opcode = JUNK_OPCODE;
	wc->length_bytes = JUNK_LENGTH;
}

static void op_written(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	struct rbx_wc wc = {
		.wr_id = op->wr_id,
		.qp = &op->qp->base,
		.status = op->status,
		.opcode = op->opcode,
		.length_bytes = op->length_bytes,
	};

	hide(&wc);
	rbx_nic_cq_add(op->qp->base.send_cq, &wc, op->qp, op->number, false);
}

static void write_cqe(struct rbx_nic_op *op)
{
	op->event.run = op_written;
	rbx_sim_at(&op->event, cqe_ns(op->qp->device, &op->qp->written_ps));
}

void rbx_nic_op_flush(struct rbx_nic_op *op)
{
	op->state = RBX_NIC_OP_DONE;
	op->status = -ECANCELED;
	write_cqe(op);
}

/* Completes the oldest one, which has its status. */
static void complete(struct rbx_nic_qp *qp, struct rbx_nic_op *op)
{
	RBX_SIM_TRACE(qp->device->node, "complete", "qp", qp->number, "status",
		      -op->status);
	qp->done++;
	rbx_nic_forget_work(op);
	if (op->status != 0 || op->flags & RBX_WR_SIGNALED)
		write_cqe(op);
	if (op->status == 0) {
		qp->device->bytes += op->length_bytes;
		return;
	}
	rbx_nic_qp_tell_peer(qp);
	rbx_nic_qp_fail(qp);
}

void rbx_nic_op_done(struct rbx_nic_op *op, int32_t status)
{
	struct rbx_nic_qp *qp = op->qp;

	RBX_ASSERT(op->state == RBX_NIC_OP_SENT);
	rbx_nic_op_stop(op);
	op->state = RBX_NIC_OP_DONE;
	op->status = status;
	if (op->opcode == RBX_OP_READ)
		qp->reads_under_way--;
	while (!qp->is_broken && qp->done != qp->sent) {
		struct rbx_nic_op *oldest = rbx_nic_qp_op(qp, qp->done);

		if (oldest->state != RBX_NIC_OP_DONE)
			break;
		complete(qp, oldest);
	}
	rbx_nic_send(qp);
}

/* Read data has arrived over PCIe. */
static void scatter(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);

	if (!rbx_nic_keys_good(op)) {
		rbx_nic_op_done(op, -EFAULT);
		return;
	}
	rbx_nic_payload_scatter(op->payload, op->length_bytes, op->sges,
				op->sge_count);
	rbx_nic_op_done(op, 0);
}

static bool brings_data(const struct rbx_nic_op *op)
{
	return op->opcode == RBX_OP_READ && op->answer == 0 &&
	       op->length_bytes != 0;
}

/* The unit has processed the answer. */
static void taken(struct rbx_nic_job *job)
{
	struct rbx_nic_op *op = RBX_CONTAINER_OF(job, struct rbx_nic_op, job);

	if (op->answer == -EAGAIN) {
		rbx_nic_not_ready(op);
	} else if (brings_data(op)) {
		op->span = rbx_nic_pcie_write(&op->qp->device->pcie, op->span,
					      op->length_bytes);
		rbx_nic_op_at(op, op->span.tail_ps, scatter);
	} else {
		rbx_nic_op_done(op, op->answer);
	}
}

static uint64_t take(struct rbx_nic_job *job, uint64_t begin_ps)
{
	struct rbx_nic_op *op = RBX_CONTAINER_OF(job, struct rbx_nic_op, job);
	const struct rbx_nic_device *device = op->qp->device;
	uint64_t packet_ps = rbx_nic_ps(device->params->receive_packet_ns);
	uint64_t end_ps;

	if (!brings_data(op))
		return begin_ps + rbx_nic_ps(device->params->receive_ack_ns);
	end_ps = begin_ps +
		 rbx_nic_packets(device, op->length_bytes) * packet_ps;
	op->span = (struct rbx_nic_span){
		begin_ps + packet_ps,
		RBX_MAX(end_ps, op->span.tail_ps + packet_ps),
	};
	return end_ps;
}

/* The caches have what is needed. */
static void enter(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);

	op->job.serve = take;
	op->job.done = taken;
	rbx_nic_server_add(&op->qp->device->receive_units[op->qp->unit],
			   &op->job);
}

static uint64_t look_up(struct rbx_nic_op *op, uint64_t at_ps)
{
	struct rbx_nic_device *device = op->qp->device;
	uint64_t ready_ps =
		rbx_nic_find_context(device, at_ps, op->qp->number);
	uint64_t found_ps = rbx_nic_find_work(op, at_ps);

	ready_ps = RBX_MAX(ready_ps, found_ps);
	if (!brings_data(op) || !rbx_nic_keys_good(op))
		return ready_ps;
	found_ps = rbx_nic_find_buffers(op, at_ps);
	return RBX_MAX(ready_ps, found_ps);
}

void rbx_nic_answered(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	uint64_t ready_ps = look_up(op, rbx_nic_ps(rbx_sim_now()));

	if (rbx_nic_ns(ready_ps) > rbx_sim_now())
		rbx_nic_op_at(op, ready_ps, enter);
	else
		enter(event);
}

static void recv_written(struct rbx_sim_event *event)
{
	struct rbx_nic_recv *recv =
		RBX_CONTAINER_OF(event, struct rbx_nic_recv, event);
	struct rbx_wc wc = {
		.wr_id = recv->wr_id,
		.qp = &recv->qp->base,
		.status = recv->status,
		.opcode = RBX_OP_RECV,
		.length_bytes = recv->length_bytes,
	};

	hide(&wc);
	rbx_nic_cq_add(recv->qp->base.recv_cq, &wc, recv->qp, recv->number,
		       true);
}

void rbx_nic_recv_done(struct rbx_nic_recv *recv, int32_t status,
		       uint32_t length_bytes)
{
	struct rbx_nic_qp *qp = recv->qp;

	RBX_ASSERT(!recv->is_done);
	recv->is_done = true;
	recv->status = status;
	recv->length_bytes = length_bytes;
	recv->event.run = recv_written;
	rbx_sim_at(&recv->event, cqe_ns(qp->device, &qp->recv_written_ps));
}
