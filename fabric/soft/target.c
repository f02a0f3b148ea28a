/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * target.c - carries out the peer's requests on our memory.
 *
 * Requests are carried out in the order in which they come. A WRITE's payload goes straight
 * into the memory of its key, a SEND's into the oldest receive. A READ is noted; output.c
 * gathers its data when it sends it. An atomic is carried out at once (atomic.c), and its
 * answer noted. `expected` counts the requests so far. When output is next sent, which is
 * after the look-ahead was processed, one acknowledgement is made for all that was done, if
 * the peer waits for any of it.
 *
 * A request that is not allowed is refused: the peer is told which and why, and the
 * connection ends. A request that no correct peer sends (out of sequence, more READs than
 * its queue is deep or than we allow, a message without credit) cuts the peer off.
 *
 * While the payload of a WRITE is under way the key may be taken back: it is looked up again
 * before each recvmsg(), under the lock that keys.c waits for.
 */
#include <errno.h>

#include "atomic.h"
#include "device.h"
#include "mapping.h"
#include "output.h"
#include "receive.h"
#include "shared_receives.h"

static void payload_begin(struct soft_qp *qp, const struct soft_frame *frame,
			  const struct iovec *pieces)
{
	struct soft_input_payload *payload = &qp->payload;

	payload->left_bytes = frame->length_bytes;
	payload->length_bytes = frame->length_bytes;
	payload->opcode = frame->opcode;
	payload->flags = frame->flags;
	payload->immediate = frame->immediate;
	payload->rkey = frame->rkey;
	payload->addr = frame->remote_addr;
	payload->pieces = pieces;
	payload->piece_skip_bytes = 0;
	if (!frame->length_bytes)
		soft_target_payload_done(qp);
}

/* Whether there is a receive for a message; if not, the peer was cut off. */
static bool has_receive(struct soft_qp *qp)
{
	if (qp->recv_done == qp->recv_posted) {
		soft_qp_cut_off(qp, "a message without credit");
		return false;
	}
	if (qp->srq)
		soft_srq_take(qp);
	return true;
}

static void target_ask_credit(struct soft_qp *qp, const struct soft_frame *frame)
{
	const char *wrong = "asks for receives that are not shared";

	if (qp->srq)
		wrong = soft_srq_ask(qp, frame->credit);
	if (wrong)
		soft_qp_cut_off(qp, wrong);
}

static bool key_is_good(struct soft_qp *qp, const struct soft_frame *frame,
			uint32_t rights)
{
	return !frame->length_bytes ||
	       soft_keys_find(qp, frame->rkey,
			      frame->remote_addr, frame->length_bytes, rights);
}

static void target_write(struct soft_qp *qp, const struct soft_frame *frame)
{
	if (!key_is_good(qp, frame, RBX_REMOTE_WRITE)) {
		soft_qp_refuse(qp, frame->sequence, SOFT_REFUSED_ACCESS);
		return;
	}
	if (frame->flags & SOFT_IMMEDIATE && !has_receive(qp))
		return;
	qp->payload.piece = (struct iovec){
		(void *)(uintptr_t)frame->remote_addr, frame->length_bytes
	};
	payload_begin(qp, frame, &qp->payload.piece);
}

/* Notes that the request has to be answered; NULL: the peer was cut off. */
static struct soft_response *response_add(struct soft_qp *qp,
					  const struct soft_frame *frame,
					  uint32_t length_bytes)
{
	struct soft_frame answer = {
		.opcode = SOFT_RESPONSE,
		.sequence = frame->sequence,
		.length_bytes = length_bytes,
	};
	struct soft_response *response;

	if (qp->response_tail - qp->response_head == qp->answers_max_count) {
		soft_qp_cut_off(qp, "more reads than it may have at a time");
		return NULL;
	}
	response = &qp->responses[qp->response_tail++ & qp->response_mask];
	soft_frame_encode(&answer, &response->header);
	response->sequence = frame->sequence;
	response->rkey = frame->rkey;
	response->addr = frame->remote_addr;
	response->length_bytes = length_bytes;
	response->has_value = false;
	qp->expected++;
	return response;
}

static void target_read(struct soft_qp *qp, const struct soft_frame *frame)
{
	if (!key_is_good(qp, frame, RBX_REMOTE_READ))
		soft_qp_refuse(qp, frame->sequence, SOFT_REFUSED_ACCESS);
	else if (response_add(qp, frame, frame->length_bytes))
		soft_traffic_add_read(&qp->device->traffic,
				      frame->length_bytes);
}

static void target_atomic(struct soft_qp *qp, const struct soft_frame *frame,
			  const uint8_t *body)
{
	struct soft_response *response;
	struct soft_atomic atomic;
	const char *wrong = soft_atomic_decode(frame, body, &atomic);

	if (wrong) {
		soft_qp_cut_off(qp, wrong);
		return;
	}
	if (!soft_atomic_is_allowed(qp, frame)) {
		soft_qp_refuse(qp, frame->sequence, SOFT_REFUSED_ACCESS);
		return;
	}
	/* First, so that a request that cannot be answered is not done. */
	response = response_add(qp, frame, SOFT_VALUE_BYTES);
	if (!response)
		return;
	response->value = soft_atomic_carry_out(frame, &atomic);
	response->has_value = true;
}

static void target_send(struct soft_qp *qp, const struct soft_frame *frame)
{
	uint32_t place = qp->recv_done & qp->recv_mask;

	if (!has_receive(qp))
		return;
	if (frame->length_bytes > qp->receives[place].length_bytes) {
		soft_qp_push_receive(qp, qp->recv_done++,
				     (struct rbx_wc){ .status = -EMSGSIZE });
		soft_qp_refuse(qp, frame->sequence, SOFT_REFUSED_LENGTH);
		return;
	}
	payload_begin(qp, frame,
		      &qp->recv_pieces[(size_t)place * qp->recv_max_sge]);
}

static void target_map(struct soft_qp *qp, const struct soft_frame *frame)
{
	struct soft_frame answer = {
		.opcode = SOFT_MAP_ANSWER,
		.rkey = frame->rkey,
		.status = SOFT_REFUSED_OTHER,
	};
	struct soft_map map = { 0 };
	int fd = -1;

	if (!qp->mappings || soft_output_unsent(qp, SOFT_MAP_ANSWER) ==
				     SOFT_MAPS_ASKED_MAX) {
		soft_qp_cut_off(qp, "asks for more mappings than it may");
		return;
	}
	fd = soft_mapping_offer(qp, frame->rkey, &map);
	if (fd >= 0)
		answer.status = SOFT_OK;
	soft_output_control(qp, &answer, &map, fd);
}

void soft_target_frame(struct soft_qp *qp, const struct soft_frame *frame,
		       const uint8_t *body)
{
	if (frame->opcode == SOFT_MAP_ASK) {
		target_map(qp, frame);
		return;
	}
	if (frame->opcode == SOFT_ASK_CREDIT) {
		target_ask_credit(qp, frame);
		return;
	}
	if (frame->sequence != qp->expected) {
		soft_qp_cut_off(qp, "request out of sequence");
		return;
	}
	if (frame->opcode == SOFT_WRITE)
		target_write(qp, frame);
	else if (frame->opcode == SOFT_READ)
		target_read(qp, frame);
	else if (frame->opcode == SOFT_SEND)
		target_send(qp, frame);
	else
		target_atomic(qp, frame, body);
}

/* The message is complete: completes its receive. */
static void message_done(struct soft_qp *qp)
{
	const struct soft_input_payload *payload = &qp->payload;
	struct rbx_wc wc = {
		.opcode = payload->opcode == SOFT_SEND ? RBX_OP_RECV :
							 RBX_OP_RECV_WRITE,
		.length_bytes = payload->length_bytes,
	};

	if (payload->flags & SOFT_IMMEDIATE) {
		wc.flags = RBX_WC_IMMEDIATE;
		wc.immediate = payload->immediate;
	} else if (payload->flags & SOFT_INVALIDATE) {
		wc.flags = RBX_WC_INVALIDATED;
		wc.invalidated_rkey = payload->rkey;
	}
	soft_qp_push_receive(qp, qp->recv_done++, wc);
}

void soft_target_payload_done(struct soft_qp *qp)
{
	const struct soft_input_payload *payload = &qp->payload;

	if (payload->flags & SOFT_INVALIDATE &&
	    !soft_keys_invalidate(qp, payload->rkey)) {
		soft_qp_refuse(qp, qp->expected, SOFT_REFUSED_ACCESS);
		return;
	}
	if (payload->opcode == SOFT_WRITE)
		soft_traffic_add_write(&qp->device->traffic,
				       payload->length_bytes);
	if (payload->opcode == SOFT_SEND || payload->flags & SOFT_IMMEDIATE)
		message_done(qp);
	qp->expected++;
	if (payload->flags & SOFT_ACK_WANTED)
		qp->ack_wanted = qp->expected;
}

bool soft_target_may_write(struct soft_qp *qp)
{
	const struct soft_input_payload *payload = &qp->payload;

	if (payload->opcode != SOFT_WRITE ||
	    soft_keys_find(qp, payload->rkey, payload->addr,
			   payload->left_bytes, RBX_REMOTE_WRITE))
		return true;
	soft_qp_refuse(qp, qp->expected, SOFT_REFUSED_ACCESS);
	return false;
}
