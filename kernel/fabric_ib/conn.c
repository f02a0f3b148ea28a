/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conn.c - one reliable connection by rdma_cm, see conn.h.
 *
 * rdma_cm answers each step by an event. The thread that took the step waits for the
 * event. Once the connection is up, the remaining events are those of its end.
 */
#include "kernel/fabric_ib/conn.h"

#include "core/reject.h"
#include "core/retry.h"
#include "core/status.h"
#include "kernel/fabric_ib/listen.h"

/*
 * The connection manager asks for the neighbour's hardware address, and only then begins
 * to listen for the answer. If the answer came in between, it finds it only when its time
 * is over and it looks once more. So each try has a short time.
 */
#define RESOLVE_MS 50

static void answer(struct rbx_ib_conn *conn, int status)
{
	conn->status = status;
	complete(&conn->answered);
}

/* Copies the private data of the peer, with padding; NULL: none. */
static void reply_take(struct rbx_ib_conn *conn, const void *data,
		       size_t data_bytes)
{
	conn->reply_bytes = data ? min(data_bytes, sizeof(conn->reply)) : 0;
	if (conn->reply_bytes)
		memcpy(conn->reply, data, conn->reply_bytes);
}

static int rejected(struct rbx_ib_conn *conn, struct rdma_cm_event *event)
{
	const void *data;
	u8 data_bytes = 0;

	data = rdma_consumer_reject_data(conn->id, event, &data_bytes);
	reply_take(conn, data, data_bytes);
	return rbx_reject_errno(event->status);
}

static int why_not(const struct rdma_cm_event *event)
{
	return event->status == -ETIMEDOUT || event->status == -ENODEV ?
		       event->status :
		       -EHOSTUNREACH;
}

/* Ends the connection, or else the step that is running, if any. */
static void conn_ends(struct rbx_ib_conn *conn, int status)
{
	if (RBX_EXCHANGE(&conn->is_up, false))
		conn->ended(conn);
	else
		answer(conn, status);
}

/*
 * The device is removed while the route is being resolved. After this event the
 * connection manager uses the device once more. If the thread that resolves destroyed the
 * id as soon as it knew, the device could be freed too early. So the id is left to the
 * connection manager, which destroys it as the event handler returns an error. The thread
 * that resolves has nothing to destroy then.
 */
static bool leaves_id(struct rbx_ib_conn *conn)
{
	if (!RBX_EXCHANGE(&conn->asks_route, false))
		return false;
	conn->id = NULL;
	answer(conn, -ENODEV);
	return true;
}

static void route_answered(struct rbx_ib_conn *conn, int status)
{
	if (RBX_EXCHANGE(&conn->asks_route, false))
		answer(conn, status);
}

static int handle(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rbx_ib_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		answer(conn, 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route_answered(conn, 0);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		route_answered(conn, why_not(event));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		reply_take(conn, event->param.conn.private_data,
			   event->param.conn.private_data_len);
		RBX_STORE_RELEASE(&conn->is_up, true);
		answer(conn, 0);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		answer(conn, why_not(event));
		break;
	case RDMA_CM_EVENT_REJECTED:
		answer(conn, rejected(conn, event));
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: /* the connection ended long ago */
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (leaves_id(conn))
			return -ENODEV;
		conn_ends(conn, -ENODEV);
		break;
	default: /* DISCONNECTED, perhaps before its ESTABLISHED event */
		conn_ends(conn, -ECONNRESET);
	}
	return 0; /* we keep the id */
}

/* end: in jiffies. At least 1: 0 would be taken for 1. */
static unsigned long left_until(unsigned long end)
{
	long left = (long)(end - jiffies);

	return left > 0 ? (unsigned long)left : 1;
}

/*
 * As wait_for_completion_timeout(), but as a task that is idle. The time may be the peer timeout of
 * the user, and the kernel would say of another task that it hangs; or panic, if it is told to.
 */
static unsigned long wait_idle(struct completion *completion, unsigned long left)
{
	return (unsigned long)swait_event_idle_timeout_exclusive(
		completion->wait, try_wait_for_completion(completion), (long)left);
}

static int await(struct rbx_ib_conn *conn, unsigned long end)
{
	return wait_idle(&conn->answered, left_until(end)) ? conn->status : -ETIMEDOUT;
}

static int resolve_address(struct rbx_ib_conn *conn,
			   struct sockaddr_storage *address, unsigned long end)
{
	uint32_t left_ms;
	int err;

	do {
		left_ms = jiffies_to_msecs(left_until(end));
		reinit_completion(&conn->answered);
		err = rdma_resolve_addr(conn->id, NULL,
					(struct sockaddr *)address,
					min_t(uint32_t, left_ms, RESOLVE_MS));
		if (!err)
			err = await(conn, end);
	} while (err == -ETIMEDOUT && time_before(jiffies, end));
	return err;
}

/* The first of the two ends it, an event or the end of the time, and the other does
 * nothing. */
static int resolve_route(struct rbx_ib_conn *conn, unsigned long end)
{
	int err;

	reinit_completion(&conn->answered);
	rdma_lock_handler(conn->id); /* no event before asks_route is set */
	err = rdma_resolve_route(conn->id, jiffies_to_msecs(left_until(end)));
	RBX_STORE_RELEASE(&conn->asks_route, !err);
	rdma_unlock_handler(conn->id);
	if (err)
		return err;
	if (!wait_idle(&conn->answered, left_until(end))) {
		if (RBX_EXCHANGE(&conn->asks_route, false))
			return -ETIMEDOUT;
		wait_for_completion(&conn->answered); /* an event will complete it soon */
	}
	return conn->status;
}

static void conn_init(struct rbx_ib_conn *conn,
		      void (*ended)(struct rbx_ib_conn *conn))
{
	memset(conn, 0, sizeof(*conn));
	conn->ended = ended;
	init_completion(&conn->answered);
}

/* Best effort. If it fails, the timers are those of the route and of the connection
 * manager, which are mostly longer. */
static void set_timers(struct rbx_ib_conn *conn)
{
	(void)rdma_set_ack_timeout(conn->id, RBX_ACK_TIMEOUT);
	(void)rdma_set_min_rnr_timer(conn->id, RBX_RECEIVE_NOT_READY_TIMER);
}

int rbx_ib_conn_resolve(struct rbx_ib_conn *conn, struct net *net,
			struct sockaddr_storage *address,
			void (*ended)(struct rbx_ib_conn *conn),
			uint32_t timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms) + 1;
	int err;

	conn_init(conn, ended);
	conn->id = rdma_create_id(net, handle, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(conn->id)) {
		err = PTR_ERR(conn->id);
		conn->id = NULL;
		return err;
	}
	err = resolve_address(conn, address, end);
	if (err)
		return err;
	/* On iWARP, READs need rights at the reader's memory that we do not give. */
	if (rdma_protocol_iwarp(conn->id->device, conn->id->port_num))
		return -EOPNOTSUPP;
	set_timers(conn);
	return resolve_route(conn, end);
}

static struct rdma_conn_param param_of(const struct rbx_ib_conn *conn,
				       const uint8_t *private_data,
				       size_t private_data_bytes)
{
	const struct ib_device_attr *attrs = &conn->id->device->attrs;

	return (struct rdma_conn_param){
		.responder_resources = min_t(int, attrs->max_qp_rd_atom, U8_MAX),
		.initiator_depth = min_t(int, attrs->max_qp_init_rd_atom, U8_MAX),
		.retry_count = RBX_RETRY_COUNT,
		.rnr_retry_count = RBX_RECEIVE_NOT_READY_RETRY_COUNT,
		.private_data = private_data,
		.private_data_len = (u8)private_data_bytes,
	};
}

int rbx_ib_conn_connect(struct rbx_ib_conn *conn, const uint8_t *private_data,
			size_t private_data_bytes, uint32_t timeout_ms)
{
	struct rdma_conn_param param =
		param_of(conn, private_data, private_data_bytes);
	int err;

	RBX_ASSERT(private_data_bytes <= RBX_IB_CONNECT_DATA_MAX);
	reinit_completion(&conn->answered);
	err = rdma_connect(conn->id, &param);
	return err ? err :
		     await(conn, jiffies + msecs_to_jiffies(timeout_ms) + 1);
}

void rbx_ib_conn_adopt(struct rbx_ib_conn *conn, struct rdma_cm_id *id,
		       void (*ended)(struct rbx_ib_conn *conn))
{
	conn_init(conn, ended);
	conn->id = id;
	rdma_lock_handler(id);
	id->context = conn;
	id->event_handler = handle;
	rdma_unlock_handler(id);
	set_timers(conn);
}

int rbx_ib_conn_accept(struct rbx_ib_conn *conn,
		       const struct rbx_ib_request *request,
		       const uint8_t *private_data, size_t private_data_bytes,
		       uint32_t timeout_ms)
{
	struct rdma_conn_param param =
		param_of(conn, private_data, private_data_bytes);
	int err;

	RBX_ASSERT(private_data_bytes <= RBX_IB_ACCEPT_DATA_MAX);
	param.responder_resources = min(param.responder_resources,
					request->responder_resources);
	param.initiator_depth =
		min(param.initiator_depth, request->initiator_depth);
	/* What the peer does meanwhile, such as leaving, is an answer too. */
	rdma_lock_handler(conn->id);
	err = rdma_accept(conn->id, &param);
	rdma_unlock_handler(conn->id);
	return err ? err :
		     await(conn, jiffies + msecs_to_jiffies(timeout_ms) + 1);
}

void rbx_ib_conn_disconnect(struct rbx_ib_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	WRITE_ONCE(conn->is_up, false);
	/* rdma_disconnect() moves the queue pair to error at a time when the connection
	 * manager does not move it otherwise: some drivers cannot bear two moves. It
	 * fails if there is no connection yet. Then nobody else moves the queue pair. */
	rdma_disconnect(conn->id);
	(void)ib_modify_qp(conn->id->qp, &attr, IB_QP_STATE);
}

static void last_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct rbx_ib_last, cqe)->back);
}

static void last_init(struct rbx_ib_last *last)
{
	last->cqe.done = last_done;
	init_completion(&last->back);
}

/* Their status does not matter: when they come back, all before them have. */
static int lasts_post(struct rbx_ib_conn *conn)
{
	struct ib_recv_wr receive = { .wr_cqe = &conn->last_receive.cqe };
	struct ib_rdma_wr send = {
		.wr = {
			.wr_cqe = &conn->last_send.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int err;

	last_init(&conn->last_send);
	last_init(&conn->last_receive);
	err = ib_post_recv(conn->id->qp, &receive, NULL);
	return err ? err : ib_post_send(conn->id->qp, &send.wr, NULL);
}

int rbx_ib_conn_drain(struct rbx_ib_conn *conn, uint32_t timeout_ms)
{
	unsigned long left = msecs_to_jiffies(timeout_ms) + 1;
	int err;

	conn->was_drained = true;
	rbx_ib_conn_disconnect(conn);
	err = lasts_post(conn);
	if (err)
		return err;
	left = wait_idle(&conn->last_send.back, left);
	if (left)
		left = wait_idle(&conn->last_receive.back, left);
	return left ? 0 : -ETIMEDOUT;
}

void rbx_ib_conn_destroy(struct rbx_ib_conn *conn)
{
	if (!conn->id)
		return;
	if (conn->id->qp) {
		if (!conn->was_drained)
			(void)rbx_ib_conn_drain(conn, RBX_IB_DRAIN_MS);
		rdma_destroy_qp(conn->id);
	}
	rdma_destroy_id(conn->id);
	conn->id = NULL;
}

#define SAME_NUMBER(name, number, errno) \
	RBX_STATIC_ASSERT(IB_WC_##name == (number), "as the specification has it");
RBX_COMPLETION_STATUSES(SAME_NUMBER)

int32_t rbx_ib_status(enum ib_wc_status status)
{
	return rbx_status_of_completion((uint32_t)status);
}
