/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* qp.c - makes, breaks and destroys queue pairs. See qp.h. */
#include "sim/nic/qp.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/nic/cq.h"
#include "sim/trace.h"

static uint32_t last_number;

void rbx_nic_qp_numbers_begin(void)
{
	last_number = 0;
}

static void peer_gone(struct rbx_sim_event *event)
{
	rbx_nic_qp_fail(RBX_CONTAINER_OF(event, struct rbx_nic_qp, peer_gone));
}

static void free_qp(struct rbx_nic_qp *qp)
{
	free(qp->ops);
	free(qp->recvs);
	free(qp->sges);
	free(qp->inline_data);
	free(qp);
}

static int allocate(struct rbx_nic_qp *qp)
{
	size_t depth = 1;

	while (depth < qp->base.send_depth_count)
		depth *= 2;
	qp->ops_mask = (uint32_t)depth - 1;
	qp->ops = calloc(depth, sizeof(*qp->ops));
	qp->recvs = calloc(RBX_MAX(qp->recv_depth_count, 1u),
			   sizeof(*qp->recvs));
	qp->sges = calloc(depth * qp->max_sge, sizeof(*qp->sges));
	qp->inline_data = calloc(depth, qp->base.max_inline_bytes + 1);
	if (!qp->ops || !qp->recvs || !qp->sges || !qp->inline_data)
		return -ENOMEM;
	for (size_t i = 0; i < depth; i++) {
		qp->ops[i].qp = qp;
		qp->ops[i].sges = &qp->sges[i * qp->max_sge];
		qp->ops[i].inline_data =
			&qp->inline_data[i * (qp->base.max_inline_bytes + 1)];
	}
	for (uint32_t i = 0; i < qp->recv_depth_count; i++)
		qp->recvs[i].qp = qp;
	return 0;
}

static int check(const struct rbx_nic_device *device,
		 const struct rbx_qp_init *init, char *error)
{
	const struct rbx_nic_params *params = device->params;
	const char *what = NULL;

	if (init->native)
		what = "a model NIC has no verbs";
	else if (device->qp_count == params->qp_max)
		what = "the model NIC has no queue pair left (qp_max)";
	else if (init->send_depth_count < 1 ||
		 init->send_depth_count > params->send_wr_max ||
		 init->recv_depth_count > params->recv_wr_max ||
		 init->max_sge > params->sge_max ||
		 init->max_inline_bytes > params->inline_bytes_max)
		what = "the model NIC has no such queue pair (send_wr_max, "
		       "recv_wr_max, sge_max, inline_bytes_max)";
	if (!what)
		return 0;
	if (error)
		snprintf(error, RBX_ERROR_TEXT_MAX,
			 "cannot create a queue pair: %s", what);
	return -EINVAL;
}

int rbx_nic_qp_create(struct rbx_nic_device *device,
		      const struct rbx_qp_init *init, struct rbx_nic_qp **out,
		      char *error)
{
	int err = check(device, init, error);
	struct rbx_nic_qp *qp;

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->base = (struct rbx_qp){
		.device = &device->base,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.user = init->user,
		.send_depth_count = init->send_depth_count,
		.max_inline_bytes = init->max_inline_bytes,
	};
	qp->device = device;
	qp->domain = init->domain;
	qp->recv_depth_count = init->recv_depth_count;
	qp->max_sge = RBX_MAX(init->max_sge, 1u);
	qp->number = ++last_number;
	qp->unit = device->next_unit++ % device->params->units;
	qp->peer_gone.run = peer_gone;
	rbx_nic_send_init(qp);
	rbx_nic_timer_init(qp);
	if (allocate(qp)) {
		free_qp(qp);
		return -ENOMEM;
	}
	qp->next = device->qps;
	device->qps = qp;
	device->qp_count++;
	rbx_qp_made(init, &qp->base);
	*out = qp;
	return 0;
}

void rbx_nic_qp_join(struct rbx_nic_qp *one, struct rbx_nic_qp *other)
{
	one->peer = other;
	other->peer = one;
}

void rbx_nic_op_at(struct rbx_nic_op *op, uint64_t at_ps,
		   void (*stage)(struct rbx_sim_event *event))
{
	op->event.run = stage;
	rbx_sim_at(&op->event, rbx_nic_ns(at_ps));
}

void rbx_nic_op_stop(struct rbx_nic_op *op)
{
	rbx_sim_cancel(&op->event);
	rbx_nic_server_remove(&op->job);
	rbx_nic_payload_put(op->payload);
	op->payload = NULL;
}

static void flush_sends(struct rbx_nic_qp *qp)
{
	while (qp->done != qp->posted) {
		struct rbx_nic_op *op = rbx_nic_qp_op(qp, qp->done++);

		if (op->state == RBX_NIC_OP_SENT)
			rbx_nic_stray(op);
		rbx_nic_op_stop(op);
		rbx_nic_forget_work(op);
		rbx_nic_op_flush(op);
	}
	qp->sent = qp->ready = qp->posted;
	qp->reads_under_way = 0;
}

static void flush_recvs(struct rbx_nic_qp *qp)
{
	uint32_t number;

	for (number = qp->recv_tail; number != qp->recv_posted; number++) {
		struct rbx_nic_recv *recv =
			&qp->recvs[number % qp->recv_depth_count];

		if (!recv->is_done)
			rbx_nic_recv_done(recv, -ECANCELED, 0);
	}
	qp->recv_taken = qp->recv_posted;
}

void rbx_nic_qp_fail(struct rbx_nic_qp *qp)
{
	if (qp->is_broken)
		return;
	RBX_SIM_TRACE(qp->device->node, "qp-error", "qp", qp->number, "done",
		      qp->done);
	qp->is_broken = true;
	rbx_nic_server_remove(&qp->send_job);
	rbx_sim_cancel(&qp->prepare);
	rbx_sim_cancel(&qp->timer);
	flush_sends(qp);
	flush_recvs(qp);
}

void rbx_nic_qp_tell_peer(struct rbx_nic_qp *qp)
{
	struct rbx_nic_qp *peer = qp->peer;

	if (peer && !peer->is_broken &&
	    rbx_nic_reaches(qp->device, peer->device) &&
	    !rbx_sim_is_queued(&peer->peer_gone))
		rbx_sim_after(&peer->peer_gone, qp->device->params->link_ns);
}

void rbx_nic_qp_disconnect(struct rbx_qp *base)
{
	struct rbx_nic_qp *qp = rbx_nic_qp_of(base);

	rbx_nic_qp_tell_peer(qp);
	rbx_nic_qp_fail(qp);
}

/* What the peer has sent and was not answered is lost. */
static void leave_peer(struct rbx_nic_qp *qp)
{
	struct rbx_nic_qp *peer = qp->peer;

	if (!peer)
		return;
	for (uint32_t number = peer->done; number != peer->sent; number++) {
		struct rbx_nic_op *op = rbx_nic_qp_op(peer, number);

		if (op->state == RBX_NIC_OP_SENT)
			rbx_nic_op_stop(op);
	}
	peer->peer = NULL;
}

void rbx_nic_qp_vanish(struct rbx_nic_qp *qp)
{
	struct rbx_nic_device *device = qp->device;
	struct rbx_nic_qp **at = &device->qps;

	rbx_nic_qp_fail(qp);
	leave_peer(qp);
	rbx_sim_cancel(&qp->peer_gone);
	for (uint32_t i = 0; i <= qp->ops_mask; i++)
		rbx_nic_op_stop(&qp->ops[i]);
	for (uint32_t i = 0; i < qp->recv_depth_count; i++)
		rbx_sim_cancel(&qp->recvs[i].event);
	rbx_nic_cq_forget(qp->base.send_cq, qp);
	rbx_nic_cq_forget(qp->base.recv_cq, qp);
	while (*at != qp)
		at = &(*at)->next;
	*at = qp->next;
	device->qp_count--;
	free_qp(qp);
}

void rbx_nic_qp_destroy(struct rbx_qp *base)
{
	rbx_nic_qp_disconnect(base);
	rbx_nic_qp_vanish(rbx_nic_qp_of(base));
}
