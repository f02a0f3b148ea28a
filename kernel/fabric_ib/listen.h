/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.h - a listener: takes connection requests of peers.
 *
 * The connection manager reports a request in a thread that must not be blocked. So the
 * request is copied into a list, where it waits until the owner takes it. The owner makes
 * a connection from it (rbx_ib_conn_adopt()) or rejects it.
 *
 * Any peer may ask, as often as it likes. So the list is bounded. A request that finds
 * the list full is rejected at once, which peers take for "try again" (core/reject.h). A
 * request that is not taken is rejected after RBX_IB_WAITING_MS. So neither an owner that
 * does not answer nor a peer that has left keeps a place for longer.
 *
 * Ownership: a request belongs to the list, and then to the owner who took it. The
 * listener may be closed before that request is answered.
 */
#ifndef RBX_KERNEL_LISTEN_H
#define RBX_KERNEL_LISTEN_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

#include "kernel/fabric_ib/conn.h"

/* Requests that wait. Each takes about 150 bytes, and what the stack has for it. */
#define RBX_IB_WAITING_MAX 128u
#define RBX_IB_WAITING_MS 5000u

struct rbx_ib_request {
	struct list_head link; /* in the list of those that wait */
	struct rdma_cm_id *id; /* NULL: a connection has taken it */
	unsigned long until; /* when it is rejected, in jiffies */
	bool has_left; /* atomic: the peer has given up */
	uint8_t responder_resources, initiator_depth; /* as the peer offers */
	uint8_t private_data[RBX_IB_CONNECT_DATA_MAX]; /* with padding */
	size_t private_data_bytes;
};

struct rbx_ib_listener {
	struct rdma_cm_id *id; /* NULL: not listening */
	const struct ib_device *device; /* only requests over this device are taken */
	void (*asked)(struct rbx_ib_listener *listener);
	struct delayed_work reject_late;

	spinlock_t lock; /* guards the two below; process context */
	struct list_head waiting; /* the oldest first */
	uint32_t waiting_count;
};

/*
 * Listens on an address of a device. Port 0 takes a free port. asked() is called when a
 * request has been added to the list, in a thread of the connection manager, and must not
 * block. 0; -EADDRINUSE, -EADDRNOTAVAIL; -EXDEV: an address of another device; -ENOMEM.
 * Blocks.
 */
int rbx_ib_listen(struct rbx_ib_listener *listener, struct net *net,
		  struct sockaddr_storage *address,
		  const struct ib_device *device,
		  void (*asked)(struct rbx_ib_listener *listener));

/* Rejects all requests that wait. When it returns, asked() is not called any more.
 * Blocks. */
void rbx_ib_listener_close(struct rbx_ib_listener *listener);

/* Takes the oldest request, which then belongs to the caller. NULL: there is none.
 * Blocks. */
struct rbx_ib_request *rbx_ib_listener_take(struct rbx_ib_listener *listener);

/* Rejects a request, unless a connection has taken it, and frees it. Blocks. */
void rbx_ib_request_end(struct rbx_ib_request *request,
			const uint8_t *private_data, size_t private_data_bytes);

#endif
