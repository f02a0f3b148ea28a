/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * respond.c - the responder: a message arrives, is checked, carried out and answered.
 *
 * It looks up what it needs, and waits for what is missing in the caches; later messages of
 * the same queue pair wait too. Then a unit processes it. Messages of a connection are
 * carried out strictly in the order of their numbers. Written bytes are in memory before the
 * answer can arrive. If the site late_placement is on, they arrive there late, in pieces and
 * in any order, but all of a message before the last piece of the next one, and before its
 * own answer.
 *
 * A violation is answered with an error and breaks this end. A send that finds no receive is
 * answered with -EAGAIN, and the requester tries again.
 */
#include "sim/nic/qp.h"

#include "sim/sites.h"
#include "sim/trace.h"

#define PIECES 4u /* of a late placement */
#define LATE_NS_MAX 200000u
/* By then the peer has polled the completion with that error. */
#define STALE_FELT_NS 100000000u

static void reply(struct rbx_nic_op *op, uint32_t bytes)
{
	struct rbx_nic_qp *qp = op->qp;

	rbx_nic_transmit(op, qp->peer->device, qp->device, bytes,
			 rbx_nic_answered);
}

/* Answers at the time that its span has reached. */
static void answer(struct rbx_nic_op *op, int32_t status)
{
	struct rbx_nic_qp *peer = op->qp->peer;

	op->answer = status;
	rbx_nic_payload_put(op->payload);
	op->payload = NULL;
	op->span = rbx_nic_span_at(
		RBX_MAX(op->span.tail_ps, rbx_nic_ps(rbx_sim_now())));
	reply(op, 0);
	if (status != 0 && status != -EAGAIN)
		rbx_nic_qp_fail(peer);
}

/* The peer's end; NULL: the message has found no peer, and is lost. */
static struct rbx_nic_qp *responder(struct rbx_nic_op *op)
{
	struct rbx_nic_qp *peer = op->qp->peer;

	if (peer && !peer->is_broken)
		return peer;
	rbx_nic_op_stop(op);
	return NULL;
}

static struct rbx_nic_region *remote_region(const struct rbx_nic_op *op)
{
	const struct rbx_nic_qp *peer = op->qp->peer;

	return rbx_nic_regions_find(&peer->device->regions, peer->domain,
				    op->rkey, op->remote_addr, op->length_bytes,
				    op->opcode == RBX_OP_READ ?
					    RBX_REMOTE_READ :
					    RBX_REMOTE_WRITE);
}

/* Whether the key is valid now. If not, nothing at all may be written or read. */
static bool remote_good(const struct rbx_nic_op *op)
{
	return op->length_bytes == 0 || remote_region(op);
}

/* The destination of the bytes of a write or send. */
static struct rbx_sge destination(const struct rbx_nic_op *op)
{
	if (op->opcode == RBX_OP_SEND)
		return op->recv->sge;
	return (struct rbx_sge){ .addr = op->remote_addr,
				 .length_bytes = op->length_bytes };
}

static bool destination_good(const struct rbx_nic_op *op)
{
	const struct rbx_nic_qp *peer = op->qp->peer;
	struct rbx_sge sge = destination(op);

	if (op->opcode == RBX_OP_WRITE)
		return remote_good(op);
	return op->length_bytes == 0 ||
	       rbx_nic_regions_find(&peer->device->regions, peer->domain,
				    sge.lkey, sge.addr, op->length_bytes,
				    RBX_LOCAL_WRITE);
}

/* Writes one piece of PIECES, or all that are left. */
static void put_piece(struct rbx_nic_op *op, uint32_t piece)
{
	struct rbx_sge sge = destination(op);
	uint32_t begin = (uint32_t)((uint64_t)op->length_bytes * piece /
				    PIECES);
	uint32_t end = (uint32_t)((uint64_t)op->length_bytes * (piece + 1) /
				  PIECES);

	memcpy((uint8_t *)(uintptr_t)sge.addr + begin,
	       op->payload->bytes + begin, end - begin);
	op->pieces_left &= ~(1u << piece);
}

static void placed(struct rbx_nic_op *op)
{
	struct rbx_nic_qp *peer = op->qp->peer;

	RBX_SIM_TRACE(peer->device->node, "placed", "qp", peer->number, "bytes",
		      op->length_bytes);
	if (op->recv)
		rbx_nic_recv_done(op->recv, 0, op->length_bytes);
	answer(op, 0);
}

static void place(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);

	if (!responder(op))
		return;
	if (!destination_good(op)) {
		if (op->recv)
			rbx_nic_recv_done(op->recv, -EFAULT, 0);
		answer(op, op->recv ? -EREMOTEIO : -EACCES);
		return;
	}
	for (uint32_t piece = 0; op->length_bytes && piece < PIECES; piece++) {
		if (op->pieces_left & 1u << piece)
			put_piece(op, piece);
	}
	placed(op);
}

/* Places one piece now; the next one comes later. */
static void place_piece(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	uint64_t end_ns = rbx_nic_ns(op->span.tail_ps);
	uint32_t piece = (uint32_t)rbx_sim_site_draw(
		RBX_SIM_SITE_late_placement, 0, PIECES - 1);
	uint64_t next_ns = rbx_sim_site_draw(RBX_SIM_SITE_late_placement,
					     rbx_sim_now() + 1, end_ns + 1);

	if (!responder(op))
		return;
	if (op->pieces_left & 1u << piece && destination_good(op))
		put_piece(op, piece);
	if (next_ns >= end_ns)
		rbx_nic_op_at(op, op->span.tail_ps, place);
	else
		rbx_nic_op_at(op, rbx_nic_ps(next_ns), place_piece);
}

/* Bytes have arrived: they go over PCIe to their destination. */
static void write_to_host(struct rbx_nic_op *op)
{
	struct rbx_nic_qp *peer = op->qp->peer;
	bool late = op->length_bytes != 0 &&
		    rbx_sim_site(RBX_SIM_SITE_late_placement);

	op->span = rbx_nic_pcie_write(&peer->device->pcie, op->span,
				      op->length_bytes);
	if (late)
		op->span.tail_ps += rbx_nic_ps(rbx_sim_site_draw(
			RBX_SIM_SITE_late_placement, 1000, LATE_NS_MAX));
	op->span.tail_ps = RBX_MAX(op->span.tail_ps, peer->placed_ps);
	peer->placed_ps = op->span.tail_ps;
	op->pieces_left = (1u << PIECES) - 1;
	if (late)
		rbx_nic_op_at(op, op->span.head_ps, place_piece);
	else
		rbx_nic_op_at(op, op->span.tail_ps, place);
}

/* The DMA has read the data of a read. */
static void read_from_host(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	struct rbx_sge sge = { .addr = op->remote_addr,
			       .length_bytes = op->length_bytes };

	if (!responder(op))
		return;
	if (!remote_good(op)) {
		answer(op, -EACCES);
		return;
	}
	op->payload = rbx_nic_payload_get(op->length_bytes);
	rbx_nic_payload_gather(op->payload, &sge, 1);
	op->answer = 0;
	reply(op, op->length_bytes);
}

static void respond_read(struct rbx_nic_op *op)
{
	if (op->length_bytes != 0)
		op->span = rbx_nic_pcie_read(&op->qp->peer->device->pcie,
					     op->span, op->length_bytes);
	rbx_nic_op_at(op, op->span.head_ps, read_from_host);
}

static void respond_send(struct rbx_nic_op *op, struct rbx_nic_qp *peer)
{
	struct rbx_nic_recv *recv;

	if (rbx_sim_site(RBX_SIM_SITE_receiver_not_ready)) {
		answer(op, -ENOBUFS);
		return;
	}
	if (peer->recv_taken == peer->recv_posted) {
		answer(op, -EAGAIN);
		return;
	}
	recv = &peer->recvs[peer->recv_taken++ % peer->recv_depth_count];
	if (op->length_bytes > recv->sge.length_bytes) {
		rbx_nic_recv_done(recv, -EMSGSIZE, 0);
		answer(op, -EREMOTEIO);
		return;
	}
	op->recv = recv;
	peer->expected++;
	write_to_host(op);
}

static void respond(struct rbx_nic_op *op, struct rbx_nic_qp *peer)
{
	if (op->opcode == RBX_OP_SEND) {
		respond_send(op, peer);
		return;
	}
	if (!remote_good(op) ||
	    rbx_sim_site_harms(RBX_SIM_SITE_stale_key, peer->device->node,
			       STALE_FELT_NS)) {
		answer(op, -EACCES);
		return;
	}
	peer->expected++;
	if (op->opcode == RBX_OP_READ)
		respond_read(op);
	else
		write_to_host(op);
}

/* The unit has processed it. */
static void received(struct rbx_nic_job *job)
{
	struct rbx_nic_op *op = RBX_CONTAINER_OF(job, struct rbx_nic_op, job);
	struct rbx_nic_qp *peer = responder(op);
	int32_t ahead;

	if (!peer)
		return;
	ahead = (int32_t)(op->number - peer->expected);
	if (ahead == 0)
		respond(op, peer);
	else if (ahead > 0)
		rbx_nic_op_stop(op);
	else if (op->opcode == RBX_OP_READ)
		respond_read(op);
	else
		answer(op, 0);
}

static uint64_t receive(struct rbx_nic_job *job, uint64_t begin_ps)
{
	struct rbx_nic_op *op = RBX_CONTAINER_OF(job, struct rbx_nic_op, job);
	struct rbx_nic_qp *peer = op->qp->peer;
	uint64_t packet_ps, end_ps;
	uint32_t packets = 1;

	if (!peer)
		return begin_ps;
	packet_ps = rbx_nic_ps(peer->device->params->receive_read_ns);
	if (op->opcode != RBX_OP_READ) {
		packets = rbx_nic_packets(peer->device, op->length_bytes);
		packet_ps = rbx_nic_ps(peer->device->params->receive_packet_ns);
	}
	end_ps = begin_ps + packets * packet_ps;
	op->span = (struct rbx_nic_span){
		begin_ps + packet_ps,
		RBX_MAX(end_ps, op->span.tail_ps + packet_ps),
	};
	return end_ps;
}

/* The caches have what it needs. */
static void enter(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	struct rbx_nic_qp *peer = responder(op);

	if (!peer)
		return;
	op->job.serve = receive;
	op->job.done = received;
	rbx_nic_server_add(&peer->device->receive_units[peer->unit], &op->job);
}

static uint64_t look_up(const struct rbx_nic_op *op, struct rbx_nic_qp *peer,
			uint64_t at_ps)
{
	uint64_t ready_ps =
		rbx_nic_find_context(peer->device, at_ps, peer->number);
	const struct rbx_nic_region *region = NULL;
	uint64_t found_ps;

	if (op->opcode != RBX_OP_SEND && op->length_bytes != 0)
		region = remote_region(op);
	if (!region)
		return ready_ps;
	found_ps = rbx_nic_find_translation(peer->device, at_ps, region,
					    op->remote_addr, op->length_bytes);
	return RBX_MAX(ready_ps, found_ps);
}

void rbx_nic_arrive(struct rbx_sim_event *event)
{
	struct rbx_nic_op *op = rbx_nic_op_of(event);
	struct rbx_nic_qp *peer = responder(op);
	uint64_t before_ns, ready_ps;

	if (!peer)
		return;
	before_ns = rbx_nic_ns(peer->received_ps);
	ready_ps = look_up(op, peer, rbx_nic_ps(rbx_sim_now()));
	peer->received_ps = RBX_MAX(peer->received_ps, ready_ps);
	/* Events of this same nanosecond go first. */
	if (before_ns >= rbx_sim_now() ||
	    rbx_nic_ns(peer->received_ps) > rbx_sim_now())
		rbx_nic_op_at(op, peer->received_ps, enter);
	else
		enter(event);
}
