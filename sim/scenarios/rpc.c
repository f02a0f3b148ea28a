/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpc.c - see rpc.h.
 *
 * A requester has one request outstanding and polls for its response. The responder
 * is one thread: it walks through all mailboxes, or polls one completion queue on
 * which all receives end. A message carries its number in its last byte, which is
 * looked at and nothing else; a mailbox that was read is not cleared, since the next
 * request has another number.
 */
#include "sim/scenarios/rpc.h"

#include <stdlib.h>

#include "sim/scenarios/wires.h"

#define REQUEST_BYTES 64u
#define DEPTH 64u
#define SIGNAL_EVERY 16u
#define RECVS 4u
#define POLL_MAX 16

/* CPU time of the responder. What a request costs in all is published (figure 7,
 * 1,100 cycles by mailbox and 1,700 by receive queue, of some 3.2 GHz); how it divides
 * is assumed. */
#define SCAN_NS 4u /* a mailbox that is empty: a line in its cache */
#define LOOK_NS 25u /* the requester's loop around one mailbox */
#define HANDLE_NS 170u /* a request: a line that is not, and what is asked */
#define RECEIVE_NS 150u /* the lock of the shared receive queue (61 %) */

struct end {
	struct rbx_qp *qp;
	struct rbx_mr *out; /* what is sent, its number in the last byte */
	struct rbx_mr *in; /* what comes: a mailbox, or receives */
	uint32_t out_bytes, in_bytes;
	const struct rbx_mr *mailbox; /* of the other end; NULL: by SEND */
	bool in_by_write;
	uint32_t sent_count, received_count;
};

struct requester {
	struct rbx_sim_thread thread;
	struct rbx_cq *cq;
	struct end end;
	bool waits;
	uint64_t asked_ns, waited_ns;
	uint64_t done_count;
};

struct responder {
	struct rbx_sim_thread thread;
	struct rbx_cq *send_cq, *recv_cq;
	struct end *ends;
	uint32_t count, next, unpolled_count;
	bool by_write;
};

static uint8_t *last_byte(const struct rbx_mr *mr, uint32_t bytes)
{
	return (uint8_t *)mr->addr + bytes - 1;
}

/* The next message out of an end. */
static void send_next(struct end *end)
{
	struct rbx_sge sge = {
		.addr = (uintptr_t)end->out->addr,
		.length_bytes = end->out_bytes,
		.lkey = end->out->lkey,
	};
	struct rbx_wr wr = {
		.sges = &sge,
		.sge_count = 1,
		.opcode = end->mailbox ? RBX_OP_WRITE : RBX_OP_SEND,
	}, *bad;
	int err;

	*last_byte(end->out, end->out_bytes) = (uint8_t)++end->sent_count;
	if (end->mailbox) {
		wr.rkey = end->mailbox->rkey;
		wr.remote_addr = (uintptr_t)end->mailbox->addr;
	}
	if (end->out_bytes <= end->qp->max_inline_bytes)
		wr.flags |= RBX_WR_INLINE;
	if (end->sent_count % SIGNAL_EVERY == 0)
		wr.flags |= RBX_WR_SIGNALED;
	err = end->qp->device->ops->post_send(end->qp, &wr, &bad);
	RBX_ASSERT(!err);
}

static void post_recv(struct end *end)
{
	struct rbx_recv_wr wr = {
		.sge = { (uintptr_t)end->in->addr, end->in_bytes,
			 end->in->lkey },
	}, *bad;
	int err = end->qp->device->ops->post_recv(end->qp, &wr, &bad);

	RBX_ASSERT(!err);
}

/* Whether a mailbox has a new message; it is taken then. */
static bool take_mail(struct end *end)
{
	if (*last_byte(end->in, end->in_bytes) !=
	    (uint8_t)(end->received_count + 1))
		return false;
	end->received_count++;
	return true;
}

/* Polls the requester's queue; true: its response has come. */
static bool take_response(struct requester *requester)
{
	struct rbx_wc wcs[POLL_MAX];
	bool found = false;
	int count;

	if (requester->end.in_by_write) {
		rbx_sim_spend(LOOK_NS);
		/* Its own completions, now and then. */
		found = take_mail(&requester->end);
		if (!found || requester->end.sent_count % SIGNAL_EVERY != 0)
			return found;
	}
	count = requester->cq->device->ops->poll(requester->cq, wcs, POLL_MAX);
	for (int i = 0; i < count; i++) {
		RBX_ASSERT(wcs[i].status == 0);
		if (wcs[i].opcode != RBX_OP_RECV)
			continue;
		post_recv(&requester->end);
		found = true;
	}
	return found;
}

static enum rbx_sim_step ask(struct rbx_sim_thread *thread)
{
	struct requester *requester =
		RBX_CONTAINER_OF(thread, struct requester, thread);

	if (!requester->waits) {
		requester->asked_ns = rbx_sim_thread_now();
		requester->waits = true;
		send_next(&requester->end);
	} else if (take_response(requester)) {
		requester->waits = false;
		requester->done_count++;
		requester->waited_ns +=
			rbx_sim_thread_now() - requester->asked_ns;
	}
	return RBX_SIM_GO_ON;
}

static void respond(struct responder *responder, struct end *end)
{
	struct rbx_wc wcs[POLL_MAX];

	rbx_sim_spend(HANDLE_NS);
	send_next(end);
	if (++responder->unpolled_count < SIGNAL_EVERY)
		return;
	responder->unpolled_count = 0;
	responder->send_cq->device->ops->poll(responder->send_cq, wcs,
					      POLL_MAX);
}

/* Walks from where it was to the next message, a lap at most. */
static void scan(struct responder *responder)
{
	for (uint32_t i = 0; i < responder->count; i++) {
		struct end *end =
			&responder->ends[responder->next++ % responder->count];

		rbx_sim_spend(SCAN_NS);
		if (take_mail(end)) {
			respond(responder, end);
			return;
		}
	}
}

static void poll_receives(struct responder *responder)
{
	struct rbx_wc wc;

	if (!responder->recv_cq->device->ops->poll(responder->recv_cq, &wc, 1))
		return;
	RBX_ASSERT(wc.status == 0);
	rbx_sim_spend(RECEIVE_NS);
	post_recv(wc.qp->user);
	respond(responder, wc.qp->user);
}

static enum rbx_sim_step serve(struct rbx_sim_thread *thread)
{
	struct responder *responder =
		RBX_CONTAINER_OF(thread, struct responder, thread);

	if (responder->by_write)
		scan(responder);
	else
		poll_receives(responder);
	return RBX_SIM_GO_ON;
}

static void open_end(struct end *end, struct rbx_device *device,
		     uint32_t out_bytes, uint32_t in_bytes, bool in_by_write)
{
	end->out = rbx_sim_wires_memory(device, out_bytes);
	end->in = rbx_sim_wires_memory(device, in_bytes);
	end->out_bytes = out_bytes;
	end->in_bytes = in_bytes;
	end->in_by_write = in_by_write;
}

static void open_requester(struct requester *requester, const struct rbx_rpc *rpc,
			   struct rbx_device *client, struct rbx_device *server,
			   struct responder *responder, struct end *other)
{
	struct end *end = &requester->end;
	struct rbx_qp_init init = {
		.send_depth_count = DEPTH,
		.recv_depth_count = RECVS,
		.max_sge = 1,
		.max_inline_bytes = client->caps.max_inline_bytes,
		.user = end,
	}, server_init = init;

	requester->cq = rbx_sim_wires_cq(client, DEPTH + RECVS);
	init.send_cq = init.recv_cq = requester->cq;
	server_init.send_cq = responder->send_cq;
	server_init.recv_cq = responder->recv_cq;
	server_init.user = other;
	open_end(end, client, REQUEST_BYTES, rpc->response_bytes,
		 rpc->response_by_write);
	open_end(other, server, rpc->response_bytes, REQUEST_BYTES,
		 rpc->request_by_write);
	rbx_sim_wires_connect(client, &init, &end->qp, server, &server_init,
			      &other->qp);
	end->mailbox = rpc->request_by_write ? other->in : NULL;
	other->mailbox = rpc->response_by_write ? end->in : NULL;
	for (uint32_t i = 0; i < RECVS; i++) {
		if (!rpc->response_by_write)
			post_recv(end);
		if (!rpc->request_by_write)
			post_recv(other);
	}
	requester->thread.step = ask;
	rbx_sim_thread_add(&requester->thread);
	rbx_sim_thread_wake(&requester->thread);
}

static void sum(const struct requester *requesters, uint32_t count,
		uint64_t *done_count, uint64_t *waited_ns)
{
	*done_count = *waited_ns = 0;
	for (uint32_t i = 0; i < count; i++) {
		*done_count += requesters[i].done_count;
		*waited_ns += requesters[i].waited_ns;
	}
}

static void open_responder(struct responder *responder,
			   struct rbx_device *server, const struct rbx_rpc *rpc)
{
	uint32_t count = rpc->requesters_count;

	*responder = (struct responder){
		.thread = { .step = serve },
		.send_cq = rbx_sim_wires_cq(server, count * DEPTH),
		.recv_cq = rbx_sim_wires_cq(server, count * RECVS),
		.ends = rbx_sim_take(count, sizeof(struct end)),
		.count = count,
		.by_write = rpc->request_by_write,
	};
	rbx_sim_thread_add(&responder->thread);
	rbx_sim_thread_wake(&responder->thread);
}

void rbx_rpc_run(const struct rbx_setting *setting, const struct rbx_rpc *rpc,
		 struct rbx_rpc_result *result)
{
	uint32_t count = rpc->requesters_count;
	struct requester *requesters =
		rbx_sim_take(count, sizeof(*requesters));
	struct rbx_nic_params params = *setting->params;
	uint64_t done_before, waited_before, done_count, waited_ns;
	struct rbx_device *server, *client = NULL;
	struct responder responder;

	params.cores = count + 1;
	rbx_sim_wires_begin(&params);
	server = rbx_sim_wires_device(0);
	open_responder(&responder, server, rpc);
	for (uint32_t i = 0; i < count; i++) {
		if (i % RBX_RPC_MACHINE_THREADS == 0)
			client = rbx_sim_wires_device(i / RBX_RPC_MACHINE_THREADS + 1);
		open_requester(&requesters[i], rpc, client, server, &responder,
			       &responder.ends[i]);
	}
	rbx_sim_run_until(rpc->measured_ns / 2);
	sum(requesters, count, &done_before, &waited_before);
	rbx_sim_run_until(rpc->measured_ns / 2 + rpc->measured_ns);
	sum(requesters, count, &done_count, &waited_ns);
	done_count -= done_before;
	result->per_second = done_count * 1000000 / (rpc->measured_ns / 1000);
	result->bytes_per_second = result->per_second * rpc->response_bytes;
	result->latency_ns =
		(waited_ns - waited_before) / RBX_MAX(done_count, 1u);
	rbx_sim_wires_end();
	free(responder.ends);
	free(requesters);
}
