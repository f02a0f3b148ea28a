/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.c - the unsolicited events of the device, and the failure of a device.
 *
 * The connection thread reads the asynchronous events of libibverbs. They come from a
 * descriptor that all devices of this process on the same NIC share, so the thread that reads
 * one tells all of them. A program that shares the NIC's context, by a native queue pair,
 * must not read that descriptor.
 *
 * If the device puts a queue pair into error, its connection has ended. If a device fails, or
 * is removed, all its connections have ended. The device flushes what was posted on them if
 * it still can. If it cannot (its driver has left, or it refuses to move the queue pair to
 * error), poll() does it: at once if the move was refused, else when the device has reported
 * nothing for FLUSH_GRACE_MS after the move. Before the move a queue pair may still carry out
 * what is posted, so it must not be reported as ended. What the device reports of it later is
 * dropped.
 */
#include <errno.h>
#include <fcntl.h>

#include "fabric/verbs/verbs.h"

/* For one call; what is left keeps the descriptor readable. */
#define EVENTS_MAX 32

#define FLUSH_GRACE_MS 100

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, rbx_verbs_device) devices = LIST_HEAD_INITIALIZER(devices);

void rbx_verbs_events_watch(struct rbx_verbs_device *device)
{
	const int fd = device->verbs->async_fd;

	pthread_mutex_init(&device->lock, NULL);
	device->failed.event.kind = RBX_DEVICE_FAILED;
	device->port_down.event.kind = RBX_DEVICE_PORT_DOWN;
	device->port_up.event.kind = RBX_DEVICE_PORT_UP;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	pthread_mutex_lock(&devices_lock);
	LIST_INSERT_HEAD(&devices, device, entry);
	pthread_mutex_unlock(&devices_lock);
}

void rbx_verbs_events_unwatch(struct rbx_verbs_device *device)
{
	pthread_mutex_lock(&devices_lock);
	LIST_REMOVE(device, entry);
	pthread_mutex_unlock(&devices_lock);
	pthread_mutex_destroy(&device->lock);
}

int rbx_verbs_get_event(struct rbx_device *device,
			struct rbx_device_event *event)
{
	return rbx_device_events_take(&rbx_verbs_device(device)->events, event);
}

/* ---- Ends -----------------------------------------------------------------------*/

void rbx_verbs_device_fail(struct rbx_verbs_device *device)
{
	struct rbx_verbs_qp *qp;

	if (atomic_exchange(&device->has_failed, true))
		return;
	rbx_device_events_raise(&device->events, &device->failed);
	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(qp, &device->all_qps, entry)
		rbx_verbs_conn_end(qp->conn);
	pthread_mutex_unlock(&device->lock);
}

static void qp_fail(struct rbx_verbs_device *device, const struct ibv_qp *ibv)
{
	struct rbx_verbs_qp *qp;

	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(qp, &device->all_qps, entry)
		if (qp->ibv == ibv)
			rbx_verbs_conn_end(qp->conn);
	pthread_mutex_unlock(&device->lock);
}

static void srq_is_low(struct rbx_verbs_device *device, const struct ibv_srq *ibv)
{
	struct rbx_verbs_srq *srq;

	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(srq, &device->srqs, entry)
		if (srq->ibv == ibv)
			rbx_device_events_raise(&device->events, &srq->low);
	pthread_mutex_unlock(&device->lock);
}

static void srq_fail(struct rbx_verbs_device *device, const struct ibv_srq *ibv)
{
	struct rbx_verbs_qp *qp;

	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(qp, &device->all_qps, entry)
		if (qp->srq && qp->srq->ibv == ibv)
			rbx_verbs_conn_end(qp->conn);
	pthread_mutex_unlock(&device->lock);
}

static int ring_flush(struct rbx_verbs_qp *qp, struct rbx_verbs_wr_ring *ring,
		      struct rbx_wc *wcs, int max)
{
	/* Acquire: to see what was noted of it. */
	uint64_t posted = atomic_load_explicit(&ring->posted,
					       memory_order_acquire);
	int count = 0;

	for (; count < max && ring->completed != posted; count++)
		wcs[count] = (struct rbx_wc){
			.wr_id = rbx_verbs_wr_ring_complete(ring,
							    ring->completed),
			.qp = &qp->qp,
			.status = -ECANCELED,
		};
	return count;
}

/* Whether the device will neither carry out more of it nor flush it. */
static bool is_over(const struct rbx_verbs_qp *qp, uint64_t now_ns)
{
	uint64_t moved_ns = atomic_load(&qp->conn->moved_ns);

	if (!moved_ns)
		return false;
	return moved_ns == RBX_VERBS_MOVE_REFUSED ||
	       (now_ns > moved_ns &&
		now_ns - moved_ns >= FLUSH_GRACE_MS * 1000000ull);
}

int rbx_verbs_failed_flush(struct rbx_verbs_cq *cq, struct rbx_wc *wcs, int max)
{
	struct rbx_verbs_device *device = rbx_verbs_device(cq->cq.device);
	const uint64_t now_ns = rbx_verbs_now_ns();
	struct rbx_verbs_qp *qp;
	int count = 0;

	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(qp, &device->all_qps, entry) {
		if (qp->is_native || !is_over(qp, now_ns))
			continue;
		if (qp->qp.send_cq == &cq->cq)
			count += ring_flush(qp, &qp->sends, wcs + count,
					    max - count);
		if (qp->qp.recv_cq == &cq->cq)
			count += ring_flush(qp, &qp->recvs, wcs + count,
					    max - count);
	}
	pthread_mutex_unlock(&device->lock);
	return count;
}

/* ---- Events ---------------------------------------------------------------------*/

static void event_tell(struct rbx_verbs_device *device,
		       const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		rbx_verbs_device_fail(device);
		return;
	case IBV_EVENT_PORT_ERR:
		if (event->element.port_num == device->port)
			rbx_device_events_raise(&device->events,
						&device->port_down);
		return;
	case IBV_EVENT_PORT_ACTIVE:
		if (event->element.port_num == device->port)
			rbx_device_events_raise(&device->events,
						&device->port_up);
		return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		/* The destruction of the queue pair waits until the event is acknowledged. */
		qp_fail(device, event->element.qp);
		return;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		srq_is_low(device, event->element.srq);
		return;
	case IBV_EVENT_SRQ_ERR:
		srq_fail(device, event->element.srq);
		return;
	default: /* path migration, management: nothing that we use */
		return;
	}
}

static void event_tell_all(const struct ibv_context *verbs,
			   const struct ibv_async_event *event)
{
	struct rbx_verbs_device *device;

	pthread_mutex_lock(&devices_lock);
	LIST_FOREACH(device, &devices, entry)
		if (device->verbs == verbs)
			event_tell(device, event);
	pthread_mutex_unlock(&devices_lock);
}

bool rbx_verbs_events_hear(struct rbx_verbs_device *device)
{
	struct ibv_async_event event;
	int count;

	for (count = 0; count < EVENTS_MAX; count++) {
		if (ibv_get_async_event(device->verbs, &event)) {
			if (errno == EAGAIN || errno == EINTR)
				return true;
			/* Its driver has left. */
			rbx_verbs_device_fail(device);
			return false;
		}
		event_tell_all(device->verbs, &event);
		ibv_ack_async_event(&event);
	}
	return true;
}
