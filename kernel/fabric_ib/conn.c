/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conn.c - see conn.h.
 *
 * rdma_cm answers each step by an event, and the thread that took the step waits
 * for it. Once the connection is up the events that remain are its end.
 */
#include "kernel/fabric_ib/conn.h"

/*
 * How long a device waits for an acknowledgement: 4.096 us << 15 = 134 ms, which
 * a device may stretch fourfold. With the first attempt and 6 retries a dead peer
 * is noticed after 0.9 to 3.8 s. A seventh is possible, but Soft-RoCE takes 7 for
 * "for ever".
 */
#define ACK_TIMEOUT 15
#define RETRY_COUNT 6
#define RECEIVE_NOT_READY_RETRY_COUNT 6 /* the most that is not for ever */

/*
 * The connection manager asks for the neighbour's hardware address, and only then
 * begins to listen for the answer. One that came meanwhile it finds when its time
 * is over, when it looks once more: so it is given little time, again and again.
 */
#define RESOLVE_MS 50

static void answer(struct rbx_ib_conn *conn, int status)
{
	conn->status = status;
	complete(&conn->answered);
}

/* Takes the private data of the peer out of their frame. */
static int reply_take(struct rbx_ib_conn *conn, const void *frame,
		      size_t frame_bytes)
{
	const uint8_t *bytes = frame;

	conn->reply_bytes = 0;
	if (!bytes || !frame_bytes)
		return 0;
	if (bytes[0] > RBX_IB_PRIVATE_DATA_MAX || bytes[0] > frame_bytes - 1)
		return -EPROTO;
	memcpy(conn->reply, bytes + 1, bytes[0]);
	conn->reply_bytes = bytes[0];
	return 0;
}

static int rejected(struct rbx_ib_conn *conn, struct rdma_cm_event *event)
{
	const void *data;
	u8 data_bytes = 0;

	data = rdma_consumer_reject_data(conn->id, event, &data_bytes);
	if (reply_take(conn, data, data_bytes))
		return -EPROTO;
	return -ECONNREFUSED;
}

static int handle(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rbx_ib_conn *conn = id->context;
	int err;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		answer(conn, 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		err = reply_take(conn, event->param.conn.private_data,
				 event->param.conn.private_data_len);
		if (!err)
			RBX_STORE_RELEASE(&conn->is_up, true);
		answer(conn, err);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		answer(conn, event->status == -ETIMEDOUT ||
					     event->status == -ENODEV ?
				     event->status :
				     -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_REJECTED:
		answer(conn, rejected(conn, event));
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: /* long ended */
		break;
	default: /* DISCONNECTED, DEVICE_REMOVAL */
		if (RBX_EXCHANGE(&conn->is_up, false))
			conn->ended(conn);
	}
	return 0; /* the id stays ours */
}

static int await(struct rbx_ib_conn *conn, uint32_t timeout_ms)
{
	unsigned long left = wait_for_completion_timeout(
		&conn->answered, msecs_to_jiffies(timeout_ms) + 1);

	return left ? conn->status : -ETIMEDOUT;
}

static int resolve_address(struct rbx_ib_conn *conn,
			   struct sockaddr_storage *address,
			   uint32_t timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	int err;

	do {
		reinit_completion(&conn->answered);
		err = rdma_resolve_addr(conn->id, NULL,
					(struct sockaddr *)address,
					min_t(uint32_t, timeout_ms, RESOLVE_MS));
		if (!err)
			err = await(conn, timeout_ms);
	} while (err == -ETIMEDOUT && time_before(jiffies, end));
	return err;
}

int rbx_ib_conn_resolve(struct rbx_ib_conn *conn, struct net *net,
			struct sockaddr_storage *address,
			void (*ended)(struct rbx_ib_conn *conn),
			uint32_t timeout_ms)
{
	int err;

	memset(conn, 0, sizeof(*conn));
	conn->ended = ended;
	init_completion(&conn->answered);
	conn->id = rdma_create_id(net, handle, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(conn->id)) {
		err = PTR_ERR(conn->id);
		conn->id = NULL;
		return err;
	}
	err = resolve_address(conn, address, timeout_ms);
	if (err)
		return err;
	/* Best effort: else it is that of the route, mostly longer. */
	(void)rdma_set_ack_timeout(conn->id, ACK_TIMEOUT);
	reinit_completion(&conn->answered);
	err = rdma_resolve_route(conn->id, timeout_ms);
	return err ? err : await(conn, timeout_ms);
}

int rbx_ib_conn_connect(struct rbx_ib_conn *conn, const uint8_t *private_data,
			size_t private_data_bytes, uint32_t timeout_ms)
{
	const struct ib_device_attr *attrs = &conn->id->device->attrs;
	uint8_t frame[1 + RBX_IB_PRIVATE_DATA_MAX];
	struct rdma_conn_param param = {
		.responder_resources = min_t(int, attrs->max_qp_rd_atom, U8_MAX),
		.initiator_depth = min_t(int, attrs->max_qp_init_rd_atom, U8_MAX),
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RECEIVE_NOT_READY_RETRY_COUNT,
		.private_data = frame,
		.private_data_len = (u8)(1 + private_data_bytes),
	};
	int err;

	RBX_ASSERT(private_data_bytes <= RBX_IB_PRIVATE_DATA_MAX);
	frame[0] = (uint8_t)private_data_bytes;
	memcpy(frame + 1, private_data, private_data_bytes);
	reinit_completion(&conn->answered);
	err = rdma_connect(conn->id, &param);
	return err ? err : await(conn, timeout_ms);
}

void rbx_ib_conn_disconnect(struct rbx_ib_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	WRITE_ONCE(conn->is_up, false);
	(void)ib_modify_qp(conn->id->qp, &attr, IB_QP_STATE);
	rdma_disconnect(conn->id); /* refused before there is a connection */
}

void rbx_ib_conn_destroy(struct rbx_ib_conn *conn)
{
	if (!conn->id)
		return;
	if (conn->id->qp) {
		rbx_ib_conn_disconnect(conn);
		ib_drain_qp(conn->id->qp);
		rdma_destroy_qp(conn->id);
	}
	rdma_destroy_id(conn->id);
	conn->id = NULL;
}

int32_t rbx_ib_status(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	case IB_WC_REM_ACCESS_ERR:
		return -EACCES;
	/* Soft-RoCE calls a wrong local key an operation error. */
	case IB_WC_LOC_PROT_ERR:
	case IB_WC_LOC_ACCESS_ERR:
	case IB_WC_LOC_QP_OP_ERR:
		return -EFAULT;
	case IB_WC_REM_ABORT_ERR:
		return -EHOSTUNREACH;
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IB_WC_RNR_RETRY_EXC_ERR:
		return -ENOBUFS;
	case IB_WC_LOC_LEN_ERR:
		return -EMSGSIZE;
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_BAD_RESP_ERR:
	case IB_WC_REM_OP_ERR:
	case IB_WC_REM_INV_RD_REQ_ERR:
		return -EREMOTEIO;
	default: /* our own device failed, or was asked for what we never ask */
		return -EIO;
	}
}
