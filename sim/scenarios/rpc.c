/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpc.c - see rpc.h.
 *
 * A requester has one request outstanding and polls for its response. The responder is one
 * thread: it scans all mailboxes, or polls one completion queue in which all receives end. A
 * dispatcher sends for the requesters of its machine, which leave their requests in mailboxes
 * between them and the dispatcher. A requester finds a response by WRITE itself; the
 * dispatcher passes on a response by SEND.
 */
#include "sim/scenarios/rpc.h"

#include <stdlib.h>

#include "sim/scenarios/rpc_end.h"
#include "sim/scenarios/wires.h"

#define REQUEST_BYTES 64u
#define POLL_MAX 16

/* CPU time of the responder. The total for a request is published (figure 7: 1,100 cycles by
 * mailbox and 1,700 by receive queue, at about 3.2 GHz); how it is divided is assumed. */
#define SCAN_NS 4u /* an empty mailbox: a line in its cache */
#define LOOK_NS 25u /* the requester's loop around one mailbox */
#define HANDLE_NS 170u /* a request: a line not in its cache, and the work */
#define RECEIVE_NS 150u /* the lock of the shared receive queue (61 %) */
#define HAND_OVER_NS 100u /* assumed: a line from another core's cache */

struct requester {
	struct rbx_sim_thread thread;
	struct rbx_cq *cq;
	struct rbx_rpc_end end;
	bool is_dispatched;
	bool handed; /* to the dispatcher, which has to send it */
	bool answered; /* by the dispatcher */
	bool waits;
	uint64_t asked_ns, waited_ns;
	uint64_t done_count;
};

struct dispatcher {
	struct rbx_sim_thread thread;
	struct rbx_cq *cq;
	struct requester *requesters; /* all of them, and its own: */
	uint32_t first, count, next;
	uint32_t unpolled_count;
	bool responses_by_send;
};

struct responder {
	struct rbx_sim_thread thread;
	struct rbx_cq *send_cq, *recv_cq;
	struct rbx_rpc_end *ends;
	uint32_t count, next, unpolled_count;
	bool by_write;
};

/* All that a run has. */
struct rpc_world {
	const struct rbx_rpc *rpc;
	struct rbx_device *server;
	struct responder responder;
	struct requester *requesters;
	struct dispatcher *dispatchers; /* of each machine */
	struct rbx_rpc_line *lines; /* two sides of each connection */
};

/* ---- Requesters ---------------------------------------------------------------*/

/* Polls the requester's own queue; true: its response has come. */
static bool poll_response(struct requester *requester)
{
	struct rbx_wc wcs[POLL_MAX];
	bool found = false;
	int count = requester->cq->device->ops->poll(requester->cq, wcs, POLL_MAX);

	for (int i = 0; i < count; i++) {
		RBX_ASSERT(wcs[i].status == 0);
		if (wcs[i].opcode != RBX_OP_RECV)
			continue;
		(void)rbx_rpc_take_recv(requester->end.line);
		rbx_rpc_post_recv(&requester->end);
		found = true;
	}
	return found;
}

/* Whether the response has come. */
static bool take_response(struct requester *requester)
{
	bool found;

	if (requester->end.in_by_write) {
		rbx_sim_spend(LOOK_NS);
		found = rbx_rpc_take_mail(&requester->end);
		/* Its own completions, from time to time. */
		if (found && !requester->is_dispatched &&
		    requester->end.sent_count % RBX_RPC_SIGNAL_EVERY == 0)
			(void)poll_response(requester);
		return found;
	}
	if (!requester->is_dispatched)
		return poll_response(requester);
	rbx_sim_spend(LOOK_NS);
	found = requester->answered;
	requester->answered = false;
	return found;
}

static enum rbx_sim_step ask(struct rbx_sim_thread *thread)
{
	struct requester *requester =
		RBX_CONTAINER_OF(thread, struct requester, thread);

	if (!requester->waits) {
		requester->asked_ns = rbx_sim_thread_now();
		requester->waits = true;
		requester->handed = requester->is_dispatched;
		if (requester->handed)
			rbx_sim_spend(LOOK_NS); /* writes into the mailbox */
		else
			rbx_rpc_send(&requester->end);
	} else if (take_response(requester)) {
		requester->waits = false;
		requester->done_count++;
		requester->waited_ns +=
			rbx_sim_thread_now() - requester->asked_ns;
	}
	return RBX_SIM_GO_ON;
}

/* ---- Dispatchers --------------------------------------------------------------*/

/* Sends the next request that its requesters have left, looking at each once at most. */
static void dispatch_request(struct dispatcher *dispatcher)
{
	for (uint32_t i = 0; i < dispatcher->count; i++) {
		struct requester *requester =
			&dispatcher->requesters[dispatcher->first +
						dispatcher->next++ %
							dispatcher->count];

		rbx_sim_spend(SCAN_NS);
		if (!requester->handed)
			continue;
		rbx_sim_spend(HAND_OVER_NS);
		requester->handed = false;
		rbx_rpc_send(&requester->end);
		dispatcher->unpolled_count++;
		return;
	}
}

static void dispatch_responses(struct dispatcher *dispatcher)
{
	struct rbx_wc wcs[POLL_MAX];
	int count;

	if (!dispatcher->responses_by_send &&
	    dispatcher->unpolled_count < RBX_RPC_SIGNAL_EVERY)
		return;
	dispatcher->unpolled_count = 0;
	count = dispatcher->cq->device->ops->poll(dispatcher->cq, wcs, POLL_MAX);
	for (int i = 0; i < count; i++) {
		struct requester *requester;

		RBX_ASSERT(wcs[i].status == 0);
		if (wcs[i].opcode != RBX_OP_RECV)
			continue;
		requester = &dispatcher->requesters[rbx_rpc_take_recv(
			wcs[i].qp->user)];
		rbx_rpc_post_recv(&requester->end);
		rbx_sim_spend(HAND_OVER_NS);
		requester->answered = true;
	}
}

static enum rbx_sim_step dispatch(struct rbx_sim_thread *thread)
{
	struct dispatcher *dispatcher =
		RBX_CONTAINER_OF(thread, struct dispatcher, thread);

	dispatch_request(dispatcher);
	dispatch_responses(dispatcher);
	return RBX_SIM_GO_ON;
}

/* ---- The responder ------------------------------------------------------------*/

static void respond(struct responder *responder, struct rbx_rpc_end *end)
{
	struct rbx_wc wcs[POLL_MAX];

	rbx_sim_spend(HANDLE_NS);
	rbx_rpc_send(end);
	if (++responder->unpolled_count < RBX_RPC_SIGNAL_EVERY)
		return;
	responder->unpolled_count = 0;
	responder->send_cq->device->ops->poll(responder->send_cq, wcs,
					      POLL_MAX);
}

/* Scans from its position to the next message, one lap at most. */
static void scan(struct responder *responder)
{
	for (uint32_t i = 0; i < responder->count; i++) {
		struct rbx_rpc_end *end =
			&responder->ends[responder->next++ % responder->count];

		rbx_sim_spend(SCAN_NS);
		if (rbx_rpc_take_mail(end)) {
			respond(responder, end);
			return;
		}
	}
}

static void poll_receives(struct responder *responder)
{
	struct rbx_rpc_end *end;
	struct rbx_wc wc;

	if (!responder->recv_cq->device->ops->poll(responder->recv_cq, &wc, 1))
		return;
	RBX_ASSERT(wc.status == 0);
	rbx_sim_spend(RECEIVE_NS);
	end = &responder->ends[rbx_rpc_take_recv(wc.qp->user)];
	rbx_rpc_post_recv(end);
	respond(responder, end);
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

/* ---- The world ----------------------------------------------------------------*/

static void start(struct rbx_sim_thread *thread,
		  enum rbx_sim_step (*step)(struct rbx_sim_thread *thread))
{
	thread->step = step;
	rbx_sim_thread_add(thread);
	rbx_sim_thread_wake(thread);
}

static void open_responder(struct responder *responder,
			   struct rbx_device *server, const struct rbx_rpc *rpc)
{
	uint32_t count = rpc->requesters_count;

	*responder = (struct responder){
		.send_cq = rbx_sim_wires_cq(server, count * RBX_RPC_DEPTH),
		.recv_cq = rbx_sim_wires_cq(server, count * RBX_RPC_RECVS),
		.ends = rbx_sim_take(count, sizeof(*responder->ends)),
		.count = count,
		.by_write = rpc->request_by_write,
	};
	start(&responder->thread, serve);
}

/* Opens a connection for so many requesters; lines: its two sides. */
static void open_lines(const struct rpc_world *world, struct rbx_device *client,
		       struct rbx_cq *cq, struct rbx_rpc_line lines[2],
		       uint32_t count)
{
	struct rbx_qp_init init = {
		.send_cq = cq,
		.recv_cq = cq,
		.send_depth_count = count * RBX_RPC_DEPTH,
		.recv_depth_count = count * RBX_RPC_RECVS,
		.max_sge = 1,
		.max_inline_bytes = client->caps.max_inline_bytes,
		.user = &lines[0],
	}, server_init = init;

	server_init.send_cq = world->responder.send_cq;
	server_init.recv_cq = world->responder.recv_cq;
	server_init.user = &lines[1];
	lines[0].other = &lines[1];
	lines[1].other = &lines[0];
	rbx_sim_wires_connect(client, &init, &lines[0].qp, world->server,
			      &server_init, &lines[1].qp);
}

static void open_requester(const struct rpc_world *world, uint32_t number,
			   struct rbx_device *client, struct rbx_cq *cq,
			   struct rbx_rpc_line lines[2])
{
	const struct rbx_rpc *rpc = world->rpc;
	struct requester *requester = &world->requesters[number];
	struct rbx_rpc_end *end = &requester->end;
	struct rbx_rpc_end *other = &world->responder.ends[number];

	requester->cq = cq;
	requester->is_dispatched = rpc->dispatched;
	end->line = &lines[0];
	other->line = &lines[1];
	end->number = other->number = number;
	rbx_rpc_end_open(end, client, REQUEST_BYTES, rpc->response_bytes,
			 rpc->response_by_write);
	rbx_rpc_end_open(other, world->server, rpc->response_bytes,
			 REQUEST_BYTES, rpc->request_by_write);
	end->mailbox = rpc->request_by_write ? other->in : NULL;
	other->mailbox = rpc->response_by_write ? end->in : NULL;
	for (uint32_t i = 0; i < RBX_RPC_RECVS; i++) {
		if (!rpc->response_by_write)
			rbx_rpc_post_recv(end);
		if (!rpc->request_by_write)
			rbx_rpc_post_recv(other);
	}
	start(&requester->thread, ask);
}

static void open_dispatched(const struct rpc_world *world, uint32_t machine,
			    uint32_t first, uint32_t count,
			    struct rbx_device *client)
{
	struct dispatcher *dispatcher = &world->dispatchers[machine];
	struct rbx_rpc_line *lines = &world->lines[2 * machine];

	*dispatcher = (struct dispatcher){
		.cq = rbx_sim_wires_cq(client, count * (RBX_RPC_DEPTH +
							RBX_RPC_RECVS)),
		.requesters = world->requesters,
		.first = first,
		.count = count,
		.responses_by_send = !world->rpc->response_by_write,
	};
	open_lines(world, client, dispatcher->cq, lines, count);
	for (uint32_t i = 0; i < count; i++)
		open_requester(world, first + i, client, NULL, lines);
	start(&dispatcher->thread, dispatch);
}

static void open_private(const struct rpc_world *world, uint32_t number,
			 struct rbx_device *client)
{
	struct rbx_cq *cq =
		rbx_sim_wires_cq(client, RBX_RPC_DEPTH + RBX_RPC_RECVS);
	struct rbx_rpc_line *lines = &world->lines[2 * number];

	open_lines(world, client, cq, lines, 1);
	open_requester(world, number, client, cq, lines);
}

static void open_machine(const struct rpc_world *world, uint32_t machine)
{
	struct rbx_device *client = rbx_sim_wires_device(machine + 1);
	uint32_t first = machine * RBX_RPC_MACHINE_THREADS;
	uint32_t count = RBX_MIN(world->rpc->requesters_count - first,
				 RBX_RPC_MACHINE_THREADS);

	if (world->rpc->dispatched) {
		open_dispatched(world, machine, first, count, client);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		open_private(world, first + i, client);
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

void rbx_rpc_run(const struct rbx_setting *setting, const struct rbx_rpc *rpc,
		 struct rbx_rpc_result *result)
{
	uint32_t count = rpc->requesters_count;
	uint32_t machines = (count + RBX_RPC_MACHINE_THREADS - 1) /
			    RBX_RPC_MACHINE_THREADS;
	struct rpc_world world = {
		.rpc = rpc,
		.requesters = rbx_sim_take(count, sizeof(*world.requesters)),
		.dispatchers = rbx_sim_take(machines, sizeof(*world.dispatchers)),
		.lines = rbx_sim_take(2 * (size_t)count, sizeof(*world.lines)),
	};
	struct rbx_nic_params params = *setting->params;
	uint64_t done_before, waited_before, done_count, waited_ns;

	params.cores = count + 1 + (rpc->dispatched ? machines : 0);
	rbx_sim_wires_begin(&params);
	world.server = rbx_sim_wires_device(0);
	open_responder(&world.responder, world.server, rpc);
	for (uint32_t i = 0; i < machines; i++)
		open_machine(&world, i);
	rbx_sim_run_until(rpc->measured_ns / 2);
	sum(world.requesters, count, &done_before, &waited_before);
	rbx_sim_run_until(rpc->measured_ns / 2 + rpc->measured_ns);
	sum(world.requesters, count, &done_count, &waited_ns);
	done_count -= done_before;
	result->per_second = done_count * 1000000 / (rpc->measured_ns / 1000);
	result->bytes_per_second = result->per_second * rpc->response_bytes;
	result->latency_ns =
		(waited_ns - waited_before) / RBX_MAX(done_count, 1u);
	rbx_sim_wires_end();
	free(world.responder.ends);
	free(world.lines);
	free(world.dispatchers);
	free(world.requesters);
}
