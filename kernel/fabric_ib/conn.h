/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conn.h - one reliable connection by rdma_cm, from its first event to its last.
 *
 *	init -> resolve -> (the caller checks conn->id->device) -> connect
 *	     -> ... -> destroy
 *
 * The side that listens begins with a request of listen.h:
 *
 *	adopt -> accept -> ... -> destroy
 *
 * resolve(), connect(), accept(), drain() and destroy() block; the others do not. When
 * the connection ends, for whatever reason, ended() is called once, in a thread of the
 * connection manager; it must not block. destroy() ends the connection and its queue pair
 * and waits until every event is over. It may be called in any state.
 *
 * drain() ends the connection, posts a last work request on either side, and waits for
 * both. Queues complete in order, so when these have come back all others have. But a
 * device that fails or was removed may neither take a queue pair to error nor flush it.
 * So drain() waits no longer than it is told to, and returns whether all has come back.
 * If not, only destroying the queue pair ends the device's use of memory; until then the
 * memory must not be used. Somebody has to poll the completion queues meanwhile, with
 * room for one more completion on either side.
 *
 * Private data arrive with zeros behind them, up to the size of the connection manager's
 * message. The reader knows where they end (wire/attach.h).
 */
#ifndef RBX_KERNEL_CONN_H
#define RBX_KERNEL_CONN_H

#include <linux/completion.h>
#include <rdma/rdma_cm.h>

#include "core/port.h"

/* The private data that rdma_cm can carry: with a request, and with an acceptance or a
 * refusal. */
#define RBX_IB_CONNECT_DATA_MAX 56u
#define RBX_IB_ACCEPT_DATA_MAX 196u
#define RBX_IB_REJECT_DATA_MAX 148u

struct rbx_ib_request;

/* The last work request on one side of a queue pair. */
struct rbx_ib_last {
	struct ib_cqe cqe;
	struct completion back;
};

struct rbx_ib_conn {
	struct rdma_cm_id *id; /* NULL: nothing to destroy */
	void (*ended)(struct rbx_ib_conn *conn);
	bool is_up; /* atomic: from ESTABLISHED until it first ends */

	/* They live as long as the completion queues may refer to them. */
	struct rbx_ib_last last_send, last_receive;
	bool was_drained; /* drain() was called, which is done only once */

	/* The current step. */
	bool asks_route; /* atomic: it is rdma_resolve_route(), and has not ended */
	struct completion answered;
	int status; /* of the answer */
	uint8_t reply[RBX_IB_ACCEPT_DATA_MAX]; /* the peer's private data */
	size_t reply_bytes;
};

/* 0; -EHOSTUNREACH; -ENODEV: no RDMA device leads there; -ETIMEDOUT. */
int rbx_ib_conn_resolve(struct rbx_ib_conn *conn, struct net *net,
			struct sockaddr_storage *address,
			void (*ended)(struct rbx_ib_conn *conn),
			uint32_t timeout_ms);

/* Called after rdma_create_qp(). 0; -ECONNREFUSED: nobody listens; -EBUSY: rejected, with
 * the reason in reply if there is one (core/reject.h); -EHOSTUNREACH; -ETIMEDOUT. */
int rbx_ib_conn_connect(struct rbx_ib_conn *conn, const uint8_t *private_data,
			size_t private_data_bytes, uint32_t timeout_ms);

/* Makes a connection from the id of a peer's request, and takes the id. */
void rbx_ib_conn_adopt(struct rbx_ib_conn *conn, struct rdma_cm_id *id,
		       void (*ended)(struct rbx_ib_conn *conn));

/* Called after rdma_create_qp(). request: the one with this id. 0: it is up. -errno: the
 * request is refused: -ETIMEDOUT, or the peer has left. */
int rbx_ib_conn_accept(struct rbx_ib_conn *conn,
		       const struct rbx_ib_request *request,
		       const uint8_t *private_data, size_t private_data_bytes,
		       uint32_t timeout_ms);

/* Ends the connection: what is posted comes back flushed. Does not wait. */
void rbx_ib_conn_disconnect(struct rbx_ib_conn *conn);

/* The longest wait for a device, if nothing else sets a limit. */
#define RBX_IB_DRAIN_MS 1000u

/* Ends the connection and waits until all that was posted has come back. 0, or why it has
 * not, such as -ETIMEDOUT. Called once, when nobody posts any more. Blocks. */
int rbx_ib_conn_drain(struct rbx_ib_conn *conn, uint32_t timeout_ms);

/* Drains it, unless that was done, and frees it. Blocks. */
void rbx_ib_conn_destroy(struct rbx_ib_conn *conn);

/* Translates the status of a completion into ours. */
int32_t rbx_ib_status(enum ib_wc_status status);

#endif
