/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fail.c - the failure and the end of a queue pair.
 *
 * All that is posted is flushed at once, whatever was carried out. (Or nothing is ever
 * flushed, and its memory is written to until the queue pair is destroyed.) The other end is
 * told, unless they are cut off from each other. What was on its way may still arrive: a copy
 * of it does, if the other end still exists and its key is valid. This is why a server ends
 * the old queue pairs before it answers a client that comes back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/plain/plain.h"
#include "sim/sites.h"
#include "sim/trace.h"

/* How long a packet may be late in the network. */
#define STRAY_NS_MAX 20000000u
/* The time between two writes of a mute queue pair. */
#define DREAM_NS_MAX 20000000u

/* A write whose queue pair has ended. */
struct stray {
	struct rbx_sim_event lands;
	uint32_t target; /* number of the queue pair */
	uint32_t rkey;
	uint64_t remote_addr;
	uint32_t length_bytes;
	char bytes[];
};

static struct plain_qp *qp_by_number(uint32_t number)
{
	struct plain_qp *qp = plain_qps;

	while (qp && qp->number != number)
		qp = qp->next;
	return qp;
}

static void stray_lands(struct rbx_sim_event *event)
{
	struct stray *stray = RBX_CONTAINER_OF(event, struct stray, lands);
	struct plain_qp *target = qp_by_number(stray->target);

	if (target && target->state == PLAIN_CONNECTED &&
	    plain_remote(target, stray->rkey, stray->remote_addr,
			 stray->length_bytes, RBX_REMOTE_WRITE)) {
		RBX_SIM_TRACE(target->node, "stray", "key", stray->rkey,
			      "bytes", stray->length_bytes);
		memcpy((void *)(uintptr_t)stray->remote_addr, stray->bytes,
		       stray->length_bytes);
	}
	free(stray);
}

/* Lets a write that has not arrived land later. */
static void stray_send(const struct plain_qp *qp, uint32_t number)
{
	const struct plain_work *work = plain_work(qp, number);
	const struct rbx_sge *sges = plain_sges(qp, number);
	struct stray *stray = malloc(sizeof(*stray) + work->length_bytes);
	uint32_t at = 0;

	if (!stray)
		abort();
	*stray = (struct stray){
		.lands.run = stray_lands,
		.target = qp->peer->number,
		.rkey = work->rkey,
		.remote_addr = work->remote_addr,
		.length_bytes = work->length_bytes,
	};
	for (uint32_t i = 0; i < work->sge_count; i++) {
		memcpy(stray->bytes + at, (void *)(uintptr_t)sges[i].addr,
		       sges[i].length_bytes);
		at += sges[i].length_bytes;
	}
	rbx_sim_after(&stray->lands,
		      rbx_sim_site_draw(RBX_SIM_SITE_stray_write, 0,
					STRAY_NS_MAX));
}

/* In the order posted, as they would have arrived. */
void plain_strays_send(const struct plain_qp *qp)
{
	if (!qp->peer || !plain_reaches(qp->node, qp->peer->node))
		return;
	for (uint32_t at = qp->arrived_count; at != qp->posted_count; at++) {
		if (plain_work(qp, at)->opcode == RBX_OP_WRITE &&
		    rbx_sim_site(RBX_SIM_SITE_stray_write))
			stray_send(qp, at);
	}
}

static void flush_receives(struct plain_qp *qp)
{
	while (qp->recv_count != 0) {
		plain_cq_add_error(qp->base.recv_cq, qp,
				   qp->recvs[qp->recv_first].wr_id, -ECANCELED);
		qp->recv_first = (qp->recv_first + 1) % qp->recv_depth_count;
		qp->recv_count--;
	}
}

void plain_half_forget(struct plain_work *work)
{
	struct plain_mr *target = plain_key(work->rkey);

	if (work->is_half && target)
		target->halves_count--;
	work->is_half = false;
}

static void flush_sends(struct plain_qp *qp)
{
	for (; qp->completed_count != qp->posted_count; qp->completed_count++) {
		struct plain_work *work = plain_work(qp, qp->completed_count);

		plain_half_forget(work);
		plain_flight(qp, qp->completed_count, -1);
		plain_cq_add_error(qp->base.send_cq, qp, work->wr_id,
				   -ECANCELED);
	}
	qp->arrived_count = qp->posted_count;
}

/* Only if it carries data: nothing waits for the end of messages. */
static bool falls_mute(const struct plain_qp *qp)
{
	return qp->posted_count != qp->completed_count &&
	       !plain_is_message(plain_work(qp, qp->completed_count)) &&
	       rbx_sim_site(RBX_SIM_SITE_no_flush);
}

/* Operations whose end was not reported may still write to our memory. */
void plain_dreams(struct rbx_sim_event *event)
{
	struct plain_qp *qp = RBX_CONTAINER_OF(event, struct plain_qp, dreams);

	for (uint32_t at = qp->completed_count; at != qp->posted_count; at++) {
		const struct rbx_sge *sges = plain_sges(qp, at);

		if (!plain_brings(plain_work(qp, at)))
			continue;
		for (uint32_t i = 0; i < plain_work(qp, at)->sge_count; i++)
			plain_scribble((void *)(uintptr_t)sges[i].addr,
				       sges[i].length_bytes);
	}
	rbx_sim_after(&qp->dreams, plain_draw(1, DREAM_NS_MAX));
}

void plain_fail(struct plain_qp *qp)
{
	if (qp->state == PLAIN_ERROR)
		return;
	RBX_SIM_TRACE(qp->node, "qp-error", "qp", qp->number, "flushed",
		      qp->posted_count - qp->completed_count);
	rbx_sim_cancel(&qp->arrives);
	rbx_sim_cancel(&qp->completes);
	plain_strays_send(qp);
	if (qp->peer && plain_reaches(qp->node, qp->peer->node) &&
	    !rbx_sim_is_queued(&qp->peer->hears))
		rbx_sim_after(&qp->peer->hears, plain_way_ns());
	qp->state = PLAIN_ERROR;
	qp->is_mute = falls_mute(qp);
	if (qp->is_mute)
		rbx_sim_after(&qp->dreams, plain_draw(1, DREAM_NS_MAX));
	else
		flush_sends(qp);
	flush_receives(qp);
}

void plain_hears(struct rbx_sim_event *event)
{
	plain_fail(RBX_CONTAINER_OF(event, struct plain_qp, hears));
}
