/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_receives.c - shared receive queues, and the credit for them.
 *
 * A message needs a receive before it is sent; otherwise all that comes behind it in the
 * stream would have to wait. A receive that many peers may take cannot be credit for each of
 * them. So here a peer asks for credit: it says up to which message it wants to send. It is
 * promised as many receives as there are. For the rest it waits in line, and gets one per
 * turn while others wait too. A promised receive is taken soon, because the message is there.
 * It costs the first message of a batch a round trip.
 *
 * A peer may keep what it was promised as long as no other peer has to wait long for it. If
 * another has waited for SOFT_PROMISE_MS, the service thread cuts off some peers: each that
 * has kept a part of its promised receives for that time while others waited, and whose
 * connection has moved less than SOFT_PROMISE_BYTES in it. It makes no difference whether
 * such a peer sends nothing, sends a message byte by byte, or does not read that it was
 * promised anything: the waiting peers cannot tell, and their messages fail after
 * SOFT_RECEIVER_WAIT_MS.
 *
 * The payload that a connection moves counts, in both directions; headers do not, because
 * they need no right to anything. A message takes longer than a second if it is long and the
 * network slow, and the promise comes behind the answers to READs. So a peer that always
 * moves enough data can keep receives from others; the length of a message is its only bound.
 * What this side has left undone does not count against any peer (deadlines.c).
 *
 * A receive keeps its place until its completion is polled. If the qp is destroyed before
 * that, the completion is forgotten and the receive is posted once more. If a qp fails, the
 * receives that it was promised go to peers that wait. As that happens with its lock held,
 * the service thread does it (soft_srqs_serve()).
 *
 * The lock is taken with that of a qp or of the cq held. Under it only that of the device's
 * events is taken.
 */
#include "shared_receives.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "completion.h"
#include "deadlines.h"
#include "output.h"
#include "queue_pair.h"
#include "receive_queue.h"

/* ---- Making one ----------------------------------------------------------------- */

static void srq_free(struct soft_srq *srq)
{
	pthread_mutex_destroy(&srq->lock);
	free(srq->places);
	free(srq->pieces);
	free(srq);
}

static struct soft_srq *srq_allocate(const struct rbx_srq_init *init)
{
	struct soft_srq *srq = calloc(1, sizeof(*srq));
	uint32_t i;

	if (!srq)
		return NULL;
	pthread_mutex_init(&srq->lock, NULL);
	TAILQ_INIT(&srq->waiting);
	srq->max_sge = init->max_sge ? init->max_sge : 1;
	srq->places = calloc(init->depth_count, sizeof(*srq->places));
	srq->pieces = calloc((size_t)init->depth_count * srq->max_sge,
			     sizeof(*srq->pieces));
	if (!srq->places || !srq->pieces) {
		srq_free(srq);
		return NULL;
	}
	for (i = 0; i < init->depth_count; i++)
		srq->places[i].next = i + 1 < init->depth_count ? i + 1 :
								  SOFT_SRQ_NONE;
	srq->posted_first = srq->posted_last = SOFT_SRQ_NONE;
	return srq;
}

int soft_create_srq(struct rbx_device *base, const struct rbx_srq_init *init,
		    struct rbx_srq **out, char *error)
{
	struct soft_device *device = soft_device_of(base);
	struct soft_srq *srq;

	if (!init->cq || !init->depth_count ||
	    init->depth_count > SOFT_RECV_DEPTH_MAX ||
	    init->max_sge > SOFT_SGE_MAX) {
		soft_explain(error, "cannot create a shared receive queue: a cq, "
			     "depth 1 to %u and %u sges are possible",
			     SOFT_RECV_DEPTH_MAX, SOFT_SGE_MAX);
		return -EINVAL;
	}
	srq = srq_allocate(init);
	if (srq && soft_cq_reserve(soft_cq_of(init->cq), init->depth_count)) {
		srq_free(srq);
		srq = NULL;
	}
	if (!srq) {
		soft_explain(error, "cannot create a shared receive queue: no "
			     "memory; ask for a smaller one");
		return -ENOMEM;
	}
	srq->srq.device = base;
	srq->srq.user = init->user;
	srq->srq.depth_count = init->depth_count;
	srq->device = device;
	srq->cq = soft_cq_of(init->cq);
	srq->domain = soft_domain_of(&device->keys, init->domain);
	srq->low.event.kind = RBX_DEVICE_SRQ_LOW;
	srq->low.event.srq = &srq->srq;
	pthread_mutex_lock(&device->lock);
	LIST_INSERT_HEAD(&device->srqs, srq, entry);
	pthread_mutex_unlock(&device->lock);
	*out = &srq->srq;
	return 0;
}

void soft_destroy_srq(struct rbx_srq *base)
{
	struct soft_srq *srq = soft_srq_of(base);

	pthread_mutex_lock(&srq->device->lock);
	LIST_REMOVE(srq, entry);
	pthread_mutex_unlock(&srq->device->lock);
	rbx_device_events_forget(&srq->device->events, &srq->low);
	soft_cq_unreserve(srq->cq, base->depth_count);
	srq_free(srq);
}

/* ---- Receives -------------------------------------------------------------------*/

static void posted_add_locked(struct soft_srq *srq, uint32_t place)
{
	srq->places[place].next = SOFT_SRQ_NONE;
	if (srq->posted_first == SOFT_SRQ_NONE)
		srq->posted_first = place;
	else
		srq->places[srq->posted_last].next = place;
	srq->posted_last = place;
	srq->posted_count++;
}

static int srq_add_locked(struct soft_srq *srq, const struct rbx_recv_wr *wr)
{
	uint32_t place = srq->free_first;
	int err;

	if (wr->sge_count > srq->max_sge)
		return -EINVAL;
	if (place == SOFT_SRQ_NONE)
		return -ENOMEM;
	err = soft_receive_pieces(&srq->device->keys, srq->domain, wr,
				  &srq->pieces[(size_t)place * srq->max_sge],
				  &srq->places[place].length_bytes);
	if (err)
		return err;
	srq->free_first = srq->places[place].next;
	srq->places[place].wr_id = wr->wr_id;
	posted_add_locked(srq, place);
	return 0;
}

static bool has_unpromised_locked(const struct soft_srq *srq)
{
	return srq->posted_count > srq->reserved_count;
}

/*
 * The service thread sleeps without a deadline if it has seen that no peer waits. That may
 * have been only for a moment: srq_serve(), in a thread of the program, takes a peer out of
 * the line for its turn and puts it back. So the thread that raises the count from 0 wakes
 * it.
 */
static void waiting_add_locked(struct soft_srq *srq, struct soft_qp *qp)
{
	if (qp->waits_for_receive)
		return;
	TAILQ_INSERT_TAIL(&srq->waiting, qp, waiting_entry);
	qp->waits_for_receive = true;
	qp->waiting_since_ns = soft_now_ns();
	if (!atomic_fetch_add_explicit(&srq->device->srq_waiting_count, 1,
				       memory_order_relaxed))
		soft_service_wake(srq->device);
}

static void waiting_remove_locked(struct soft_srq *srq, struct soft_qp *qp)
{
	if (!qp->waits_for_receive)
		return;
	TAILQ_REMOVE(&srq->waiting, qp, waiting_entry);
	qp->waits_for_receive = false;
	atomic_fetch_sub_explicit(&srq->device->srq_waiting_count, 1,
				  memory_order_relaxed);
}

static uint32_t promise_size_locked(const struct soft_srq *srq, uint32_t wanted)
{
	uint32_t count = srq->posted_count - srq->reserved_count;

	if (count && !TAILQ_EMPTY(&srq->waiting))
		count = 1;
	return count < wanted ? count : wanted;
}

/* As many as it wants and there are; but one per turn while others wait. */
static void promise(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;
	uint32_t wanted = qp->recv_wanted - qp->recv_posted;
	uint32_t count;

	pthread_mutex_lock(&srq->lock);
	count = promise_size_locked(srq, wanted);
	srq->reserved_count += count;
	qp->recv_posted += count;
	if (count < wanted)
		waiting_add_locked(srq, qp);
	pthread_mutex_unlock(&srq->lock);
}

/* The first peer that waits, with a reference, if there is a receive for it. */
static struct soft_qp *waiting_take(struct soft_srq *srq)
{
	struct soft_qp *qp = NULL;

	pthread_mutex_lock(&srq->lock);
	if (has_unpromised_locked(srq))
		qp = TAILQ_FIRST(&srq->waiting);
	if (qp) {
		waiting_remove_locked(srq, qp);
		soft_qp_hold(qp);
	}
	pthread_mutex_unlock(&srq->lock);
	return qp;
}

/* Each pass promises a receive, or removes a qp that has left the line for good. */
static void srq_serve(struct soft_srq *srq)
{
	struct soft_qp *qp;

	while ((qp = waiting_take(srq))) {
		soft_qp_lock(qp);
		if (qp->state == SOFT_QP_CONNECTED) {
			promise(qp);
			if (!qp->output_blocked)
				soft_output_flush(qp);
		}
		soft_qp_unlock(qp);
		soft_qp_put(qp);
	}
}

void soft_srqs_serve(struct soft_device *device)
{
	struct soft_srq *srq;

	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(srq, &device->srqs, entry)
		srq_serve(srq);
	pthread_mutex_unlock(&device->lock);
}

int soft_post_srq_recv(struct rbx_srq *base, struct rbx_recv_wr *first,
		       struct rbx_recv_wr **bad)
{
	struct soft_srq *srq = soft_srq_of(base);
	struct rbx_recv_wr *wr;
	int err = 0;

	pthread_mutex_lock(&srq->lock);
	for (wr = first; wr; wr = wr->next) {
		err = srq_add_locked(srq, wr);
		if (err)
			break;
	}
	pthread_mutex_unlock(&srq->lock);
	srq_serve(srq);
	if (err && bad)
		*bad = wr;
	return err;
}

static void limit_check_locked(struct soft_srq *srq)
{
	if (srq->posted_count >= srq->limit_count)
		return;
	srq->limit_count = 0;
	rbx_device_events_raise(&srq->device->events, &srq->low);
}

void soft_set_srq_limit(struct rbx_srq *base, uint32_t limit_count)
{
	struct soft_srq *srq = soft_srq_of(base);

	pthread_mutex_lock(&srq->lock);
	srq->limit_count = limit_count;
	limit_check_locked(srq);
	pthread_mutex_unlock(&srq->lock);
}

void soft_srq_free(struct soft_srq *srq, uint32_t place)
{
	pthread_mutex_lock(&srq->lock);
	srq->places[place].next = srq->free_first;
	srq->free_first = place;
	pthread_mutex_unlock(&srq->lock);
}

static void serve_soon(struct soft_device *device)
{
	atomic_store(&device->srqs_due, true);
	soft_service_wake(device);
}

void soft_srq_return(struct soft_srq *srq, uint32_t place)
{
	pthread_mutex_lock(&srq->lock);
	srq->places[place].next = srq->posted_first;
	if (srq->posted_first == SOFT_SRQ_NONE)
		srq->posted_last = place;
	srq->posted_first = place;
	srq->posted_count++;
	pthread_mutex_unlock(&srq->lock);
	serve_soon(srq->device);
}

/* ---- Queue pairs ----------------------------------------------------------------*/

/* The service thread checks deadlines for peers that wait: others may keep receives from them. */
static void wait_in_line(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;

	pthread_mutex_lock(&srq->lock);
	waiting_add_locked(srq, qp);
	pthread_mutex_unlock(&srq->lock);
	serve_soon(srq->device);
}

/* Whether another peer waits, and has done so since before this time. */
static bool others_wait(const struct soft_qp *qp, uint64_t before_ns)
{
	struct soft_srq *srq = qp->srq;
	const struct soft_qp *first;
	bool wait;

	pthread_mutex_lock(&srq->lock);
	first = TAILQ_FIRST(&srq->waiting);
	if (first == qp)
		first = TAILQ_NEXT(first, waiting_entry);
	wait = first && first->waiting_since_ns < before_ns;
	pthread_mutex_unlock(&srq->lock);
	return wait;
}

const char *soft_srq_ask(struct soft_qp *qp, uint32_t wanted)
{
	/* At least one more than have come, and not more than it can have posted. */
	if (wanted - qp->recv_done - 1 >= qp->peer_depth_count)
		return "asks for more receives than its queue is deep";
	if ((int32_t)(wanted - qp->recv_wanted) <= 0)
		return "asks twice for the same receive";
	if (wanted - qp->recv_wanted > SOFT_ASK_MAX)
		return "asks for more receives at once than a frame may";
	if (qp->recv_posted != qp->recv_wanted)
		return "asks for receives before it has got those it asked for";
	qp->recv_wanted = wanted;
	if (!others_wait(qp, UINT64_MAX))
		promise(qp);
	if (qp->recv_posted != wanted)
		wait_in_line(qp);
	return NULL;
}

void soft_srq_take(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;
	uint32_t place;

	pthread_mutex_lock(&srq->lock);
	place = srq->posted_first;
	assert(place != SOFT_SRQ_NONE && srq->reserved_count);
	srq->posted_first = srq->places[place].next;
	srq->posted_count--;
	srq->reserved_count--;
	qp->receives[0].wr_id = srq->places[place].wr_id;
	qp->receives[0].length_bytes = srq->places[place].length_bytes;
	memcpy(qp->recv_pieces, &srq->pieces[(size_t)place * srq->max_sge],
	       srq->max_sge * sizeof(*qp->recv_pieces));
	limit_check_locked(srq);
	pthread_mutex_unlock(&srq->lock);
	qp->taken_place = place;
	qp->has_taken = true;
}

/* From now on the peer has the full time again for all promised receives. */
static void promise_begin(struct soft_qp *qp)
{
	qp->promise_seen = (struct soft_promise_seen){
		.moved_bytes = soft_qp_moved(qp),
		.promised = qp->recv_posted,
	};
}

/* Whether all of the earlier promise was used. Some of that is left if its end is among the
 * present promise: comparing which of the two is larger would not tell, after a long time
 * without a check. */
static bool promise_is_used(const struct soft_qp *qp)
{
	return qp->promise_seen.promised - qp->recv_done - 1 >=
	       qp->recv_posted - qp->recv_done;
}

/* Signed, because a local socket reports more bytes held than it took. */
static bool has_moved(const struct soft_qp *qp)
{
	return (int64_t)(soft_qp_moved(qp) - qp->promise_seen.moved_bytes) >=
	       (int64_t)SOFT_PROMISE_BYTES;
}

void soft_srq_check_promise(struct soft_qp *qp, uint64_t now_ns, uint64_t counts_ns)
{
	const uint64_t most_ns = SOFT_PROMISE_MS * 1000000ull;

	if (promise_is_used(qp) || has_moved(qp))
		promise_begin(qp);
	else if (others_wait(qp, UINT64_MAX))
		qp->promise_seen.kept_ns += counts_ns;
	if (qp->promise_seen.kept_ns > most_ns && others_wait(qp, now_ns - most_ns))
		soft_qp_cut_off(qp, "keeps shared receives that others wait for");
}

void soft_srq_leave(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;
	bool is_due;

	if (qp->has_taken) /* a part of its message has come */
		soft_qp_push_receive(qp, qp->recv_done++,
				     (struct rbx_wc){ .status = -ECANCELED });
	pthread_mutex_lock(&srq->lock);
	waiting_remove_locked(srq, qp);
	srq->reserved_count -= qp->recv_posted - qp->recv_done;
	is_due = has_unpromised_locked(srq) && !TAILQ_EMPTY(&srq->waiting);
	pthread_mutex_unlock(&srq->lock);
	qp->recv_posted = qp->recv_wanted = qp->recv_done;
	if (is_due)
		serve_soon(srq->device);
}
