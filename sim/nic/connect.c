/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* connect.c - see connect.h. */
#include "sim/nic/connect.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/nic/qp.h"
#include "sim/sites.h"

#define FIRST_PORT 40000u
/* By then it is known whether an unreachable server is given up. */
#define FELT_NS 10000000000u

/* What connect() and the other side share. */
struct conn {
	struct rbx_conn_request request; /* first: the acceptor's view */
	struct conn *next; /* at the listener */
	struct conn *next_of_all;
	uint32_t users_count; /* the connecting and the answering side */
	struct rbx_sim_event event; /* the request, then the answer arrives */
	struct rbx_nic_device *from;
	char address[RBX_NAME_MAX];
	struct rbx_nic_qp *qp; /* of the connecting side; NULL: it has given up */
	int fd; /* raised by the answer */
	int32_t status;
	uint8_t reply[RBX_ACCEPT_DATA_MAX];
	size_t reply_bytes;
};

struct listener {
	struct rbx_listener base;
	struct listener *next;
	uint32_t node;
	struct conn *first, *last;
};

static struct listener *listeners;
static struct conn *conns;
static uint32_t next_port;

void rbx_nic_connect_begin(void)
{
	RBX_ASSERT(!listeners);
	next_port = FIRST_PORT;
}

static struct listener *listener_of(struct rbx_listener *base)
{
	return RBX_CONTAINER_OF(base, struct listener, base);
}

static struct conn *conn_of(struct rbx_conn_request *request)
{
	return RBX_CONTAINER_OF(request, struct conn, request);
}

static struct listener *find_listener(const char *address)
{
	struct listener *listener = listeners;

	while (listener && strcmp(listener->base.address, address))
		listener = listener->next;
	return listener;
}

static int fail(int err, char *error, const char *address, const char *why)
{
	if (error)
		snprintf(error, RBX_ERROR_TEXT_MAX, "cannot connect to %s: %s",
			 address, why);
	return err;
}

static void put(struct conn *conn)
{
	struct conn **at = &conns;

	if (--conn->users_count != 0)
		return;
	while (*at != conn)
		at = &(*at)->next_of_all;
	*at = conn->next_of_all;
	free(conn);
}

/* The answer has passed the link: the waiting side goes on, or has given up. */
static void answer_arrives(struct rbx_sim_event *event)
{
	struct conn *conn = RBX_CONTAINER_OF(event, struct conn, event);

	if (conn->qp)
		rbx_nic_host()->raise_event(conn->fd);
	put(conn);
}

/* status: as the connecting side is told. If the message is lost, that side sees in the end
 * that its time is over. */
static void answer(struct conn *conn, int32_t status,
		   const struct rbx_nic_device *device)
{
	conn->status = status;
	conn->event.run = answer_arrives;
	if (device && !rbx_nic_reaches(device, conn->from))
		put(conn);
	else
		rbx_sim_after(&conn->event, conn->from->params->link_ns);
}

static void request_arrives(struct rbx_sim_event *event)
{
	struct conn *conn = RBX_CONTAINER_OF(event, struct conn, event);
	struct listener *listener = find_listener(conn->address);

	if (!listener || !conn->qp) {
		answer(conn, -ECONNREFUSED, NULL);
		return;
	}
	conn->request.listener = &listener->base;
	conn->next = NULL;
	if (listener->first)
		listener->last->next = conn;
	else
		listener->first = conn;
	listener->last = conn;
	rbx_nic_host()->raise_event(listener->base.event_fd);
}

static uint32_t node_of(const char *address)
{
	return (uint32_t)strtoul(address + 1, NULL, 10);
}

static void send_request(struct conn *conn)
{
	const struct listener *listener = find_listener(conn->address);

	if (rbx_sim_site_harms(RBX_SIM_SITE_connect_timeout,
			       node_of(conn->address), FELT_NS) ||
	    (listener && !rbx_nic_reaches(conn->from,
					  rbx_nic_device_of(
						  listener->base.device))))
		return;
	conn->users_count++;
	conn->event.run = request_arrives;
	rbx_sim_after(&conn->event, conn->from->params->link_ns);
}

static struct conn *new_conn(struct rbx_nic_device *device,
			     const struct rbx_connect_init *connect,
			     struct rbx_nic_qp *qp)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	RBX_ASSERT(connect->private_data_bytes <= RBX_CONNECT_DATA_MAX);
	conn->users_count = 1;
	conn->next_of_all = conns;
	conns = conn;
	conn->from = device;
	conn->qp = qp;
	conn->fd = rbx_nic_host()->open_event();
	snprintf(conn->address, sizeof(conn->address), "%s", connect->address);
	snprintf(conn->request.peer_name, sizeof(conn->request.peer_name),
		 "n%u", device->node);
	conn->request.same_host = node_of(connect->address) == device->node;
	conn->request.private_data_bytes = connect->private_data_bytes;
	if (connect->private_data_bytes)
		memcpy(conn->request.private_data, connect->private_data,
		       connect->private_data_bytes);
	return conn;
}

static void take_reply(const struct conn *conn,
		       struct rbx_connect_init *connect)
{
	connect->reply_data_bytes =
		RBX_MIN(conn->reply_bytes, connect->reply_data_max_bytes);
	if (connect->reply_data_bytes)
		memcpy(connect->reply_data, conn->reply,
		       connect->reply_data_bytes);
}

/* Waits for the answer. Takes the conn. */
static int finish(struct conn *conn, struct rbx_connect_init *connect,
		  char *error)
{
	bool answered;
	int32_t status;

	send_request(conn);
	answered = rbx_nic_host()->wait_event(
		conn->fd,
		rbx_sim_now() + (uint64_t)connect->timeout_ms * 1000000);
	status = answered ? conn->status : -ETIMEDOUT;
	if (answered)
		take_reply(conn, connect);
	rbx_nic_host()->close_event(conn->fd);
	conn->qp = NULL;
	put(conn);
	switch (status) {
	case 0:
		return 0;
	case -ECONNREFUSED:
	case -EBUSY:
		return fail(status, error, connect->address, "refused");
	default:
		return fail(status, error, connect->address, "no answer");
	}
}

int rbx_nic_connect(struct rbx_device *base, const struct rbx_qp_init *init,
		    struct rbx_connect_init *connect, struct rbx_qp **out,
		    char *error)
{
	struct rbx_nic_device *device = rbx_nic_device_of(base);
	struct rbx_nic_qp *qp;
	struct conn *conn;
	int err = rbx_nic_qp_create(device, init, &qp, error);

	if (err)
		return err;
	conn = new_conn(device, connect, qp);
	err = conn ? finish(conn, connect, error) : -ENOMEM;
	if (err) {
		rbx_nic_qp_destroy(&qp->base);
		return err;
	}
	snprintf(qp->base.peer_name, sizeof(qp->base.peer_name), "%s",
		 connect->address);
	*out = &qp->base;
	return 0;
}

int rbx_nic_listen(struct rbx_device *base, const char *address,
		   struct rbx_listener **out, char *error)
{
	struct rbx_nic_device *device = rbx_nic_device_of(base);
	const char *colon = strchr(address, ':');
	struct listener *listener;
	uint32_t port;

	if (*address != 'n' || !colon || node_of(address) != device->node) {
		if (error)
			snprintf(error, RBX_ERROR_TEXT_MAX,
				 "cannot listen on %s: n%u:PORT is wanted",
				 address, device->node);
		return -EADDRNOTAVAIL;
	}
	port = (uint32_t)strtoul(colon + 1, NULL, 10);
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->base.device = base;
	listener->node = device->node;
	snprintf(listener->base.address, sizeof(listener->base.address),
		 "n%u:%u", device->node, port ? port : next_port++);
	if (find_listener(listener->base.address)) {
		if (error)
			snprintf(error, RBX_ERROR_TEXT_MAX,
				 "cannot listen on %s: somebody does",
				 listener->base.address);
		free(listener);
		return -EADDRINUSE;
	}
	listener->base.event_fd = rbx_nic_host()->open_event();
	listener->next = listeners;
	listeners = listener;
	*out = &listener->base;
	return 0;
}

static struct conn *take_conn(struct listener *listener)
{
	struct conn *conn = listener->first;

	if (conn)
		listener->first = conn->next;
	return conn;
}

static void unlink_listener(struct listener *listener)
{
	struct listener **at = &listeners;

	while (*at != listener)
		at = &(*at)->next;
	*at = listener->next;
}

void rbx_nic_close_listener(struct rbx_listener *base)
{
	struct listener *listener = listener_of(base);
	struct conn *conn;

	unlink_listener(listener);
	while ((conn = take_conn(listener)))
		answer(conn, -ECONNREFUSED, rbx_nic_device_of(base->device));
	rbx_nic_host()->close_event(base->event_fd);
	free(listener);
}

/* A thread that waits on it will not go on. */
static void forget_waiting(uint32_t node)
{
	struct conn *conn = conns, *next;

	for (; conn; conn = next) {
		next = conn->next_of_all;
		if (conn->from->node == node && conn->qp) {
			conn->qp = NULL;
			put(conn);
		}
	}
}

void rbx_nic_connect_stop(uint32_t node)
{
	struct listener *listener = listeners, *next;
	struct conn *conn;

	for (; listener; listener = next) {
		next = listener->next;
		if (listener->node != node)
			continue;
		unlink_listener(listener);
		while ((conn = take_conn(listener)))
			put(conn);
		free(listener);
	}
	forget_waiting(node);
}

int rbx_nic_get_request(struct rbx_listener *base,
			struct rbx_conn_request **request)
{
	struct listener *listener = listener_of(base);
	struct conn *conn;

	rbx_nic_host()->lower_event(base->event_fd);
	while ((conn = take_conn(listener))) {
		if (conn->qp) {
			*request = &conn->request;
			return 0;
		}
		put(conn); /* its time was over */
	}
	return -EAGAIN;
}

static void set_reply(struct conn *conn, const void *data, size_t bytes)
{
	RBX_ASSERT(bytes <= RBX_ACCEPT_DATA_MAX);
	conn->reply_bytes = bytes;
	if (bytes)
		memcpy(conn->reply, data, bytes);
}

int rbx_nic_accept(struct rbx_conn_request *request,
		   const struct rbx_qp_init *init, const void *private_data,
		   size_t private_data_bytes, struct rbx_qp **out, char *error)
{
	struct conn *conn = conn_of(request);
	struct rbx_nic_device *device =
		rbx_nic_device_of(request->listener->device);
	bool refused = rbx_sim_site_harms(RBX_SIM_SITE_connect_refused,
					  device->node, FELT_NS);
	struct rbx_nic_qp *qp;
	int err = rbx_nic_qp_create(device, init, &qp, error);

	if (err || refused) {
		if (!err)
			rbx_nic_qp_destroy(&qp->base);
		answer(conn, -ECONNREFUSED, device);
		return err ? err : fail(-ECONNRESET, error, request->peer_name,
					"it has gone");
	}
	snprintf(qp->base.peer_name, sizeof(qp->base.peer_name), "%s",
		 request->peer_name);
	set_reply(conn, private_data, private_data_bytes);
	if (conn->qp)
		rbx_nic_qp_join(qp, conn->qp);
	if (!conn->qp || rbx_sim_site_harms(RBX_SIM_SITE_connect_cut,
					    device->node, FELT_NS)) {
		rbx_nic_qp_tell_peer(qp);
		rbx_sim_after(&qp->peer_gone, device->params->link_ns);
	}
	answer(conn, 0, device);
	*out = &qp->base;
	return 0;
}

void rbx_nic_reject(struct rbx_conn_request *request, const void *private_data,
		    size_t private_data_bytes)
{
	struct conn *conn = conn_of(request);

	set_reply(conn, private_data, private_data_bytes);
	answer(conn, -EBUSY,
	       rbx_nic_device_of(request->listener->device));
}
