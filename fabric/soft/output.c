/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.c - gathers frames of a qp into as few sendmsg() calls as possible.
 *
 * A gather is a list of frames, each a header and pieces of user memory, none of which is
 * copied. Their order: the rest of a frame that was cut in two; responses to the peer's
 * READs; one acknowledgement for everything done before and since; control frames; then our
 * own requests. So a chain of posts is one sendmsg(), and so is the answer to a batch of
 * READs.
 *
 * The socket may take any part of it. Frames that it took in full are retired. Of a frame
 * that it cut, the number of bytes sent is kept, and its bytes do not change until all are
 * sent. When the socket takes nothing more the qp is `output_blocked`: the thread that serves
 * its socket is called when there is room, and posts only queue up meanwhile.
 *
 * Under TLS, tls.c takes the place of the socket. What it has encrypted counts as sent, and
 * goes before anything else.
 *
 * A dead socket is not an error here. The peer may have sent the reason before it closed, so
 * the qp fails when the reader has read to the end (receive.c).
 *
 * Memory for the peer's READs is looked up by key under the lock in which the sendmsg() runs
 * (keys.c). If a key is taken back before its response has begun, the peer gets an error. In
 * the middle of a response it ends the connection, because there is no valid data left to
 * send.
 */
#include "output.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "mapping.h"
#include "queue_pair.h"
#include "readable.h"
#include "send_queue.h"

struct gather_frame {
	uint8_t kind; /* enum soft_output_kind */
	uint8_t header_bytes; /* of a control frame: all of it */
	uint64_t bytes; /* of it, in this gather */
};

struct gather {
	struct iovec pieces[SOFT_GATHER_PIECES_MAX];
	struct gather_frame frames[SOFT_GATHER_FRAMES_MAX];
	uint32_t piece_count;
	uint32_t frame_count;
	uint64_t skip_bytes; /* of the next frame, sent before */
	uint32_t reads, sends; /* the qp's counts when this has been sent */
	struct soft_control *carrier; /* its descriptor goes with this gather */
};

static void gather_begin(const struct soft_qp *qp, struct gather *gather)
{
	gather->piece_count = 0;
	gather->frame_count = 0;
	gather->skip_bytes = 0;
	gather->reads = qp->reads_outstanding;
	gather->sends = qp->sends_started;
	gather->carrier = NULL;
}

static bool gather_has_room(const struct gather *gather)
{
	return gather->frame_count < SOFT_GATHER_FRAMES_MAX &&
	       gather->piece_count + 1 + SOFT_SGE_MAX <= SOFT_GATHER_PIECES_MAX;
}

static void gather_piece(struct gather *gather, const void *addr,
			 uint64_t bytes)
{
	uint64_t skip = gather->skip_bytes < bytes ? gather->skip_bytes : bytes;

	gather->skip_bytes -= skip;
	if (skip == bytes)
		return;
	gather->pieces[gather->piece_count++] = (struct iovec){
		.iov_base = (uint8_t *)addr + skip,
		.iov_len = bytes - skip,
	};
	gather->frames[gather->frame_count - 1].bytes += bytes - skip;
}

static void gather_frame(struct gather *gather, uint8_t kind,
			 const void *header, uint8_t bytes)
{
	gather->frames[gather->frame_count++] =
		(struct gather_frame){ .kind = kind, .header_bytes = bytes };
	gather_piece(gather, header, bytes);
}

/*
 * False: the key is not valid any more. This response and all after it are dropped, and the
 * qp is refusing or in error.
 */
static bool gather_response(struct soft_qp *qp, struct gather *gather,
			    uint32_t index)
{
	struct soft_response *response =
		&qp->responses[index & qp->response_mask];
	const void *data = (const void *)(uintptr_t)response->addr;
	bool begun = gather->skip_bytes;

	if (response->has_value)
		data = &response->value;
	else if (response->length_bytes &&
		 !soft_keys_find(qp, response->rkey, response->addr,
				 response->length_bytes, RBX_REMOTE_READ)) {
		qp->response_tail = index;
		if (begun)
			soft_qp_fail(qp, qp->send_done, -ECANCELED);
		else
			soft_qp_refuse(qp, response->sequence,
				       SOFT_REFUSED_ACCESS);
		return false;
	}
	gather_frame(gather, SOFT_OUTPUT_RESPONSE, &response->header,
		     sizeof(response->header));
	gather_piece(gather, data, response->length_bytes);
	return true;
}

static void gather_request(const struct soft_qp *qp, struct gather *gather,
			   uint32_t index)
{
	uint32_t place = index & qp->send_mask;
	struct soft_send *send = &qp->sends[place];
	const struct iovec *piece =
		&qp->send_pieces[(size_t)place * qp->max_sge];
	uint32_t i;

	soft_frame_set_sequence(&send->header, index - qp->mapped_count);
	gather_frame(gather, SOFT_OUTPUT_REQUEST, &send->header,
		     sizeof(send->header));
	soft_send_count(send, &gather->reads, &gather->sends);
	if (soft_is_atomic(send->opcode))
		gather_piece(gather, &send->atomic, sizeof(send->atomic));
	if (soft_is_read(send->opcode))
		return;
	for (i = 0; i < send->piece_count; i++)
		gather_piece(gather, piece[i].iov_base, piece[i].iov_len);
}

/* False: the frame has to wait for the next gather. */
static bool gather_control(struct soft_qp *qp, struct gather *gather,
			   uint32_t index)
{
	struct soft_control *control = &qp->controls[index % SOFT_CONTROL_MAX];

	if (control->fd >= 0) {
		if (gather->carrier)
			return false;
		gather->carrier = control;
	}
	gather_frame(gather, SOFT_OUTPUT_CONTROL, &control->header,
		     (uint8_t)control->length_bytes);
	return true;
}

/* The same for all that are left. */
static bool gather_controls(struct soft_qp *qp, struct gather *gather,
			    uint32_t *control)
{
	for (; *control != qp->control_tail && gather_has_room(gather);
	     (*control)++)
		if (!gather_control(qp, gather, *control))
			return false;
	return true;
}

/* Whether the peer has to be told of receives that were posted. */
static bool credit_is_due(const struct soft_qp *qp)
{
	uint32_t news = qp->recv_posted - qp->credit_told;

	return news && (qp->credit_told == qp->recv_done ||
			news >= qp->recv_depth_count / 2);
}

/*
 * Whether the peer waits for an acknowledgement. It has been told when the socket took the
 * frame, not when that was gathered. A frame that did not fit is gathered again, because no
 * other event may cause it. Both are distances back from `expected`, so an old ack_wanted
 * never looks new for long.
 */
static bool ack_is_due(const struct soft_qp *qp)
{
	return qp->expected - qp->ack_wanted < qp->expected - qp->acked;
}

/* None once a request was refused: the error says that all before it are done. A READ that is
 * refused for its key may have others behind it that were done. */
static void gather_ack(struct soft_qp *qp, struct gather *gather)
{
	struct soft_frame frame = {
		.opcode = SOFT_ACK,
		.sequence = qp->expected - 1,
		.credit = qp->recv_posted,
	};

	if (qp->state != SOFT_QP_CONNECTED ||
	    (!ack_is_due(qp) && !credit_is_due(qp)))
		return;
	soft_frame_encode(&frame, &qp->ack);
	qp->ack_sequence = qp->expected;
	qp->ack_credit = qp->recv_posted;
	gather_frame(gather, SOFT_OUTPUT_ACK, &qp->ack, sizeof(qp->ack));
}

/* The rest of the frame that was cut in two. */
static bool gather_partial(struct soft_qp *qp, struct gather *gather)
{
	gather->skip_bytes = qp->partial_bytes;
	switch (qp->partial_kind) {
	case SOFT_OUTPUT_RESPONSE:
		return gather_response(qp, gather, qp->response_head);
	case SOFT_OUTPUT_ACK:
		gather_frame(gather, SOFT_OUTPUT_ACK, &qp->ack,
			     sizeof(qp->ack));
		return true;
	case SOFT_OUTPUT_CONTROL:
		return gather_control(qp, gather, qp->control_head);
	case SOFT_OUTPUT_REQUEST:
		gather_request(qp, gather, qp->send_started);
		return true;
	default:
		return true;
	}
}

/* The last request always wants an answer, so that none waits without one. */
static void gather_requests(struct soft_qp *qp, struct gather *gather,
			    uint32_t index)
{
	struct soft_send *last = NULL;

	for (; index != qp->send_posted && gather_has_room(gather); index++) {
		if (qp->has_bad && index == qp->bad_index)
			break;
		if (!soft_send_queue_may_start(qp, index, gather->reads,
					       gather->sends))
			break;
		gather_request(qp, gather, index);
		last = &qp->sends[index & qp->send_mask];
	}
	if (last)
		soft_frame_want_ack(&last->header);
}

/* The next request, or the one that was cut in two. */
static bool request_is_bad(const struct soft_qp *qp)
{
	return qp->has_bad && qp->bad_index == qp->send_started;
}

static void gather_all(struct soft_qp *qp, struct gather *gather)
{
	uint32_t response = qp->response_head;
	uint32_t control = qp->control_head;
	uint32_t request = qp->send_started;

	if (request_is_bad(qp) && qp->partial_kind == SOFT_OUTPUT_REQUEST)
		return; /* its rest is missing, and nothing can follow it */
	if (!gather_partial(qp, gather))
		return;
	response += qp->partial_kind == SOFT_OUTPUT_RESPONSE;
	control += qp->partial_kind == SOFT_OUTPUT_CONTROL;
	request += qp->partial_kind == SOFT_OUTPUT_REQUEST;
	for (; response != qp->response_tail && gather_has_room(gather);
	     response++)
		if (!gather_response(qp, gather, response))
			break;
	/* An acknowledgement must not overtake a response. */
	if (response == qp->response_tail &&
	    qp->partial_kind != SOFT_OUTPUT_ACK && gather_has_room(gather))
		gather_ack(qp, gather);
	/* Nor may the error that ends the connection. */
	if (response == qp->response_tail &&
	    !gather_controls(qp, gather, &control))
		return;
	if (qp->state != SOFT_QP_CONNECTED)
		return;
	gather_requests(qp, gather, request);
	/* A message that may not be sent has asked for credit. */
	if (response == qp->response_tail)
		(void)gather_controls(qp, gather, &control);
}

static void frame_retire(struct soft_qp *qp, uint8_t kind)
{
	struct soft_response *response;

	switch (kind) {
	case SOFT_OUTPUT_RESPONSE:
		response = &qp->responses[qp->response_head++ &
					  qp->response_mask];
		qp->acked = response->sequence + 1;
		break;
	case SOFT_OUTPUT_ACK:
		/* A response may have been sent between its two halves. */
		if ((int32_t)(qp->ack_sequence - qp->acked) > 0)
			qp->acked = qp->ack_sequence;
		qp->credit_told = qp->ack_credit;
		break;
	case SOFT_OUTPUT_CONTROL:
		qp->control_head++;
		break;
	default:
		soft_send_count(&qp->sends[qp->send_started & qp->send_mask],
				&qp->reads_outstanding, &qp->sends_started);
		qp->send_started++;
		soft_send_queue_end_bad(qp);
	}
}

/* The socket took `sent` bytes of the gather. False: it cut a frame. */
static bool gather_retire(struct soft_qp *qp, const struct gather *gather,
			  uint64_t sent)
{
	const struct gather_frame *frame = gather->frames;
	const struct gather_frame *end = frame + gather->frame_count;

	for (; frame != end; frame++) {
		if (sent < frame->bytes) {
			qp->partial_bytes += sent;
			qp->partial_kind = qp->partial_bytes ?
				frame->kind : SOFT_OUTPUT_NONE;
			return false;
		}
		sent -= frame->bytes;
		qp->partial_kind = SOFT_OUTPUT_NONE;
		qp->partial_bytes = 0;
		qp->moved_bytes -= frame->header_bytes; /* headers are not counted as moved */
		frame_retire(qp, frame->kind);
	}
	return true;
}

/* Returns bytes or -errno. */
static ssize_t gather_send_plain(const struct soft_qp *qp, struct gather *gather)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(SOFT_MAP_FDS * sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = gather->pieces,
		.msg_iovlen = gather->piece_count,
	};
	ssize_t sent;

	if (gather->carrier) {
		const int fds[SOFT_MAP_FDS] = { gather->carrier->fd,
						qp->domain->shown.fd };

		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.space);
	}
	do {
		sent = sendmsg(qp->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	if (sent > 0 && gather->carrier) {
		close(gather->carrier->fd);
		gather->carrier->fd = -1;
	}
	return sent < 0 ? -errno : sent;
}

/* The same. */
static ssize_t gather_send(struct soft_qp *qp, struct gather *gather)
{
	if (qp->tls) /* never with a descriptor: that is for local sockets */
		return soft_tls_send(qp->tls, gather->pieces, gather->piece_count);
	return gather_send_plain(qp, gather);
}

static void output_block(struct soft_qp *qp, bool blocked)
{
	if (qp->output_blocked == blocked)
		return;
	qp->output_blocked = blocked;
	if (qp->state < SOFT_QP_ERROR)
		soft_qp_watch_output(qp, blocked);
}

static bool send_is_readable(const struct soft_qp *qp, uint32_t index)
{
	uint32_t place = index & qp->send_mask, i;

	if (soft_is_read(qp->sends[place].opcode))
		return true;
	for (i = 0; i < qp->sends[place].piece_count; i++)
		if (!soft_memory_is_readable(
			    &qp->send_pieces[(size_t)place * qp->max_sge + i]))
			return false;
	return true;
}

/*
 * Memory under SOFT_ANY_LKEY, or that its owner has unmapped, is invalid. The system refused
 * all that was gathered, so the bad request has to be found. Those before it have to be done
 * first, as on a NIC. If there is no bad request, it was registered memory that the peer
 * reads.
 */
static void output_faulted(struct soft_qp *qp)
{
	uint32_t index = qp->send_started;

	while (index != qp->send_posted && send_is_readable(qp, index))
		index++;
	if (index == qp->send_posted || qp->has_bad) {
		soft_qp_lose(qp, EFAULT);
		return;
	}
	soft_send_queue_fault(qp, index);
}

static void output_died(struct soft_qp *qp, int error)
{
	qp->output_error = error;
	output_block(qp, false);
}

/* And was told: it has got all that is for it. */
static bool peer_was_refused(const struct soft_qp *qp)
{
	return qp->state == SOFT_QP_REFUSING && qp->control_head == qp->control_tail;
}

bool soft_output_is_ack_alone(const struct soft_qp *qp)
{
	return qp->state == SOFT_QP_CONNECTED && ack_is_due(qp) &&
	       !credit_is_due(qp) && qp->partial_kind == SOFT_OUTPUT_NONE &&
	       qp->response_head == qp->response_tail &&
	       qp->control_head == qp->control_tail &&
	       qp->send_started == qp->send_posted;
}

void soft_output_flush(struct soft_qp *qp)
{
	struct gather gather;
	uint64_t flushed;
	ssize_t sent;

	qp->holds_ack = false;
	for (flushed = 0; flushed < SOFT_FLUSH_MAX_BYTES;
	     flushed += (uint64_t)sent) {
		if (qp->state >= SOFT_QP_ERROR || qp->output_error)
			return;
		sent = qp->tls ? soft_tls_push(qp->tls) : 0;
		if (sent == -EAGAIN)
			break;
		if (sent < 0) {
			output_died(qp, (int)-sent);
			return;
		}
		if (peer_was_refused(qp)) {
			soft_qp_fail(qp, qp->send_done, -ECANCELED);
			return;
		}
		soft_mapping_carry_out_queued(qp);
		gather_begin(qp, &gather);
		gather_all(qp, &gather);
		if (!gather.frame_count) {
			output_block(qp, false);
			return;
		}
		sent = gather_send(qp, &gather);
		if (sent == -EFAULT) {
			output_faulted(qp);
			sent = 0;
			continue;
		}
		if (sent < 0 && sent != -EAGAIN) {
			output_died(qp, (int)-sent);
			return;
		}
		if (sent > 0)
			qp->moved_bytes += (uint64_t)sent;
		/* TLS takes so much at a time; soft_tls_push() tells if the socket is full. */
		if (sent < 0 ||
		    (!gather_retire(qp, &gather, (uint64_t)sent) && !qp->tls))
			break;
	}
	output_block(qp, true);
}

void soft_output_control(struct soft_qp *qp, const struct soft_frame *frame,
			 const struct soft_map *map, int fd)
{
	struct soft_control *control =
		&qp->controls[qp->control_tail++ % SOFT_CONTROL_MAX];

	assert(qp->control_tail - qp->control_head <= SOFT_CONTROL_MAX);
	soft_frame_encode(frame, &control->header);
	control->length_bytes = SOFT_FRAME_BYTES;
	if (map) {
		soft_map_encode(map, &control->map);
		control->length_bytes += SOFT_MAP_BYTES;
	}
	control->fd = fd;
}

uint32_t soft_output_unsent(const struct soft_qp *qp, uint8_t opcode)
{
	uint32_t index, count = 0;

	for (index = qp->control_head; index != qp->control_tail; index++)
		count += qp->controls[index % SOFT_CONTROL_MAX].header.opcode ==
			 opcode;
	return count;
}
