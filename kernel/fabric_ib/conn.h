/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conn.h - one reliable connection by rdma_cm, from its first event to its last.
 *
 *	init -> resolve -> (the caller looks at conn->id->device) -> connect
 *	     -> ... -> destroy
 *
 * resolve() and connect() block; nothing else does but destroy(). An end,
 * whoever causes it, is told once by ended(), which runs in a thread of the
 * connection manager and must not block. destroy() ends the connection, waits
 * until every work request has come back and every event is over, and may follow
 * whatever went before; it needs somebody to poll the completion queues meanwhile.
 *
 * The private data travel in the frame of fabric/verbs/private_data.c: a byte for
 * their length, because some connection managers pad what they carry.
 */
#ifndef RBX_KERNEL_CONN_H
#define RBX_KERNEL_CONN_H

#include <linux/completion.h>
#include <rdma/rdma_cm.h>

#include "core/port.h"

#define RBX_IB_PRIVATE_DATA_MAX 48u

struct rbx_ib_conn {
	struct rdma_cm_id *id; /* NULL: nothing to destroy */
	void (*ended)(struct rbx_ib_conn *conn);
	bool is_up; /* atomic: from ESTABLISHED to the first end */

	/* The step under way. */
	struct completion answered;
	int status; /* of the answer */
	uint8_t reply[RBX_IB_PRIVATE_DATA_MAX]; /* the peer's private data */
	size_t reply_bytes;
};

/* 0; -EHOSTUNREACH, -ENODEV no RDMA device leads there; -ETIMEDOUT. */
int rbx_ib_conn_resolve(struct rbx_ib_conn *conn, struct net *net,
			struct sockaddr_storage *address,
			void (*ended)(struct rbx_ib_conn *conn),
			uint32_t timeout_ms);

/* After rdma_create_qp(). 0; -ECONNREFUSED, with the reason in reply;
 * -EHOSTUNREACH; -ETIMEDOUT; -EPROTO. */
int rbx_ib_conn_connect(struct rbx_ib_conn *conn, const uint8_t *private_data,
			size_t private_data_bytes, uint32_t timeout_ms);

/* Ends the connection: what is posted comes back flushed. Does not wait. */
void rbx_ib_conn_disconnect(struct rbx_ib_conn *conn);

void rbx_ib_conn_destroy(struct rbx_ib_conn *conn);

/* What a completion says, in our words. */
int32_t rbx_ib_status(enum ib_wc_status status);

#endif
