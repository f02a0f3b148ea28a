/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pair.c - attaches, breaks and destroys the ends of connections; queue_pair_make.c
 * makes their memory.
 *
 * Normally a qp is connected from its creation on: posts put frames into the socket, and
 * soft_qp_progress(), called by the thread that serves the socket, takes frames out of it.
 *
 * The first failure, whatever it is, goes through qp_flush(): the work request at fault gets
 * its status, everything else posted completes with -ECANCELED in the order posted, and the
 * socket is no longer watched. If a request of the peer failed, the peer still has to be
 * told. Until the socket has taken that frame the qp is `refusing`, and what is posted then
 * waits to be flushed with it. Only destroy_qp() closes the socket, so that its number cannot
 * come to mean something else before.
 *
 * The owner holds a reference from creation to destroy_qp(), and so does each thread while it
 * works for the qp; the last one frees the memory. After destroy_qp() each thread that gets
 * the lock sees the state and returns, so no completion comes from a destroyed qp.
 */
#include "queue_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "mapping.h"
#include "output.h"
#include "receive.h"
#include "send_queue.h"
#include "shared_receives.h"

/* How many completions the qp may have in a cq at once. */
static int qp_reserve(struct soft_qp *qp)
{
	struct soft_cq *send_cq = soft_cq_of(qp->qp.send_cq);
	int err;

	err = soft_cq_reserve(send_cq, qp->qp.send_depth_count);
	if (err)
		return err;
	err = soft_cq_reserve(soft_cq_of(qp->qp.recv_cq), qp->recv_depth_count);
	if (err)
		soft_cq_release(send_cq, qp, qp->qp.send_depth_count);
	return err;
}

static void qp_release(struct soft_qp *qp)
{
	soft_cq_release(soft_cq_of(qp->qp.send_cq), qp,
			qp->qp.send_depth_count);
	soft_overload_freed(&qp->device->overload,
			    qp->send_posted - atomic_load(&qp->send_freed));
	soft_cq_release(soft_cq_of(qp->qp.recv_cq), qp, qp->recv_depth_count);
}

/* Chooses the thread that serves the socket. */
static int qp_attach(struct soft_qp *qp)
{
	struct soft_cq *send_cq = soft_cq_of(qp->qp.send_cq);
	struct soft_cq *recv_cq = soft_cq_of(qp->qp.recv_cq);
	int err;

	if (qp->served)
		return soft_qp_set_add(&qp->device->served, qp,
				       &qp->served_token);
	err = soft_qp_set_add(&send_cq->polled, qp, &qp->send_token);
	if (err || send_cq == recv_cq)
		return err;
	err = soft_qp_set_add(&recv_cq->polled, qp, &qp->recv_token);
	if (err) {
		/* A child of fork() may have the socket too: it would stay watched. */
		soft_qp_set_unwatch(&send_cq->polled, qp);
		soft_qp_set_remove(&send_cq->polled, qp->send_token);
	}
	return err;
}

static void qp_detach(struct soft_qp *qp)
{
	struct soft_cq *send_cq = soft_cq_of(qp->qp.send_cq);
	struct soft_cq *recv_cq = soft_cq_of(qp->qp.recv_cq);

	if (qp->served) {
		soft_qp_set_remove(&qp->device->served, qp->served_token);
		return;
	}
	soft_qp_set_remove(&send_cq->polled, qp->send_token);
	if (send_cq != recv_cq)
		soft_qp_set_remove(&recv_cq->polled, qp->recv_token);
}

static void qp_list_add(struct soft_qp *qp)
{
	struct soft_device *device = qp->device;

	pthread_mutex_lock(&device->lock);
	qp->next = device->qps;
	qp->previous = &device->qps;
	if (qp->next)
		qp->next->previous = &qp->next;
	device->qps = qp;
	pthread_mutex_unlock(&device->lock);
}

static void qp_list_remove(struct soft_qp *qp)
{
	pthread_mutex_lock(&qp->device->lock);
	*qp->previous = qp->next;
	if (qp->next)
		qp->next->previous = qp->previous;
	pthread_mutex_unlock(&qp->device->lock);
}

/* A local socket has no packets, and of the two kinds of address one call fails. */
static void traffic_class_set(const struct soft_qp *qp, uint8_t traffic_class)
{
	const int class = traffic_class;

	if (!class)
		return;
	(void)setsockopt(qp->fd, IPPROTO_IP, IP_TOS, &class, sizeof(class));
	(void)setsockopt(qp->fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof(class));
}

int soft_qp_create(struct soft_device *device, const struct rbx_qp_init *init,
		   const struct soft_peer *peer, struct soft_qp **out,
		   char *error)
{
	struct soft_qp *qp;
	int err;

	qp = soft_qp_make(device, init, peer);
	if (!qp) {
		soft_explain(error, "cannot create a qp: no memory; ask for "
			     "smaller queues");
		return -ENOMEM;
	}
	if (peer->mapped) {
		err = soft_mappings_create(&qp->mappings);
		if (err)
			goto out_free;
	}
	err = qp_reserve(qp);
	if (err)
		goto out_free;
	if (peer->tls)
		soft_tls_stream(peer->tls);
	qp->tls = peer->tls;
	rbx_qp_made(init, &qp->qp); /* the lock below makes it visible to pollers */
	qp_list_add(qp);
	soft_qp_lock(qp); /* so that no thread sees it half attached */
	traffic_class_set(qp, init->traffic_class);
	err = qp_attach(qp);
	if (err)
		qp->state = SOFT_QP_DESTROYED; /* a poller may wait for the lock */
	soft_qp_unlock(qp);
	if (err)
		goto out_list;
	*out = qp;
	return 0;

out_list:
	qp->tls = NULL;
	qp_list_remove(qp);
	qp_release(qp);
out_free:
	soft_explain(error, "cannot create a qp to %s: %s", peer->name,
		     strerror(-err));
	soft_qp_put(qp);
	return err;
}

void soft_qp_put(struct soft_qp *qp)
{
	/* Release: our use is over; acquire: so is that of all others. */
	if (atomic_fetch_sub_explicit(&qp->references, 1,
				      memory_order_acq_rel) == 1)
		soft_qp_free(qp);
}

void soft_qp_push_send(struct soft_qp *qp, uint32_t index, int status)
{
	const struct soft_send *send = &qp->sends[index & qp->send_mask];
	struct soft_completion completion = {
		.wc = {
			.wr_id = send->wr_id,
			.qp = &qp->qp,
			.status = status,
			.opcode = send->opcode,
		},
		.frees = index + 1,
	};
	struct soft_cq *cq = soft_cq_of(qp->qp.send_cq);

	soft_cq_push(cq, &completion, cq == qp->poller);
}

void soft_qp_push_receive(struct soft_qp *qp, uint32_t index, struct rbx_wc wc)
{
	struct soft_completion completion = {
		.wc = wc,
		.receive = true,
		.frees = qp->srq ? qp->taken_place : index + 1,
	};
	struct soft_cq *cq = soft_cq_of(qp->qp.recv_cq);

	completion.wc.wr_id = qp->receives[index & qp->recv_mask].wr_id;
	completion.wc.qp = &qp->qp;
	qp->has_taken = false;
	soft_cq_push(cq, &completion, cq == qp->poller);
}

static void qp_unwatch(struct soft_qp *qp)
{
	struct soft_cq *send_cq = soft_cq_of(qp->qp.send_cq);
	struct soft_cq *recv_cq = soft_cq_of(qp->qp.recv_cq);

	if (qp->served) {
		soft_qp_set_unwatch(&qp->device->served, qp);
		return;
	}
	soft_qp_set_unwatch(&send_cq->polled, qp);
	if (send_cq != recv_cq)
		soft_qp_set_unwatch(&recv_cq->polled, qp);
}

void soft_qp_watch_output(struct soft_qp *qp, bool output)
{
	struct soft_cq *send_cq = soft_cq_of(qp->qp.send_cq);
	struct soft_cq *recv_cq = soft_cq_of(qp->qp.recv_cq);

	if (qp->served) {
		soft_qp_set_watch(&qp->device->served, qp, qp->served_token,
				  output);
		return;
	}
	soft_qp_set_watch(&send_cq->polled, qp, qp->send_token, output);
	if (send_cq != recv_cq)
		soft_qp_set_watch(&recv_cq->polled, qp, qp->recv_token, output);
}

static void qp_flush(struct soft_qp *qp, uint32_t blamed, int status)
{
	soft_send_queue_end_stall(qp);
	for (; qp->send_done != qp->send_posted; qp->send_done++)
		soft_qp_push_send(qp, qp->send_done, qp->send_done == blamed ?
						      status : -ECANCELED);
	qp->send_started = qp->send_posted;
	if (qp->srq)
		soft_srq_leave(qp);
	for (; qp->recv_done != qp->recv_posted; qp->recv_done++)
		soft_qp_push_receive(qp, qp->recv_done,
				     (struct rbx_wc){ .status = -ECANCELED });
}

static void qp_shut_down(struct soft_qp *qp)
{
	qp->state = SOFT_QP_ERROR;
	qp_unwatch(qp);
	/* What the socket has taken is still sent; the peer sees the end. */
	shutdown(qp->fd, SHUT_RDWR);
	if (qp->ended.event.qp)
		rbx_device_events_raise(&qp->device->events, &qp->ended);
}

void soft_qp_fail(struct soft_qp *qp, uint32_t index, int status)
{
	if (qp->state >= SOFT_QP_ERROR)
		return;
	if (qp->state == SOFT_QP_REFUSING)
		status = -ECANCELED; /* the first failure was another one */
	qp_flush(qp, index, status);
	qp_shut_down(qp);
}

void soft_qp_cut_off(struct soft_qp *qp, const char *reason)
{
	if (qp->state != SOFT_QP_CONNECTED)
		return;
	qp->qp.cut_off = reason;
	soft_qp_fail(qp, qp->send_done, -EREMOTEIO);
}

void soft_qp_lose(struct soft_qp *qp, int error)
{
	int status = -EHOSTUNREACH;

	if (error == ETIMEDOUT)
		status = -ETIMEDOUT;
	if (error == EFAULT)
		status = -ECANCELED;
	soft_qp_fail(qp, qp->send_done, status);
}

void soft_qp_refuse(struct soft_qp *qp, uint32_t sequence, uint8_t status)
{
	struct soft_frame frame = {
		.opcode = SOFT_ERROR,
		.status = status,
		.sequence = sequence,
	};

	if (qp->state != SOFT_QP_CONNECTED)
		return;
	qp->state = SOFT_QP_REFUSING;
	/* A request that is partly sent has to be sent to its end, or the peer would take
	 * what follows for the rest of it: it is flushed later. */
	if (qp->partial_kind != SOFT_OUTPUT_REQUEST)
		qp_flush(qp, qp->send_done, -ECANCELED);
	else if (qp->srq)
		soft_srq_leave(qp); /* others need not wait until then */
	soft_output_control(qp, &frame, NULL, -1);
}

/* A message has come to it; cq is the one that the thread polls. */
static void hold_ack(struct soft_qp *qp, struct soft_cq *cq)
{
	qp->holds_ack = true;
	cq->holds = true;
	cq->holding = cq == soft_cq_of(qp->qp.send_cq) ? qp->send_token :
							 qp->recv_token;
}

static void send_or_hold(struct soft_qp *qp, struct soft_cq *cq,
			 bool has_message)
{
	if (qp->answers && has_message && cq && !cq->holds &&
	    soft_output_is_ack_alone(qp))
		hold_ack(qp, cq);
	else
		soft_output_flush(qp);
}

static void send_held(struct soft_qp *qp)
{
	if (qp->holds_ack && qp->state < SOFT_QP_ERROR)
		soft_output_flush(qp);
}

void soft_qp_send_held(struct soft_qp *qp)
{
	soft_qp_lock(qp);
	send_held(qp);
	soft_qp_unlock(qp);
}

bool soft_qp_progress(struct soft_qp *qp, struct soft_cq *cq)
{
	bool received = false;
	uint32_t recv_done;

	if (atomic_load_explicit(&qp->waiting, memory_order_relaxed) ||
	    pthread_mutex_trylock(&qp->lock)) {
		/* We may have displaced the thread that works on the qp from this CPU, and
		 * the socket stays readable: without this we would return again and again
		 * until our time slice is over. */
		sched_yield();
		return false;
	}
	qp->poller = cq;
	qp->looks_count++;
	recv_done = qp->recv_done;
	if (qp->state < SOFT_QP_ERROR)
		received = soft_receive(qp);
	if (qp->state < SOFT_QP_ERROR)
		send_or_hold(qp, cq, qp->recv_done != recv_done);
	qp->poller = NULL;
	soft_qp_unlock(qp);
	return received;
}

void soft_disconnect(struct rbx_qp *base)
{
	struct soft_qp *qp = soft_qp_of(base);

	soft_qp_lock(qp);
	send_held(qp);
	soft_qp_fail(qp, qp->send_done, -ECANCELED);
	soft_qp_unlock(qp);
}

void soft_destroy_qp(struct rbx_qp *base)
{
	struct soft_qp *qp = soft_qp_of(base);

	soft_qp_lock(qp);
	send_held(qp);
	soft_qp_fail(qp, qp->send_done, -ECANCELED);
	qp->state = SOFT_QP_DESTROYED;
	close(qp->fd);
	soft_qp_unlock(qp);
	rbx_device_events_forget(&qp->device->events, &qp->ended);
	qp_detach(qp);
	qp_release(qp);
	qp_list_remove(qp);
	soft_qp_put(qp);
}
