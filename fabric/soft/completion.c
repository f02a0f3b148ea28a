/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * completion.c - the ring of completions, and how a thread polls or sleeps.
 *
 * The thread that finds a work request done puts its completion into the ring: the thread
 * that polls, the service thread, a posting thread (memcpy, flush) or a disconnecting one.
 * poll() takes them out. If there are none, it does the work of the device itself for the qps
 * that no other thread serves: it reads their sockets, which is where completions come from.
 *
 * The ring cannot overflow. A work request keeps its place in its queue until
 * a completion at or behind it has been polled, so a qp never has more
 * completions in the ring than places in its queues, and the ring has room
 * for the queues of all qps of the cq.
 *
 * Sleeping. event_fd is the epoll instance over the sockets of those qps and an eventfd.
 * Unread input keeps it readable whether armed or not. The look-ahead of a qp is always
 * processed to its end before a poll returns, so no input can hide there. Other threads that
 * put completions into an armed ring write the eventfd, once. Completions that the polling
 * thread found itself and returned from the same poll() need no event; those that it left in
 * the ring get one. So after arm() and an empty poll() everything that comes makes event_fd
 * readable.
 *
 * Completions of a destroyed qp stay in the ring as holes, which poll() skips.
 */
#include "completion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device.h"
#include "queue_pair.h"
#include "shared_receives.h"

static uint32_t ring_capacity(uint32_t count)
{
	uint32_t capacity = 64;

	while (capacity < count)
		capacity *= 2;
	return capacity;
}

int soft_create_cq(struct rbx_device *device, uint32_t depth_count,
		   struct rbx_cq **out, char *error)
{
	struct soft_cq *cq;
	int err = -ENOMEM;

	if (!depth_count || depth_count > SOFT_CQ_DEPTH_MAX) {
		soft_explain(error, "cannot create a cq of depth %u: "
			     "1 to 2^24 are possible", depth_count);
		return -EINVAL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto out_explain;
	cq->capacity_count = ring_capacity(depth_count);
	cq->ring = calloc(cq->capacity_count, sizeof(*cq->ring));
	if (!cq->ring)
		goto out_free;
	err = soft_qp_set_open(&cq->polled);
	if (err)
		goto out_free;
	cq->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (cq->wake_fd < 0) {
		err = -errno;
		goto out_set;
	}
	err = soft_qp_set_add_fd(&cq->polled, cq->wake_fd, SOFT_TOKEN_WAKE);
	if (err)
		goto out_wake;
	pthread_mutex_init(&cq->lock, NULL);
	cq->cq = (struct rbx_cq){
		.device = device,
		.event_fd = cq->polled.epoll_fd,
		.depth_count = depth_count,
	};
	*out = &cq->cq;
	return 0;

out_wake:
	close(cq->wake_fd);
out_set:
	soft_qp_set_close(&cq->polled);
out_free:
	free(cq->ring);
	free(cq);
out_explain:
	soft_explain(error, "cannot create a cq: %s; raise the limit of open "
		     "files or memory", strerror(-err));
	return err;
}

void soft_destroy_cq(struct rbx_cq *base)
{
	struct soft_cq *cq = soft_cq_of(base);

	close(cq->wake_fd);
	soft_qp_set_close(&cq->polled);
	pthread_mutex_destroy(&cq->lock);
	free(cq->ring);
	free(cq);
}

static struct soft_completion *ring_at(struct soft_cq *cq, uint32_t index)
{
	return &cq->ring[index & (cq->capacity_count - 1)];
}

int soft_cq_reserve(struct soft_cq *cq, uint32_t count)
{
	struct soft_completion *ring;
	uint32_t capacity, i;
	int err = 0;

	pthread_mutex_lock(&cq->lock);
	/* The ring may still have holes of destroyed qps: room for them. */
	capacity = ring_capacity(cq->reserved_count + count +
				 (cq->tail - cq->head));
	if (capacity > cq->capacity_count) {
		ring = calloc(capacity, sizeof(*ring));
		if (!ring) {
			err = -ENOMEM;
			goto out_unlock;
		}
		for (i = cq->head; i != cq->tail; i++)
			ring[i & (capacity - 1)] = *ring_at(cq, i);
		free(cq->ring);
		cq->ring = ring;
		cq->capacity_count = capacity;
	}
	cq->reserved_count += count;
out_unlock:
	pthread_mutex_unlock(&cq->lock);
	return err;
}

void soft_cq_unreserve(struct soft_cq *cq, uint32_t count)
{
	pthread_mutex_lock(&cq->lock);
	cq->reserved_count -= count;
	pthread_mutex_unlock(&cq->lock);
}

static void completion_forget(struct soft_qp *qp,
			      struct soft_completion *completion)
{
	if (completion->wc.qp != &qp->qp)
		return;
	completion->wc.qp = NULL;
	if (completion->receive && qp->srq)
		soft_srq_return(qp->srq, completion->frees);
}

void soft_cq_release(struct soft_cq *cq, struct soft_qp *qp, uint32_t count)
{
	uint32_t i;

	pthread_mutex_lock(&cq->lock);
	cq->reserved_count -= count;
	for (i = cq->head; i != cq->tail; i++)
		completion_forget(qp, ring_at(cq, i));
	pthread_mutex_unlock(&cq->lock);
}

static void cq_announce_locked(struct soft_cq *cq)
{
	eventfd_write(cq->wake_fd, 1);
	cq->announced = true;
	cq->armed = false;
}

void soft_cq_push(struct soft_cq *cq, const struct soft_completion *completion,
		  bool quiet)
{
	pthread_mutex_lock(&cq->lock);
	*ring_at(cq, cq->tail++) = *completion;
	if (cq->armed && !quiet)
		cq_announce_locked(cq);
	pthread_mutex_unlock(&cq->lock);
}

/* Only the polling thread changes it, which is the caller. */
static uint32_t send_freed(struct soft_qp *qp)
{
	return atomic_load_explicit(&qp->send_freed, memory_order_relaxed);
}

static int cq_pop(struct soft_cq *cq, struct rbx_wc *wcs, int max)
{
	struct soft_completion *completion;
	struct soft_qp *qp;
	int count = 0;

	pthread_mutex_lock(&cq->lock);
	while (count < max && cq->head != cq->tail) {
		completion = ring_at(cq, cq->head++);
		if (!completion->wc.qp)
			continue;
		qp = soft_qp_of(completion->wc.qp);
		if (!completion->receive)
			soft_overload_freed(&qp->device->overload,
					    completion->frees -
						    send_freed(qp));
		if (completion->receive && qp->srq)
			soft_srq_free(qp->srq, completion->frees);
		else /* Pairs with the acquire of the posting thread. */
			atomic_store_explicit(completion->receive ?
						      &qp->recv_freed :
						      &qp->send_freed,
					      completion->frees,
					      memory_order_release);
		wcs[count++] = completion->wc;
	}
	if (cq->armed && cq->head != cq->tail)
		cq_announce_locked(cq);
	pthread_mutex_unlock(&cq->lock);
	return count;
}

/*
 * Acknowledgements that are held back. If a poll brings a message to an owner that often
 * answers at once, its acknowledgement is sent with what the owner posts next, in one
 * sendmsg(), or with the next poll or arm at the latest. One qp of a cq at a time, so that
 * none is forgotten.
 */
static void release_held(struct soft_cq *cq)
{
	struct soft_qp *qp;

	if (!cq->holds)
		return;
	cq->holds = false;
	qp = soft_qp_set_get(&cq->polled, cq->holding);
	if (!qp)
		return; /* it was destroyed, and sent it then */
	soft_qp_send_held(qp);
	soft_qp_put(qp);
}

static void progress_and_put(struct soft_cq *cq, struct soft_qp *qp)
{
	soft_qp_progress(qp, cq);
	soft_qp_put(qp);
}

/* Reads the sockets of the qps that poll() has to serve. */
static void cq_progress(struct soft_cq *cq)
{
	uint32_t count = atomic_load_explicit(&cq->polled.count,
					      memory_order_relaxed);
	struct epoll_event events[SOFT_EVENTS_MAX];
	struct soft_qp *qp;
	uint32_t slot = 0;
	int n, i;

	if (!count)
		return;
	if (count <= SOFT_DIRECT_QPS) {
		while (count-- && (qp = soft_qp_set_next(&cq->polled, &slot)))
			progress_and_put(cq, qp);
		return;
	}
	n = epoll_wait(cq->cq.event_fd, events, SOFT_EVENTS_MAX, 0);
	for (i = 0; i < n; i++) {
		if (events[i].data.u64 == SOFT_TOKEN_WAKE)
			continue;
		qp = soft_qp_set_get(&cq->polled, events[i].data.u64);
		if (qp)
			progress_and_put(cq, qp);
	}
}

int soft_poll(struct rbx_cq *base, struct rbx_wc *wcs, int max)
{
	struct soft_cq *cq = soft_cq_of(base);
	int count;

	release_held(cq);
	count = cq_pop(cq, wcs, max);
	if (count && ++cq->polls_without_socket < SOFT_POLLS_WITHOUT_SOCKET)
		return count;
	cq->polls_without_socket = 0;
	cq_progress(cq);
	return count + cq_pop(cq, wcs + count, max - count);
}

int soft_arm(struct rbx_cq *base)
{
	struct soft_cq *cq = soft_cq_of(base);

	release_held(cq);
	pthread_mutex_lock(&cq->lock);
	cq->armed = true;
	pthread_mutex_unlock(&cq->lock);
	return 0;
}

void soft_consume_events(struct rbx_cq *base)
{
	struct soft_cq *cq = soft_cq_of(base);
	eventfd_t value;

	/* Nearly always a socket causes the wake-up. */
	pthread_mutex_lock(&cq->lock);
	if (cq->announced)
		eventfd_read(cq->wake_fd, &value);
	cq->announced = false;
	pthread_mutex_unlock(&cq->lock);
}
