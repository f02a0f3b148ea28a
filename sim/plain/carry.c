/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * carry.c - carries out work requests, in order.
 *
 * Each arrives at the other end, where its key is checked and its bytes move, all or a part
 * of them. Then it completes; by then the rest has moved. The next one may arrive in between.
 * But an operation that would see earlier ones first has their halves moved: reads, atomics,
 * messages, and fenced ones. A failed one completes with its error, and then the queue pair
 * is in error.
 */
#include <errno.h>
#include <string.h>

#include "sim/fail.h"
#include "sim/plain/plain.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"

/* The memory of a work request was given back before it completed. */
#define RELEASED "memory of node %u is deregistered while work is under way"

/* Moves bytes from..to of a work request between both ends. */
static void move(struct plain_qp *qp, uint32_t number, uint32_t from,
		 uint32_t to)
{
	const struct plain_work *work = plain_work(qp, number);
	const struct rbx_sge *sges = plain_sges(qp, number);
	uint32_t rights = plain_brings(work) ? RBX_LOCAL_WRITE : 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < work->sge_count && at < to; i++) {
		uint32_t begin = RBX_MAX(at, from);
		uint32_t end = RBX_MIN(at + sges[i].length_bytes, to);
		char *local = (char *)(uintptr_t)sges[i].addr + (begin - at);
		char *remote = (char *)(uintptr_t)work->remote_addr + begin;

		at += sges[i].length_bytes;
		if (begin >= end)
			continue;
		if (!plain_local(qp, &sges[i], rights))
			rbx_sim_fail("buffer", RELEASED, qp->node);
		if (plain_brings(work))
			memcpy(local, remote, end - begin);
		else
			memcpy(remote, local, end - begin);
	}
}

void plain_second_half(struct plain_qp *qp, uint32_t number)
{
	struct plain_work *work = plain_work(qp, number);
	struct plain_mr *target = plain_key(work->rkey);

	work->is_half = false;
	if (!target) /* its power was cut */
		return;
	plain_fence_check(qp->node);
	move(qp, number, work->half_from, work->half_to);
	target->halves_count--;
}

static void first_half(struct plain_qp *qp, uint32_t number,
		       struct plain_mr *target)
{
	struct plain_work *work = plain_work(qp, number);
	/* Words of 8 bytes stay whole, as on a bus. */
	uint32_t middle = (uint32_t)plain_draw(0, work->length_bytes) & ~7u;

	if (plain_draw(0, 1)) {
		move(qp, number, 0, middle);
		work->half_from = middle;
		work->half_to = work->length_bytes;
	} else {
		move(qp, number, middle, work->length_bytes);
		work->half_from = 0;
		work->half_to = middle;
	}
	work->is_half = true;
	target->halves_count++;
}

void plain_earlier_halves(struct plain_qp *qp, uint32_t number)
{
	for (uint32_t at = qp->completed_count; at != number; at++) {
		if (plain_work(qp, at)->is_half)
			plain_second_half(qp, at);
	}
}

bool plain_local_is_good(const struct plain_qp *qp, uint32_t number,
			 uint32_t rights)
{
	const struct rbx_sge *sges = plain_sges(qp, number);

	for (uint32_t i = 0; i < plain_work(qp, number)->sge_count; i++)
		if (!plain_local(qp, &sges[i], rights))
			return false;
	return true;
}

/* How long memory stays bad: also for parts that go to other replicas, and for attempts to
 * send again. */
#define BAD_NS 100000u

/* Our own device finds that it cannot reach a buffer: before it has sent anything, or when a
 * part of a write has arrived. */
static bool memory_is_bad(struct plain_qp *qp, uint32_t number,
			  const struct plain_mr *target)
{
	static uint64_t bad_addr, bad_until_ns;
	const struct plain_work *work = plain_work(qp, number);
	bool may_be_late = work->opcode == RBX_OP_WRITE && target;
	bool is_late;

	if (work->sge_count == 0)
		return false; /* a marker at the end of a queue has no memory */
	is_late = may_be_late && rbx_sim_site(RBX_SIM_SITE_bad_memory_late);
	if (is_late || rbx_sim_site(RBX_SIM_SITE_bad_memory)) {
		bad_addr = plain_sges(qp, number)->addr;
		bad_until_ns = rbx_sim_now() + BAD_NS;
	} else if (plain_sges(qp, number)->addr != bad_addr ||
		   rbx_sim_now() >= bad_until_ns) {
		return false;
	}
	is_late |= may_be_late &&
		   rbx_sim_site_is_on(RBX_SIM_SITE_bad_memory_late) &&
		   plain_draw(0, 1);
	if (is_late)
		move(qp, number, 0,
		     (uint32_t)plain_draw(0, work->length_bytes) & ~7u);
	return true;
}

static uint32_t right_for(const struct plain_work *work)
{
	switch (work->opcode) {
	case RBX_OP_READ:
		return RBX_REMOTE_READ;
	case RBX_OP_WRITE:
		return RBX_REMOTE_WRITE;
	default:
		return RBX_REMOTE_ATOMIC;
	}
}

static bool is_atomic(const struct plain_work *work)
{
	return work->opcode == RBX_OP_COMPARE_SWAP ||
	       work->opcode == RBX_OP_FETCH_ADD;
}

/* An atomic whose memory is valid on both sides. */
static void change(struct plain_qp *qp, uint32_t number)
{
	const struct plain_work *work = plain_work(qp, number);
	uint64_t *remote = (uint64_t *)(uintptr_t)work->remote_addr;
	uint64_t before = *remote;

	move(qp, number, 0, work->length_bytes); /* their former value comes to us */
	if (work->opcode == RBX_OP_FETCH_ADD)
		*remote = before + work->compare_add;
	else if (before == work->compare_add)
		*remote = work->swap;
}

int32_t plain_access(struct plain_qp *qp, uint32_t number)
{
	struct plain_work *work = plain_work(qp, number);
	bool brings = plain_brings(work);
	struct plain_mr *target = plain_remote(qp->peer, work->rkey,
					       work->remote_addr,
					       work->length_bytes,
					       right_for(work));

	if (!plain_local_is_good(qp, number, brings ? RBX_LOCAL_WRITE : 0) ||
	    memory_is_bad(qp, number, target))
		return -EFAULT;
	rbx_sim_tally(RBX_SIM_TALLY_keys_revoked,
		      plain_key(work->rkey) == NULL);
	if (!target ||
	    rbx_sim_site_harms(RBX_SIM_SITE_stale_key, qp->peer->node,
			       RBX_PLAIN_STALE_FELT_NS))
		return -EACCES;
	plain_fence_check(qp->node);
	if (is_atomic(work) &&
	    (work->length_bytes != 8 || work->remote_addr % 8 != 0))
		return -EACCES;
	if (brings)
		plain_earlier_halves(qp, number);
	if (is_atomic(work))
		change(qp, number);
	else if (rbx_sim_site(RBX_SIM_SITE_late_placement))
		first_half(qp, number, target);
	else
		move(qp, number, 0, work->length_bytes);
	return 0;
}

/* The machine of the server, of the two ends. */
static uint32_t server_node(const struct plain_qp *qp)
{
	return qp->is_accepted ? qp->node : qp->peer->node;
}

/* The connection ends with this message, and it is unknown whether it was received. */
static bool cut_in_message(struct plain_qp *qp, uint32_t number)
{
	if (!plain_is_message(plain_work(qp, number)) || !qp->peer ||
	    qp->peer->state != PLAIN_CONNECTED ||
	    !rbx_sim_site_harms(RBX_SIM_SITE_message_cut, server_node(qp),
				RBX_PLAIN_FELT_NS))
		return false;
	if (plain_draw(0, 1))
		(void)plain_deliver(qp, number);
	plain_fail(qp);
	return true;
}

/* The peer does not answer for now; 0: go on waiting. */
static int32_t unanswered(struct plain_qp *qp, uint64_t limit_ns,
			  int32_t status)
{
	if (qp->silent_since_ns == 0)
		qp->silent_since_ns = rbx_sim_now();
	return rbx_sim_now() - qp->silent_since_ns < limit_ns ? 0 : status;
}

/* True: it has arrived, and its status is set. */
static bool arrive(struct plain_qp *qp, uint32_t number)
{
	struct plain_work *work = plain_work(qp, number);
	int32_t status;

	if (!qp->peer || qp->peer->state != PLAIN_CONNECTED ||
	    !plain_reaches(qp->node, qp->peer->node)) {
		status = unanswered(qp, RBX_PLAIN_RETRY_NS, -ETIMEDOUT);
		work->status = status;
		return status != 0;
	}
	/* Lost on the way there, or on the way back. */
	if (rbx_sim_site(RBX_SIM_SITE_retry_exceeded)) {
		if (work->opcode != RBX_OP_SEND && plain_draw(0, 1))
			(void)plain_access(qp, number);
		work->status = -ETIMEDOUT;
		return true;
	}
	if (work->flags & RBX_WR_FENCE)
		plain_earlier_halves(qp, number);
	status = plain_is_message(work) ? plain_deliver(qp, number) :
					  plain_access(qp, number);
	if (status == -EAGAIN) {
		status = unanswered(qp, RBX_PLAIN_NOT_READY_NS, -ENOBUFS);
		work->status = status;
		return status != 0;
	}
	qp->silent_since_ns = 0;
	work->status = status;
	return true;
}

static uint64_t completion(struct plain_qp *qp, uint32_t number)
{
	uint64_t at_ns = rbx_sim_now() + plain_way_back_ns();

	if (rbx_sim_site(RBX_SIM_SITE_late_completion))
		at_ns += rbx_sim_site_draw(RBX_SIM_SITE_late_completion, 0,
					   1000000);
	if (number == qp->completed_count)
		return at_ns;
	return RBX_MAX(at_ns, plain_work(qp, number - 1)->complete_ns);
}

void plain_arrives(struct rbx_sim_event *event)
{
	struct plain_qp *qp = RBX_CONTAINER_OF(event, struct plain_qp, arrives);

	while (qp->state == PLAIN_CONNECTED &&
	       qp->arrived_count != qp->posted_count) {
		uint32_t number = qp->arrived_count;
		struct plain_work *work = plain_work(qp, number);

		if (work->arrive_ns > rbx_sim_now()) {
			rbx_sim_at(event, work->arrive_ns);
			return;
		}
		if (rbx_sim_site(RBX_SIM_SITE_qp_error)) {
			plain_fail(qp);
			return;
		}
		if (cut_in_message(qp, number))
			return;
		if (!arrive(qp, number)) {
			rbx_sim_after(event, RBX_PLAIN_LOOK_AGAIN_NS);
			return;
		}
		work->complete_ns = completion(qp, number);
		qp->arrived_count++;
		if (work->status != 0)
			qp->state = PLAIN_FAILING;
		if (!rbx_sim_is_queued(&qp->completes))
			rbx_sim_at(&qp->completes, work->complete_ns);
	}
}

static void complete(struct plain_qp *qp, uint32_t number)
{
	const struct plain_work *work = plain_work(qp, number);
	struct rbx_wc wc = {
		.wr_id = work->wr_id,
		.qp = &qp->base,
		.opcode = work->opcode,
		.length_bytes = work->length_bytes,
	};

	if (work->is_half)
		plain_second_half(qp, number);
	RBX_SIM_TRACE(qp->node, "complete", "qp", qp->number, "status",
		      (uint32_t)-work->status);
	plain_flight(qp, number, -1);
	qp->completed_count++;
	if (work->status != 0)
		plain_cq_add_error(qp->base.send_cq, qp, work->wr_id,
				   work->status);
	else if (work->flags & RBX_WR_SIGNALED)
		plain_cq_add(qp->base.send_cq, &wc);
}

void plain_completes(struct rbx_sim_event *event)
{
	struct plain_qp *qp = RBX_CONTAINER_OF(event, struct plain_qp,
					       completes);

	while (qp->completed_count != qp->arrived_count) {
		struct plain_work *work = plain_work(qp, qp->completed_count);

		if (work->complete_ns > rbx_sim_now()) {
			rbx_sim_at(event, work->complete_ns);
			return;
		}
		complete(qp, qp->completed_count);
		if (work->status != 0) {
			plain_fail(qp);
			return;
		}
	}
}
