/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory server of the raw verbs peer.
 *
 * It registers its memory once, tells each client its address in the private data of the
 * acceptance, and sleeps: the device does reads and writes. Each client has a queue pair of
 * its own, which ends when the client leaves.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "verbs_peer.h"

struct server {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct ibv_mr *mr;
	struct ibv_cq *cq;	/* of all queue pairs; nothing ever completes here */
	void *memory;
	struct lent_memory lent;
};

static void client_leave(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

/* Accepts a client; if that fails the client gets no answer. */
static void client_accept(struct server *server, struct rdma_cm_id *id,
			  struct rdma_conn_param param)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = server->cq,
		.recv_cq = server->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	verbs_limit_reads(id, &param);
	param.private_data = &server->lent;
	param.private_data_len = sizeof(server->lent);
	if (rdma_create_qp(id, server->mr->pd, &attr) || rdma_accept(id, &param))
		client_leave(id);
}

static void serve_event(struct server *server)
{
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(server->events, &event))
		return;
	type = event->event;
	id = event->id;
	param = event->param.conn;
	/* An id can be destroyed only after its events were acknowledged. */
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		client_accept(server, id, param);
	else if (type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		client_leave(id);
}

static int listener_open(struct server *server, const struct peer_options *options)
{
	struct rdma_addrinfo *address;
	int err = verbs_address(options, RAI_PASSIVE, &address);

	if (err)
		return err;
	if (rdma_create_id(server->events, &server->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(server->listener, address->ai_src_addr))
		err = -errno;
	rdma_freeaddrinfo(address);
	if (err)
		return err;
	/* If it is bound to an address of no particular device, such as 0.0.0.0, it has no
	 * device. */
	return server->listener->verbs ? 0 : -ENODEV;
}

static int memory_lend(struct server *server, uint64_t size_bytes)
{
	if (posix_memalign(&server->memory, 4096, size_bytes))
		return -ENOMEM;
	memset(server->memory, 1, size_bytes);
	server->mr = ibv_reg_mr(server->listener->pd, server->memory, size_bytes,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE);
	if (!server->mr)
		return -errno;
	server->cq = ibv_create_cq(server->listener->verbs, 1, NULL, NULL, 0);
	if (!server->cq)
		return -errno;
	server->lent = (struct lent_memory){
		.address = (uintptr_t)server->memory,
		.size_bytes = size_bytes,
		.rkey = server->mr->rkey,
	};
	return rdma_listen(server->listener, 8) ? -errno : 0;
}

static void serve_until_stopped(struct server *server)
{
	struct pollfd event = { .fd = server->events->fd, .events = POLLIN };

	while (!peer_stop) {
		/* The limit covers a signal that arrives just before the call. */
		if (poll(&event, 1, PEER_WAIT_LIMIT_MS) > 0)
			serve_event(server);
	}
}

int peer_serve(const struct peer_options *options)
{
	/* The kernel takes all of it back when the process ends, even with clients. */
	static struct server server;
	int err;

	server.events = rdma_create_event_channel();
	if (!server.events)
		return -errno;
	err = listener_open(&server, options);
	if (!err)
		err = memory_lend(&server, options->memory_bytes);
	if (!err) {
		peer_print_ready(options->host, ntohs(rdma_get_src_port(server.listener)));
		serve_until_stopped(&server);
	}
	return err;
}
