/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conn.h - one reliable connection by rdma_cm, from its first event to its last.
 *
 *	init -> resolve -> (the caller looks at conn->id->device) -> connect
 *	     -> ... -> destroy
 *
 * and of the other side, with a request of listen.h:
 *
 *	adopt -> accept -> ... -> destroy
 *
 * resolve(), connect() and accept() block; nothing else does but destroy(). An end,
 * whoever causes it, is told once by ended(), which runs in a thread of the
 * connection manager and must not block. destroy() ends the connection and its
 * queue pair and waits until every event is over; it may follow whatever went before.
 *
 * drain() ends the connection, posts a work request of its own behind all others on
 * either side, and waits for them: queues complete in order, so when these have
 * come back everything has. They may not: a device that fails, or was removed, may
 * neither take a queue pair to error nor flush it. So it waits as long as it is told
 * to, and says whether all has come back. If not, destroying the queue pair is what
 * ends the device's use of memory; until then nobody may have it. It needs somebody to
 * poll the completion queues meanwhile, with room for one more on either side.
 *
 * The private data arrive with zeros behind them, up to the size of the connection
 * manager's message; their reader knows where they end (wire/attach.h).
 */
#ifndef RBX_KERNEL_CONN_H
#define RBX_KERNEL_CONN_H

#include <linux/completion.h>
#include <rdma/rdma_cm.h>

#include "core/port.h"

/* Private data that rdma_cm carries: with a request, and back with an acceptance or a
 * refusal. */
#define RBX_IB_CONNECT_DATA_MAX 56u
#define RBX_IB_ACCEPT_DATA_MAX 196u
#define RBX_IB_REJECT_DATA_MAX 148u

struct rbx_ib_request;

/* Posted behind all others on one side of a queue pair. */
struct rbx_ib_last {
	struct ib_cqe cqe;
	struct completion back;
};

struct rbx_ib_conn {
	struct rdma_cm_id *id; /* NULL: nothing to destroy */
	void (*ended)(struct rbx_ib_conn *conn);
	bool is_up; /* atomic: from ESTABLISHED to the first end */

	/* They live as long as the completion queues may speak of them. */
	struct rbx_ib_last last_send, last_receive;
	bool was_drained; /* drain() was called; it is once */

	/* The step under way. */
	bool asks_route; /* atomic: that one, and nobody has ended it */
	struct completion answered;
	int status; /* of the answer */
	uint8_t reply[RBX_IB_ACCEPT_DATA_MAX]; /* the peer's private data */
	size_t reply_bytes;
};

/* 0; -EHOSTUNREACH, -ENODEV no RDMA device leads there; -ETIMEDOUT. */
int rbx_ib_conn_resolve(struct rbx_ib_conn *conn, struct net *net,
			struct sockaddr_storage *address,
			void (*ended)(struct rbx_ib_conn *conn),
			uint32_t timeout_ms);

/* After rdma_create_qp(). 0; -ECONNREFUSED: nobody listens; -EBUSY: rejected, with the
 * reason in reply if there is one (core/reject.h); -EHOSTUNREACH; -ETIMEDOUT. */
int rbx_ib_conn_connect(struct rbx_ib_conn *conn, const uint8_t *private_data,
			size_t private_data_bytes, uint32_t timeout_ms);

/* Makes one of the id of a peer that asks, and takes the id. */
void rbx_ib_conn_adopt(struct rbx_ib_conn *conn, struct rdma_cm_id *id,
		       void (*ended)(struct rbx_ib_conn *conn));

/* After rdma_create_qp(). request: that its id is of. 0, and it is up; or -errno, and
 * what was asked is refused: -ETIMEDOUT, or the peer has left. */
int rbx_ib_conn_accept(struct rbx_ib_conn *conn,
		       const struct rbx_ib_request *request,
		       const uint8_t *private_data, size_t private_data_bytes,
		       uint32_t timeout_ms);

/* Ends the connection: what is posted comes back flushed. Does not wait. */
void rbx_ib_conn_disconnect(struct rbx_ib_conn *conn);

/* The longest that anybody waits for a device, where nothing says how long. */
#define RBX_IB_DRAIN_MS 1000u

/* Ends it and waits until all that was posted has come back; 0, or why it has not,
 * such as -ETIMEDOUT. Once, and nobody posts any more. Blocks. */
int rbx_ib_conn_drain(struct rbx_ib_conn *conn, uint32_t timeout_ms);

/* Drains it, unless that was done, and frees it. Blocks. */
void rbx_ib_conn_destroy(struct rbx_ib_conn *conn);

/* What a completion says, in our words. */
int32_t rbx_ib_status(enum ib_wc_status status);

#endif
