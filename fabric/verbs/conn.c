/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conn.c - one connection of librdmacm, from its first event to its last.
 *
 * Normally: the connecting thread starts a step (resolve the address, the route, ask the
 * peer) and waits here until the connection thread brings the event that answers it.
 *
 * An end happens once, whatever its cause and however often it is reported (disconnect(), a
 * failed work request, an event of the peer or of the device): the queue pair goes to error,
 * which flushes all that is posted, and the peer is told. Nothing else is reported to the
 * user.
 *
 * Ownership: the id, and this object with it, belong to the connecting thread, then to the
 * queue pair. Destroying the id waits until the connection thread is done with its events, so
 * no thread uses a destroyed connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/retry.h"
#include "fabric/verbs/address.h"
#include "fabric/verbs/status.h"
#include "fabric/verbs/verbs.h"

static void conn_handle(struct rbx_verbs_cm_target *target,
			struct rdma_cm_event *event);

int rbx_verbs_conn_create(struct rbx_verbs_device *device,
			  struct rdma_cm_id *id, struct rbx_verbs_conn **created)
{
	struct rbx_verbs_conn *conn = calloc(1, sizeof(*conn));
	pthread_condattr_t attr;

	if (!conn)
		return -ENOMEM;
	conn->target.handle = conn_handle;
	conn->device = device;
	conn->id = id;
	id->context = &conn->target;
	atomic_init(&conn->ended, false);
	pthread_mutex_init(&conn->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&conn->changed, &attr);
	pthread_condattr_destroy(&attr);
	*created = conn;
	return 0;
}

void rbx_verbs_conn_destroy(struct rbx_verbs_conn *conn)
{
	rdma_destroy_id(conn->id);
	rbx_device_events_forget(&conn->device->events, &conn->end);
	pthread_cond_destroy(&conn->changed);
	pthread_mutex_destroy(&conn->lock);
	free(conn);
}

/*
 * Called at the end, and when the queue pair has become its user's; the later of these raises
 * the event. So an attempt that fails is reported only by its error, and an earlier end is
 * still reported. Each sets its flag under the lock before, so one of them finds both.
 */
static void end_tell_locked(struct rbx_verbs_conn *conn)
{
	if (conn->end.event.qp && conn->is_made && conn->is_over)
		rbx_device_events_raise(&conn->device->events, &conn->end);
}

static void move_to_error_locked(struct rbx_verbs_conn *conn)
{
	if (rbx_verbs_qp_make_fail(conn->qp))
		atomic_store(&conn->moved_ns, RBX_VERBS_MOVE_REFUSED);
	else if (!atomic_load(&conn->moved_ns))
		atomic_store(&conn->moved_ns, rbx_verbs_now_ns());
}

/*
 * Gives the connection its queue pair. If the connection has ended, the queue pair fails at
 * once.
 */
void rbx_verbs_conn_attach(struct rbx_verbs_conn *conn,
			   struct rbx_verbs_qp *qp, bool tells_end)
{
	struct rbx_verbs_device *device = conn->device;

	pthread_mutex_lock(&device->lock);
	LIST_INSERT_HEAD(&device->all_qps, qp, entry);
	pthread_mutex_lock(&conn->lock);
	conn->qp = qp->ibv;
	conn->end.event.kind = RBX_DEVICE_QP_ENDED;
	conn->end.event.qp = tells_end ? &qp->qp : NULL;
	if (atomic_load(&conn->ended))
		move_to_error_locked(conn);
	pthread_mutex_unlock(&conn->lock);
	pthread_mutex_unlock(&device->lock);
	/* The thread that fails a device ends what is in the list: it may have missed this one. */
	if (atomic_load(&device->has_failed))
		rbx_verbs_conn_end(conn);
}

/*
 * From RESET to RTS. The end may come meanwhile, by the connection thread, so the lock makes
 * it wait. A device or its driver may confuse two moves at a time, and then the queue pair
 * would be ready to receive after its end, with no thread to flush it. -ENOTCONN: the end has
 * come; else as rbx_verbs_qp_make_ready().
 */
int rbx_verbs_conn_make_ready(struct rbx_verbs_conn *conn,
			      const struct rdma_conn_param *param)
{
	int err = -ENOTCONN;

	pthread_mutex_lock(&conn->lock);
	if (!atomic_load(&conn->ended))
		err = rbx_verbs_qp_make_ready(
			conn, param, conn->device->device.caps.has_atomics);
	pthread_mutex_unlock(&conn->lock);
	return err;
}

/* Flushes what is posted, and what was posted just after the end. */
void rbx_verbs_conn_flush(struct rbx_verbs_conn *conn)
{
	pthread_mutex_lock(&conn->lock);
	if (conn->qp)
		move_to_error_locked(conn);
	pthread_mutex_unlock(&conn->lock);
}

/* The call that makes it is about to return it. */
void rbx_verbs_conn_made(struct rbx_verbs_conn *conn)
{
	pthread_mutex_lock(&conn->lock);
	conn->is_made = true;
	end_tell_locked(conn);
	pthread_mutex_unlock(&conn->lock);
}

void rbx_verbs_conn_end(struct rbx_verbs_conn *conn)
{
	if (atomic_exchange(&conn->ended, true))
		return;
	rbx_verbs_conn_flush(conn);
	pthread_mutex_lock(&conn->lock);
	conn->is_over = true;
	end_tell_locked(conn);
	pthread_mutex_unlock(&conn->lock);
	rdma_disconnect(conn->id); /* fails before there is a connection */
}

size_t rbx_verbs_private_data_take(const struct rdma_conn_param *param,
				   uint8_t *data, size_t max_bytes)
{
	size_t bytes = param->private_data ? param->private_data_len : 0;

	if (bytes > max_bytes)
		bytes = max_bytes;
	if (bytes)
		memcpy(data, param->private_data, bytes);
	return bytes;
}

/*
 * Takes an event as the answer to the step under way. The first one counts: after the peer
 * has accepted, it may have ended before we looked.
 */
static void conn_answer(struct rbx_verbs_conn *conn,
			const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	pthread_mutex_lock(&conn->lock);
	if (conn->answered)
		goto out_unlock;
	conn->answered = true;
	conn->event = event->event;
	conn->status = event->status;
	conn->param = *param;
	conn->param.private_data = NULL;
	conn->private_data_bytes = rbx_verbs_private_data_take(
		param, conn->private_data, sizeof(conn->private_data));
	pthread_cond_broadcast(&conn->changed);
out_unlock:
	pthread_mutex_unlock(&conn->lock);
}

static void conn_handle(struct rbx_verbs_cm_target *target,
			struct rdma_cm_event *event)
{
	struct rbx_verbs_conn *conn = (struct rbx_verbs_conn *)target;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		/*
		 * The accepting end may have ended before the peer confirmed; until now the
		 * connection manager could not tell the peer.
		 */
		if (atomic_load(&conn->ended))
			rdma_disconnect(conn->id);
		return;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: /* it ended long ago */
		return;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ADDR_ERROR: /* to be asked again */
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		conn_answer(conn, event);
		return;
	default: /* an error of a step, or the end */
		conn_answer(conn, event);
		rbx_verbs_conn_end(conn);
		if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			rbx_verbs_device_fail(conn->device);
	}
}

/* Called before a step is started: its answer is still to come. */
void rbx_verbs_conn_expect(struct rbx_verbs_conn *conn)
{
	pthread_mutex_lock(&conn->lock);
	conn->answered = false;
	pthread_mutex_unlock(&conn->lock);
}

/*
 * Waits for the answer. Returns 0; -ETIMEDOUT at the deadline (CLOCK_MONOTONIC); or the
 * result of the event, see rbx_verbs_cm_status().
 */
int rbx_verbs_conn_wait(struct rbx_verbs_conn *conn, uint64_t deadline_ns)
{
	const struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / 1000000000),
		.tv_nsec = (long)(deadline_ns % 1000000000),
	};
	int err = 0;

	pthread_mutex_lock(&conn->lock);
	while (!conn->answered && !err)
		err = pthread_cond_timedwait(&conn->changed, &conn->lock,
					     &deadline);
	err = conn->answered ? rbx_verbs_cm_status(conn->event, conn->status) :
			       -ETIMEDOUT;
	pthread_mutex_unlock(&conn->lock);
	return err;
}

/*
 * Limits what to ask of the peer, or to answer: as many reads at a time as it offers in
 * `param` (UINT8_MAX if it has offered nothing yet) and the device can do; and our own
 * retries, whatever the peer's are.
 */
void rbx_verbs_conn_limit_param(const struct rbx_verbs_device *device,
				struct rdma_conn_param *param)
{
	if (param->responder_resources > device->max_responder_resources)
		param->responder_resources = device->max_responder_resources;
	if (param->initiator_depth > device->max_initiator_depth)
		param->initiator_depth = device->max_initiator_depth;
	param->retry_count = RBX_RETRY_COUNT;
	param->rnr_retry_count = RBX_RECEIVE_NOT_READY_RETRY_COUNT;
	param->flow_control = 0;
	param->srq = 0;
}

/* Best effort: an old kernel keeps the timeout of the route, which is mostly longer. */
void rbx_verbs_conn_set_ack_timeout(struct rdma_cm_id *id)
{
	uint8_t timeout = RBX_ACK_TIMEOUT;

	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			&timeout, sizeof(timeout));
}

void rbx_verbs_conn_name_peer(struct rdma_cm_id *id, char *name)
{
	rbx_verbs_address_format(rdma_get_peer_addr(id), name);
}
