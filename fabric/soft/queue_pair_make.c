/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pair_make.c - checks the options of a qp and makes its memory: all that it will ever
 * need, so nothing is allocated while it works.
 */
#include "queue_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "device.h"
#include "mapping.h"
#include "shared_receives.h"

/* The srq is of the same domain and has the same cq. */
static bool srq_fits(const struct rbx_qp_init *init)
{
	const struct soft_srq *srq = (const struct soft_srq *)init->srq;

	return !srq || (init->recv_cq == &srq->cq->cq &&
			soft_domain_of(&srq->device->keys, init->domain) ==
				srq->domain);
}

int soft_qp_init_check(const struct rbx_qp_init *init, char *error)
{
	if (!srq_fits(init)) {
		soft_explain(error, "cannot create a qp: a shared receive queue "
			     "needs qps of its own cq and domain");
		return -EINVAL;
	}
	if (init->send_cq && init->recv_cq && init->send_depth_count &&
	    init->send_depth_count <= SOFT_SEND_DEPTH_MAX &&
	    init->recv_depth_count <= SOFT_RECV_DEPTH_MAX &&
	    init->max_sge <= SOFT_SGE_MAX &&
	    init->recv_max_sge <= SOFT_SGE_MAX &&
	    init->max_inline_bytes <= SOFT_INLINE_MAX_BYTES)
		return 0;
	soft_explain(error, "cannot create a qp: two cqs, send depth 1 to %u, "
		     "receive depth to %u, %u sges and %u inline bytes are "
		     "possible", SOFT_SEND_DEPTH_MAX, SOFT_RECV_DEPTH_MAX,
		     SOFT_SGE_MAX, SOFT_INLINE_MAX_BYTES);
	return -EINVAL;
}

static uint32_t round_up_to_power(uint32_t count)
{
	uint32_t power = 1;

	while (power < count)
		power *= 2;
	return power;
}

void soft_qp_free(struct soft_qp *qp)
{
	soft_mappings_free(qp->mappings);
	while (qp->fd_count)
		soft_descriptor_close(qp->fds[--qp->fd_count]);
	for (; qp->control_head != qp->control_tail; qp->control_head++) {
		struct soft_control *control =
			&qp->controls[qp->control_head % SOFT_CONTROL_MAX];

		if (control->fd >= 0)
			close(control->fd);
	}
	pthread_mutex_destroy(&qp->lock);
	free(qp->sends);
	free(qp->send_pieces);
	free(qp->inline_bytes);
	free(qp->receives);
	free(qp->recv_pieces);
	free(qp->responses);
	free(qp->lookahead);
	soft_tls_free(qp->tls);
	free(qp);
}

static void qp_lock_init(struct soft_qp *qp)
{
	pthread_mutexattr_t attributes;

	/* Spins a little before it sleeps: the lock is held only for moments. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&qp->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static struct soft_qp *qp_allocate(const struct rbx_qp_init *init,
				   uint32_t answers_count)
{
	uint32_t send_places = round_up_to_power(init->send_depth_count);
	struct soft_srq *srq = init->srq ? soft_srq_of(init->srq) : NULL;
	uint32_t recv_places =
		srq ? 1 : round_up_to_power(init->recv_depth_count);
	uint32_t response_places = round_up_to_power(answers_count);
	struct soft_qp *qp;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp_lock_init(qp);
	qp->max_sge = init->max_sge ? init->max_sge : 1;
	qp->recv_max_sge = init->recv_max_sge ? init->recv_max_sge : 1;
	if (srq)
		qp->recv_max_sge = srq->max_sge;
	qp->send_mask = send_places - 1;
	qp->recv_mask = recv_places - 1;
	qp->response_mask = response_places - 1;
	qp->sends = calloc(send_places, sizeof(*qp->sends));
	qp->send_pieces = calloc((size_t)send_places * qp->max_sge,
				 sizeof(*qp->send_pieces));
	qp->inline_bytes = calloc(send_places, init->max_inline_bytes + 1u);
	qp->receives = calloc(recv_places, sizeof(*qp->receives));
	qp->recv_pieces = calloc((size_t)recv_places * qp->recv_max_sge,
				 sizeof(*qp->recv_pieces));
	qp->responses = calloc(response_places, sizeof(*qp->responses));
	qp->lookahead = malloc(SOFT_LOOKAHEAD_BYTES);
	if (qp->sends && qp->send_pieces && qp->inline_bytes && qp->receives &&
	    qp->recv_pieces && qp->responses && qp->lookahead)
		return qp;
	soft_qp_free(qp);
	return NULL;
}

/* What the peer says of its queue may be anything: memory is made for what we allow. */
static uint32_t answers_max_count(const struct rbx_qp_init *init, const struct soft_peer *peer)
{
	if (!init->peer_reads_max_count || peer->send_depth_count < init->peer_reads_max_count)
		return peer->send_depth_count;
	return init->peer_reads_max_count;
}

static void qp_fill(struct soft_qp *qp, struct soft_device *device,
		    const struct rbx_qp_init *init,
		    const struct soft_peer *peer)
{
	qp->qp.device = &device->device;
	qp->qp.send_cq = init->send_cq;
	qp->qp.recv_cq = init->recv_cq;
	qp->qp.user = init->user;
	qp->qp.send_depth_count = init->send_depth_count;
	qp->qp.max_inline_bytes = init->max_inline_bytes;
	qp->qp.mapped = peer->mapped;
	memcpy(qp->qp.peer_name, peer->name, sizeof(qp->qp.peer_name));
	qp->device = device;
	atomic_init(&qp->references, 1);
	qp->domain = soft_domain_of(&device->keys, init->domain);
	qp->ended.event.kind = RBX_DEVICE_QP_ENDED;
	qp->ended.event.qp = init->tells_end ? &qp->qp : NULL;
	qp->served = init->served;
	qp->answers = init->answers && !init->served;
	qp->fd = peer->fd;
	qp->srq = init->srq ? soft_srq_of(init->srq) : NULL;
	qp->recv_depth_count = qp->srq ? 0 : init->recv_depth_count;
	qp->asks_credit = peer->shares_receives;
	qp->peer_depth_count = peer->send_depth_count;
	qp->answers_max_count = answers_max_count(init, peer);
	atomic_init(&qp->send_freed, SOFT_FIRST_SEQUENCE);
	qp->send_done = SOFT_FIRST_SEQUENCE;
	qp->send_started = SOFT_FIRST_SEQUENCE;
	qp->send_posted = SOFT_FIRST_SEQUENCE;
	qp->expected = SOFT_FIRST_SEQUENCE;
	qp->acked = SOFT_FIRST_SEQUENCE;
	qp->ack_wanted = SOFT_FIRST_SEQUENCE;
	qp->ack_sequence = SOFT_FIRST_SEQUENCE;
}

struct soft_qp *soft_qp_make(struct soft_device *device,
			     const struct rbx_qp_init *init,
			     const struct soft_peer *peer)
{
	struct soft_qp *qp = qp_allocate(init, answers_max_count(init, peer));

	if (qp)
		qp_fill(qp, device, init, peer);
	return qp;
}
