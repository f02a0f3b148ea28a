/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - listeners, queue pairs, and how two of them are connected.
 *
 * connect() makes its end, sends a request to the listener and waits. accept() makes the
 * other end and joins both. A request lives until both sides are done with it: one has
 * answered it, the other has the answer or has given up. Private data arrives with zeros
 * behind it, as on InfiniBand.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/descriptors.h"
#include "sim/plain/plain.h"
#include "sim/sites.h"
#include "sim/trace.h"

#define PORT_FIRST 7000u

static struct plain_listener *listeners;
static uint32_t last_qp_number, last_port = PORT_FIRST;

/* ---- Queue pairs ------------------------------------------------------------*/

/* Only for deep queues: a device always has room for a few messages. */
#define SHALLOW_FROM 64u

static uint32_t depth_of(const struct rbx_qp_init *init)
{
	uint32_t depth_count = init->send_depth_count;

	if (depth_count < SHALLOW_FROM ||
	    !rbx_sim_site(RBX_SIM_SITE_shallow_qp))
		return depth_count;
	return (uint32_t)rbx_sim_site_draw(RBX_SIM_SITE_shallow_qp, 2,
					   depth_count);
}

static struct plain_qp *qp_make(struct rbx_device *device,
				const struct rbx_qp_init *init)
{
	struct plain_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		abort();
	qp->base = (struct rbx_qp){
		.device = device,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.user = init->user,
		.send_depth_count = depth_of(init),
	};
	qp->domain = init->domain;
	qp->node = ((struct plain_device *)device)->node;
	qp->number = ++last_qp_number;
	qp->max_sge = RBX_MAX(init->max_sge, 1u);
	qp->recv_depth_count = RBX_MAX(init->recv_depth_count, 1u);
	qp->works = calloc(qp->base.send_depth_count, sizeof(*qp->works));
	qp->sges = calloc((size_t)qp->base.send_depth_count * qp->max_sge,
			  sizeof(*qp->sges));
	qp->recvs = calloc(qp->recv_depth_count, sizeof(*qp->recvs));
	qp->recv_max_sge = RBX_MAX(init->recv_max_sge, 1u);
	qp->recv_sges = calloc((size_t)qp->recv_depth_count * qp->recv_max_sge,
			       sizeof(*qp->recv_sges));
	if (!qp->works || !qp->sges || !qp->recvs || !qp->recv_sges)
		abort();
	qp->arrives.run = plain_arrives;
	qp->completes.run = plain_completes;
	qp->hears.run = plain_hears;
	qp->dreams.run = plain_dreams;
	qp->next = plain_qps;
	if (qp->next)
		qp->next->previous = qp;
	plain_qps = qp;
	rbx_qp_made(init, &qp->base);
	return qp;
}

void plain_qp_free(struct plain_qp *qp)
{
	for (uint32_t at = qp->completed_count; at != qp->arrived_count; at++)
		plain_half_forget(plain_work(qp, at));
	for (uint32_t at = qp->completed_count; at != qp->posted_count; at++)
		plain_flight(qp, at, -1);
	if (qp->peer)
		qp->peer->peer = NULL;
	if (qp->request)
		qp->request->qp = NULL;
	rbx_sim_cancel(&qp->arrives);
	rbx_sim_cancel(&qp->completes);
	rbx_sim_cancel(&qp->hears);
	rbx_sim_cancel(&qp->dreams);
	if (qp->next)
		qp->next->previous = qp->previous;
	if (qp->previous)
		qp->previous->next = qp->next;
	else
		plain_qps = qp->next;
	free(qp->works);
	free(qp->sges);
	free(qp->recvs);
	free(qp->recv_sges);
	free(qp);
}

void plain_disconnect(struct rbx_qp *qp)
{
	plain_fail((struct plain_qp *)qp);
}

void plain_destroy_qp(struct rbx_qp *base)
{
	struct plain_qp *qp = (struct plain_qp *)base;

	plain_fail(qp);
	plain_cq_forget(base->send_cq, base);
	plain_cq_forget(base->recv_cq, base);
	plain_qp_free(qp);
}

/* ---- The connecting side ---------------------------------------------------- */

static void request_release(struct plain_request *request)
{
	if (request->was_taken && !request->qp) {
		rbx_sim_cancel(&request->answers);
		free(request);
	}
}

static void answers(struct rbx_sim_event *event)
{
	struct plain_request *request =
		RBX_CONTAINER_OF(event, struct plain_request, answers);

	request->is_answered = true;
	rbx_sim_wake_all(&request->waiters);
}

static struct plain_listener *listener_at(uint32_t node, uint32_t port)
{
	struct plain_listener *listener = listeners;

	while (listener && (listener->node != node || listener->port != port))
		listener = listener->next;
	return listener;
}

static void request_queue(struct plain_listener *listener,
			  struct plain_request *request)
{
	request->base.listener = &listener->base;
	if (listener->last)
		listener->last->next = request;
	else
		listener->first = request;
	listener->last = request;
	rbx_sim_descriptor_raise(listener->base.event_fd, 1);
}

static int say(char *error, int err, const char *address, const char *why)
{
	if (error)
		snprintf(error, RBX_ERROR_TEXT_MAX, "cannot connect to %s: %s",
			 address, why);
	return err;
}

/* Sends the request and waits for the result. */
static int ask(struct plain_request *request, uint32_t from_node,
	       uint32_t node, uint32_t port, uint64_t until_ns)
{
	struct plain_listener *listener;

	rbx_sim_sleep(plain_way_ns());
	listener = listener_at(node, port);
	if (!plain_reaches(from_node, node) ||
	    rbx_sim_site_harms(RBX_SIM_SITE_connect_timeout, node,
			       RBX_PLAIN_FELT_NS)) {
		request->was_taken = true;
		(void)rbx_sim_pause(until_ns);
		return -ETIMEDOUT;
	}
	if (!listener || rbx_sim_site_harms(RBX_SIM_SITE_connect_refused, node,
					    RBX_PLAIN_FELT_NS)) {
		request->was_taken = true;
		rbx_sim_sleep(plain_way_ns());
		return -ECONNREFUSED;
	}
	if (rbx_sim_site(RBX_SIM_SITE_connect_rejected)) {
		request->was_taken = true;
		rbx_sim_sleep(plain_way_ns());
		return -EBUSY;
	}
	request_queue(listener, request);
	while (!request->is_answered)
		if (!rbx_sim_wait(&request->waiters, until_ns))
			return -ETIMEDOUT;
	return request->result;
}

static struct plain_request *request_make(struct plain_qp *qp,
					  const struct rbx_connect_init *connect)
{
	struct plain_request *request = calloc(1, sizeof(*request));

	if (!request)
		abort();
	request->qp = qp;
	qp->request = request;
	request->answers.run = answers;
	snprintf(request->base.peer_name, sizeof(request->base.peer_name),
		 "n%" PRIu32 ":%" PRIu32, qp->node, qp->number);
	if (connect->private_data_bytes != 0)
		memcpy(request->base.private_data, connect->private_data,
		       connect->private_data_bytes);
	request->base.private_data_bytes = RBX_CONNECT_DATA_MAX;
	return request;
}

int plain_connect(struct rbx_device *device, const struct rbx_qp_init *init,
		  struct rbx_connect_init *connect, struct rbx_qp **out,
		  char *error)
{
	uint64_t until_ns =
		rbx_sim_now() + (uint64_t)connect->timeout_ms * 1000000;
	struct plain_request *request;
	struct plain_qp *qp;
	uint32_t node, port;
	int err;

	if (sscanf(connect->address, "n%" SCNu32 ":%" SCNu32, &node, &port) !=
		    2 ||
	    node >= RBX_SIM_NODES_MAX)
		return say(error, -EINVAL, connect->address, "no address");
	qp = qp_make(device, init);
	snprintf(qp->base.peer_name, sizeof(qp->base.peer_name), "%s",
		 connect->address);
	request = request_make(qp, connect);
	err = ask(request, qp->node, node, port, until_ns);
	connect->reply_data_bytes = RBX_MIN(request->reply_bytes,
					    connect->reply_data_max_bytes);
	if (connect->reply_data)
		memcpy(connect->reply_data, request->reply,
		       connect->reply_data_bytes);
	qp->request = NULL;
	request->qp = NULL;
	request_release(request);
	if (err) {
		plain_destroy_qp(&qp->base);
		return say(error, err, connect->address, strerror(-err));
	}
	RBX_SIM_TRACE(qp->node, "connect", "qp", qp->number, "to", node);
	*out = &qp->base;
	return 0;
}

/* ---- The listening side ----------------------------------------------------- */

int plain_listen(struct rbx_device *device, const char *address,
		 struct rbx_listener **out, char *error)
{
	uint32_t node = ((struct plain_device *)device)->node, named, port = 0;
	struct plain_listener *listener;

	if (sscanf(address, "n%" SCNu32 ":%" SCNu32, &named, &port) != 2 ||
	    named != node)
		return say(error, -EINVAL, address, "not an address of ours");
	if (listener_at(node, port))
		return say(error, -EADDRINUSE, address, "it is taken");
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->node = node;
	listener->port = port ? port : ++last_port;
	listener->base.device = device;
	listener->base.event_fd = rbx_sim_descriptor_open();
	snprintf(listener->base.address, sizeof(listener->base.address),
		 "n%" PRIu32 ":%" PRIu32, node, listener->port);
	listener->next = listeners;
	listeners = listener;
	*out = &listener->base;
	return 0;
}

/* Requests that wait there are never answered. */
static void listener_free(struct plain_listener *listener)
{
	struct plain_listener **link = &listeners;
	struct plain_request *request, *next;

	for (request = listener->first; request; request = next) {
		next = request->next;
		request->was_taken = true;
		request_release(request);
	}
	while (*link != listener)
		link = &(*link)->next;
	*link = listener->next;
	free(listener);
}

void plain_close_listener(struct rbx_listener *listener)
{
	rbx_sim_descriptor_close(listener->event_fd);
	listener_free((struct plain_listener *)listener);
}

void plain_listeners_stop(uint32_t node)
{
	struct plain_listener *listener, *next;

	for (listener = listeners; listener; listener = next) {
		next = listener->next;
		if (listener->node == node)
			listener_free(listener);
	}
}

int plain_get_request(struct rbx_listener *base,
		      struct rbx_conn_request **out)
{
	struct plain_listener *listener = (struct plain_listener *)base;
	struct plain_request *request = listener->first;

	(void)rbx_sim_descriptor_take(base->event_fd);
	if (!request)
		return -EAGAIN;
	listener->first = request->next;
	if (!listener->first)
		listener->last = NULL;
	else
		rbx_sim_descriptor_raise(base->event_fd, 1);
	*out = &request->base;
	return 0;
}

static void answer(struct plain_request *request, int result, const void *data,
		   size_t bytes)
{
	request->was_taken = true;
	request->result = result;
	if (bytes != 0)
		memcpy(request->reply, data,
		       RBX_MIN(bytes, sizeof(request->reply)));
	request->reply_bytes = result ? RBX_REJECT_DATA_MAX :
					RBX_ACCEPT_DATA_MAX;
	if (request->qp)
		rbx_sim_after(&request->answers, plain_way_ns());
	request_release(request);
}

int plain_accept(struct rbx_conn_request *base, const struct rbx_qp_init *init,
		 const void *private_data, size_t private_data_bytes,
		 struct rbx_qp **out, char *error)
{
	struct plain_request *request = (struct plain_request *)base;
	struct plain_qp *other = request->qp;
	struct plain_qp *qp = qp_make(base->listener->device, init);

	(void)error;
	memcpy(qp->base.peer_name, base->peer_name, sizeof(base->peer_name));
	qp->state = PLAIN_CONNECTED;
	qp->is_accepted = true;
	if (other) {
		qp->peer = other;
		other->peer = qp;
		other->state = PLAIN_CONNECTED;
	}
	/* The connecting side has given up, or loses the connection before it knows. */
	if (!other || rbx_sim_site_harms(RBX_SIM_SITE_connect_cut, qp->node,
					 RBX_PLAIN_FELT_NS))
		rbx_sim_after(&qp->hears, plain_draw(0, 100000));
	answer(request, 0, private_data, private_data_bytes);
	*out = &qp->base;
	return 0;
}

void plain_reject(struct rbx_conn_request *base, const void *private_data,
		  size_t private_data_bytes)
{
	answer((struct plain_request *)base, -EBUSY, private_data,
	       private_data_bytes);
}
