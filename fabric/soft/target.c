/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * target.c - carries out what the peer asks of our memory.
 *
 * Requests are carried out in the order in which they come. A WRITE's payload
 * goes straight into the memory behind its key, a SEND's into the oldest
 * receive. A READ is noted; output.c gathers its data when it sends it. How
 * far we are is `expected`. When output is next sent, which is after the
 * look-ahead was worked off, one acknowledgement is made for all that was done
 * if the peer waits for any of it.
 *
 * A request that may not be carried out is refused: the peer is told which and
 * why, and the connection ends. A request that cannot come from a right-minded
 * peer (out of sequence, more READs than its queue is deep, a SEND for which
 * it has no credit) cuts the peer off.
 *
 * While the payload of a WRITE is under way the key may be taken back: it is
 * looked up again before each recvmsg(), under the lock that keys.c waits for.
 */
#include <errno.h>

#include "device.h"
#include "mapping.h"
#include "output.h"
#include "receive.h"

static void payload_begin(struct soft_qp *qp, const struct soft_frame *frame,
			  void *addr)
{
	struct soft_input_payload *payload = &qp->payload;

	payload->left_bytes = frame->length_bytes;
	payload->opcode = frame->opcode;
	payload->rkey = frame->rkey;
	payload->ack_wanted = frame->flags & SOFT_ACK_WANTED;
	payload->addr = frame->remote_addr;
	payload->piece = (struct iovec){ addr, frame->length_bytes };
	payload->pieces = &payload->piece;
	payload->piece_skip_bytes = 0;
	if (!frame->length_bytes)
		soft_target_payload_done(qp);
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
	payload_begin(qp, frame, (void *)(uintptr_t)frame->remote_addr);
}

static void target_read(struct soft_qp *qp, const struct soft_frame *frame)
{
	struct soft_frame answer = {
		.opcode = SOFT_RESPONSE,
		.sequence = frame->sequence,
		.length_bytes = frame->length_bytes,
	};
	struct soft_response *response;

	if (!key_is_good(qp, frame, RBX_REMOTE_READ)) {
		soft_qp_refuse(qp, frame->sequence, SOFT_REFUSED_ACCESS);
		return;
	}
	if (qp->response_tail - qp->response_head == qp->peer_depth_count) {
		soft_qp_cut_off(qp, "more reads than its queue is deep");
		return;
	}
	response = &qp->responses[qp->response_tail++ & qp->response_mask];
	soft_frame_encode(&answer, &response->header);
	response->sequence = frame->sequence;
	response->rkey = frame->rkey;
	response->addr = frame->remote_addr;
	response->length_bytes = frame->length_bytes;
	qp->expected++;
}

static void target_send(struct soft_qp *qp, const struct soft_frame *frame)
{
	struct soft_receive *receive;

	if (qp->recv_done == qp->recv_posted) {
		soft_qp_cut_off(qp, "a send without credit");
		return;
	}
	receive = &qp->receives[qp->recv_done & qp->recv_mask];
	if (frame->length_bytes > receive->length_bytes) {
		soft_qp_push_receive(qp, qp->recv_done++, -EMSGSIZE, 0);
		soft_qp_refuse(qp, frame->sequence, SOFT_REFUSED_LENGTH);
		return;
	}
	payload_begin(qp, frame, receive->addr);
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

	if (!qp->mappings || qp->control_tail - qp->control_head >=
			     SOFT_MAPS_ASKED_MAX * 2) {
		soft_qp_cut_off(qp, "asks for more mappings than it may");
		return;
	}
	fd = soft_mapping_offer(qp, frame->rkey, &map);
	if (fd >= 0)
		answer.status = SOFT_OK;
	soft_output_control(qp, &answer, &map, fd);
}

void soft_target_frame(struct soft_qp *qp, const struct soft_frame *frame)
{
	if (frame->opcode == SOFT_MAP_ASK) {
		target_map(qp, frame);
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
	else
		target_send(qp, frame);
}

void soft_target_payload_done(struct soft_qp *qp)
{
	uint32_t length_bytes = (uint32_t)qp->payload.piece.iov_len;

	if (qp->payload.opcode == SOFT_SEND)
		soft_qp_push_receive(qp, qp->recv_done++, 0, length_bytes);
	qp->expected++;
	if (qp->payload.ack_wanted)
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
