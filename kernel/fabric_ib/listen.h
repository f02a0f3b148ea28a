/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.h - the passive end: peers that ask to connect.
 *
 * The connection manager tells of a request in a thread of its own, which is not kept:
 * what is wanted of it is copied, and it waits in a list until the owner takes it. The
 * owner then makes a connection of it (rbx_ib_conn_adopt()) or rejects it.
 *
 * Anybody may ask, as often as they like. So the list is bounded, and whoever asks when
 * it is full is rejected at once, which peers take for "again" (core/reject.h). A request
 * that nobody takes is rejected after RBX_IB_WAITING_MS: no silent owner and no peer that
 * has left meanwhile keeps its place longer than that.
 *
 * Ownership. A request is the list's, then the owner's who took it. The listener may be
 * closed before that one is answered.
 */
#ifndef RBX_KERNEL_LISTEN_H
#define RBX_KERNEL_LISTEN_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

#include "kernel/fabric_ib/conn.h"

/* Requests that wait; each takes about 150 bytes, and what the stack has for it. */
#define RBX_IB_WAITING_MAX 128u
#define RBX_IB_WAITING_MS 5000u

struct rbx_ib_request {
	struct list_head link; /* of those that wait */
	struct rdma_cm_id *id; /* NULL: a connection has taken it */
	unsigned long until; /* it waits, in jiffies */
	bool has_left; /* atomic: the peer does not want any more */
	uint8_t responder_resources, initiator_depth; /* that the peer offers */
	uint8_t private_data[RBX_IB_CONNECT_DATA_MAX]; /* padding and all */
	size_t private_data_bytes;
};

struct rbx_ib_listener {
	struct rdma_cm_id *id; /* NULL: it does not listen */
	const struct ib_device *device; /* over which alone it hears */
	void (*asked)(struct rbx_ib_listener *listener);
	struct delayed_work reject_late;

	spinlock_t lock; /* guards the two below; process context */
	struct list_head waiting; /* the oldest first */
	uint32_t waiting_count;
};

/*
 * Listens on an address of a device; port 0 takes one that is free. asked() is called
 * when a request has begun to wait, in a thread of the connection manager, and must not
 * block. 0; -EADDRINUSE, -EADDRNOTAVAIL; -EXDEV it is an address of another device;
 * -ENOMEM. Blocks.
 */
int rbx_ib_listen(struct rbx_ib_listener *listener, struct net *net,
		  struct sockaddr_storage *address,
		  const struct ib_device *device,
		  void (*asked)(struct rbx_ib_listener *listener));

/* Rejects all that wait. When it returns asked() is not called any more. Blocks. */
void rbx_ib_listener_close(struct rbx_ib_listener *listener);

/* The oldest that waits, which is the caller's then; NULL: none does. Blocks. */
struct rbx_ib_request *rbx_ib_listener_take(struct rbx_ib_listener *listener);

/* Rejects a request, unless a connection has taken it, and frees it. Blocks. */
void rbx_ib_request_end(struct rbx_ib_request *request,
			const uint8_t *private_data, size_t private_data_bytes);

#endif
