/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send.c - a unit takes a work request and puts it on the wire.
 *
 * A queue pair belongs to one unit, and the queue pairs of a unit take turns, one work
 * request each. Before its turn a queue pair looks up what it needs: its own context, the
 * work request, the translations of its buffers. What is missing in the caches is filled, and
 * the queue pair waits for it while the unit serves others. Then the unit makes packets. The
 * payload is read by DMA at the same time, and each packet leaves when its data is there.
 *
 * If reads_outstanding_max reads of a queue pair are under way, the next read holds up what
 * follows it. So does a fence until earlier reads are done.
 */
#include "sim/nic/qp.h"

#include "sim/sites.h"

static bool has_payload(const struct rbx_nic_op *op)
{
	return op->opcode != RBX_OP_READ && op->length_bytes != 0;
}

static bool may_send(struct rbx_nic_qp *qp)
{
	const struct rbx_nic_op *op;

	if (qp->is_broken || qp->is_stuck || qp->pauses ||
	    qp->sent == qp->ready)
		return false;
	op = rbx_nic_qp_op(qp, qp->sent);
	if (op->flags & RBX_WR_FENCE && qp->reads_under_way != 0)
		return false;
	return op->opcode != RBX_OP_READ ||
	       qp->reads_under_way < qp->device->params->reads_outstanding_max;
}

/* Bytes of a message on the wire. */
static uint64_t wire_bytes(const struct rbx_nic_device *device, uint32_t bytes)
{
	return bytes + (uint64_t)rbx_nic_packets(device, bytes) *
			       device->params->packet_header_bytes;
}

uint32_t rbx_nic_packets(const struct rbx_nic_device *device, uint32_t bytes)
{
	uint32_t mtu = device->params->mtu_bytes;

	return RBX_MAX((bytes + mtu - 1) / mtu, 1u);
}

void rbx_nic_transmit(struct rbx_nic_op *op, struct rbx_nic_device *from,
		      struct rbx_nic_device *to, uint32_t bytes,
		      void (*stage)(struct rbx_sim_event *event))
{
	const struct rbx_nic_params *params = from->params;

	op->span = rbx_nic_span_later(
		rbx_nic_pipe_pass(&from->link_out, op->span,
				  bytes ? wire_bytes(from, bytes) :
					  params->ack_bytes,
				  params->mtu_bytes +
					  params->packet_header_bytes),
		params->link_ns);
	if (rbx_nic_reaches(from, to))
		rbx_nic_op_at(op, op->span.head_ps, stage);
	else
		rbx_nic_op_stop(op);
}

/* The first packet is complete. */
static void leave(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	struct rbx_nic_qp *qp = op->qp;

	if (rbx_sim_site(RBX_SIM_SITE_qp_error)) {
		rbx_nic_qp_tell_peer(qp);
		rbx_nic_qp_fail(qp);
		return;
	}
	op->is_doomed = op->is_doomed ||
			rbx_sim_site(RBX_SIM_SITE_retry_exceeded);
	if (!qp->peer || op->is_doomed)
		rbx_nic_op_stop(op);
	else
		rbx_nic_transmit(op, qp->device, qp->peer->device,
				 has_payload(op) ? op->length_bytes : 0,
				 rbx_nic_arrive);
}

/* Whether its keys are valid; inline bytes need none. */
static bool may_gather(const struct rbx_nic_op *op)
{
	return op->flags & RBX_WR_INLINE || rbx_nic_keys_good(op);
}

/* The DMA has the first packet's data: it is read now. The keys were valid when the unit
 * checked, and must still be. */
static void gather(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);

	if (!may_gather(op)) {
		rbx_nic_op_done(op, -EFAULT);
		return;
	}
	op->payload = rbx_nic_payload_get(op->length_bytes);
	if (op->flags & RBX_WR_INLINE)
		memcpy(op->payload->bytes, op->inline_data, op->length_bytes);
	else
		rbx_nic_payload_gather(op->payload, op->sges, op->sge_count);
	leave(event);
}

/* It cannot be sent; this is reported once those before it have ended. */
static void cannot(struct rbx_sim_event *event)
{
	rbx_nic_op_done(rbx_nic_op_of(event), -EFAULT);
}

static struct rbx_nic_region *local_region(const struct rbx_nic_op *op,
					   const struct rbx_sge *sge)
{
	return rbx_nic_regions_find(&op->qp->device->regions, op->qp->domain,
				    sge->lkey, sge->addr, sge->length_bytes,
				    op->opcode == RBX_OP_READ ?
					    RBX_LOCAL_WRITE :
					    0);
}

bool rbx_nic_keys_good(const struct rbx_nic_op *op)
{
	for (uint32_t i = 0; i < op->sge_count; i++) {
		if (op->sges[i].length_bytes != 0 &&
		    !local_region(op, &op->sges[i]))
			return false;
	}
	return true;
}

uint64_t rbx_nic_find_buffers(const struct rbx_nic_op *op, uint64_t at_ps)
{
	uint64_t found_ps = at_ps;

	for (uint32_t i = 0; i < op->sge_count; i++) {
		const struct rbx_sge *sge = &op->sges[i];
		uint64_t one_ps;

		if (sge->length_bytes == 0)
			continue;
		one_ps = rbx_nic_find_translation(op->qp->device, at_ps,
						  local_region(op, sge),
						  sge->addr, sge->length_bytes);
		found_ps = RBX_MAX(found_ps, one_ps);
	}
	return found_ps;
}

/* When the NIC has all that it needs to make packets. */
static uint64_t look_up(struct rbx_nic_op *op, uint64_t at_ps)
{
	struct rbx_nic_qp *qp = op->qp;
	uint64_t context_ps =
		rbx_nic_find_context(qp->device, at_ps, qp->number);
	uint64_t work_ps = rbx_nic_find_work(op, at_ps);
	uint64_t buffers_ps = at_ps;

	if (has_payload(op) && !(op->flags & RBX_WR_INLINE) && may_gather(op))
		buffers_ps = rbx_nic_find_buffers(op, at_ps);
	work_ps = RBX_MAX(work_ps, buffers_ps);
	return RBX_MAX(context_ps, work_ps);
}

/* A message that needs no DMA does not overtake one that waits for it. */
static void start(struct rbx_nic_op *op)
{
	struct rbx_nic_qp *qp = op->qp;

	if (has_payload(op) && !(op->flags & RBX_WR_INLINE))
		op->span = rbx_nic_pcie_read(&qp->device->pcie, op->span,
					     op->length_bytes);
	op->span.head_ps = RBX_MAX(op->span.head_ps, qp->left_ps);
	op->span.tail_ps = RBX_MAX(op->span.tail_ps, op->span.head_ps);
	qp->left_ps = op->span.head_ps;
	rbx_nic_op_at(op, op->span.head_ps, has_payload(op) ? gather : leave);
}

/* What a unit takes for a packet: the header's time, or the data's. */
static uint64_t packet_time_ps(const struct rbx_nic_device *device,
			       const struct rbx_nic_op *op)
{
	const struct rbx_nic_params *params = device->params;
	uint64_t bytes = has_payload(op) ? RBX_MIN(op->length_bytes,
						   params->mtu_bytes) :
					   0;

	return RBX_MAX(rbx_nic_ps(params->send_packet_ns),
		       bytes * 8000000 / params->send_unit_mbps);
}

static uint64_t serve(struct rbx_nic_job *job, uint64_t begin_ps)
{
	struct rbx_nic_qp *qp =
		RBX_CONTAINER_OF(job, struct rbx_nic_qp, send_job);
	const struct rbx_nic_params *params = qp->device->params;
	struct rbx_nic_op *op = rbx_nic_qp_op(qp, qp->sent++);
	uint32_t packets = has_payload(op) ?
				   rbx_nic_packets(qp->device,
						   op->length_bytes) :
				   1;
	uint64_t wqe_ps = begin_ps + rbx_nic_ps(params->send_wqe_ns);
	uint64_t packet_ps;

	op->state = RBX_NIC_OP_SENT;
	if (op->opcode == RBX_OP_READ)
		qp->reads_under_way++;
	if (!may_gather(op)) {
		qp->is_stuck = true;
		rbx_nic_op_at(op, wqe_ps, cannot);
		return wqe_ps;
	}
	packet_ps = packet_time_ps(qp->device, op);
	op->span = (struct rbx_nic_span){
		wqe_ps + packet_ps,
		wqe_ps + packets * packet_ps,
	};
	wqe_ps = op->span.tail_ps;
	start(op);
	rbx_nic_timer_set(qp);
	return wqe_ps;
}

static void served(struct rbx_nic_job *job)
{
	rbx_nic_send(RBX_CONTAINER_OF(job, struct rbx_nic_qp, send_job));
}

static void prepared(struct rbx_sim_event *event)
{
	struct rbx_nic_qp *qp =
		RBX_CONTAINER_OF(event, struct rbx_nic_qp, prepare);

	if (may_send(qp))
		rbx_nic_server_add(&qp->device->send_units[qp->unit],
				   &qp->send_job);
}

void rbx_nic_send(struct rbx_nic_qp *qp)
{
	struct rbx_nic_op *op;
	uint64_t ready_ns;

	if (!may_send(qp) || qp->send_job.server ||
	    rbx_sim_is_queued(&qp->prepare))
		return;
	op = rbx_nic_qp_op(qp, qp->sent);
	ready_ns = rbx_nic_ns(look_up(op, rbx_nic_ps(rbx_sim_now())));
	if (ready_ns > rbx_sim_now())
		rbx_sim_at(&qp->prepare, ready_ns);
	else
		prepared(&qp->prepare);
}

void rbx_nic_send_init(struct rbx_nic_qp *qp)
{
	qp->send_job.serve = serve;
	qp->send_job.done = served;
	qp->prepare.run = prepared;
}
