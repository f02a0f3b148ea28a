/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * initiator.c - takes the peer's answers to our requests.
 *
 * Answers come in the order of the requests. An acknowledgement completes all WRITEs and
 * SENDs up to its sequence. A response completes those before its READ or atomic at once, and
 * that one when its payload is complete. An error completes those before its request and
 * fails that one. An answer to something that was not sent, or that was sent differently,
 * cuts the peer off.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "output.h"
#include "receive.h"
#include "send_queue.h"

/*
 * Whether the requests before `end` are all started, and none of them is one that only its
 * own response can complete.
 */
static bool may_complete(const struct soft_qp *qp, uint32_t end)
{
	uint32_t index;

	if (end - qp->send_done > qp->send_started - qp->send_done)
		return false;
	if (!qp->reads_outstanding)
		return true;
	for (index = qp->send_done; index != end; index++)
		if (soft_is_read(qp->sends[index & qp->send_mask].opcode))
			return false;
	return true;
}

/* News of shared receives comes only if the peer has read the request for credit, and never
 * for more than that asked for. */
static bool credit_is_good(const struct soft_qp *qp, uint32_t credit)
{
	uint32_t news = credit - qp->send_credit;

	return !qp->asks_credit || !news ||
	       (news <= qp->send_asked - qp->send_credit &&
		!soft_output_unsent(qp, SOFT_ASK_CREDIT));
}

static void initiator_ack(struct soft_qp *qp, const struct soft_frame *frame)
{
	uint32_t end = frame->sequence + qp->mapped_count + 1;

	if (!may_complete(qp, end)) {
		soft_qp_cut_off(qp, "acknowledges requests that were not sent");
		return;
	}
	if (!credit_is_good(qp, frame->credit)) {
		soft_qp_cut_off(qp, "gives credit that was not asked for");
		return;
	}
	soft_send_queue_complete(qp, end);
	if (frame->credit != qp->send_credit) {
		qp->send_credit = frame->credit;
		soft_send_queue_end_stall(qp);
	}
}

static void initiator_response(struct soft_qp *qp,
			       const struct soft_frame *frame)
{
	uint32_t index = frame->sequence + qp->mapped_count;
	uint32_t place = index & qp->send_mask;
	const struct soft_send *send = &qp->sends[place];
	struct soft_input_payload *payload = &qp->payload;

	if (!may_complete(qp, index) || index == qp->send_started ||
	    !soft_is_read(send->opcode) ||
	    send->length_bytes != frame->length_bytes) {
		soft_qp_cut_off(qp, "answers a read that was not sent");
		return;
	}
	soft_send_queue_complete(qp, index);
	payload->left_bytes = frame->length_bytes;
	payload->length_bytes = frame->length_bytes;
	payload->opcode = SOFT_RESPONSE;
	payload->pieces = &qp->send_pieces[(size_t)place * qp->max_sge];
	payload->piece_skip_bytes = 0;
	if (!frame->length_bytes)
		soft_initiator_payload_done(qp);
}

/* Converts the result of an atomic from the byte order of the wire to ours. */
static void value_turn(void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	value = le64toh(value);
	memcpy(at, &value, sizeof(value));
}

void soft_initiator_payload_done(struct soft_qp *qp)
{
	uint32_t place = qp->send_done & qp->send_mask;

	if (soft_is_atomic(qp->sends[place].opcode))
		value_turn(qp->send_pieces[(size_t)place * qp->max_sge].iov_base);
	qp->reads_outstanding--;
	soft_send_queue_complete(qp, qp->send_done + 1);
}

static void initiator_error(struct soft_qp *qp, const struct soft_frame *frame)
{
	int status = frame->status == SOFT_REFUSED_ACCESS ? -EACCES :
							    -EREMOTEIO;
	uint32_t index = frame->sequence + qp->mapped_count;

	if (!may_complete(qp, index) ||
	    (index == qp->send_started &&
	     qp->partial_kind != SOFT_OUTPUT_REQUEST)) {
		soft_qp_cut_off(qp, "fails a request that was not sent");
		return;
	}
	soft_send_queue_complete(qp, index);
	soft_qp_fail(qp, index, status);
}

void soft_initiator_frame(struct soft_qp *qp, const struct soft_frame *frame)
{
	if (frame->opcode == SOFT_ACK)
		initiator_ack(qp, frame);
	else if (frame->opcode == SOFT_RESPONSE)
		initiator_response(qp, frame);
	else
		initiator_error(qp, frame);
}
