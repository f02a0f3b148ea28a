/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * receive.c - splits the incoming stream into frames with as few system calls as possible.
 *
 * One call brings the rest of the current payload straight to its destination, and what
 * follows it into the look-ahead buffer: usually many small frames, whose payload is copied
 * from there. After large payloads the look-ahead is short, so nearly all of the next payload
 * goes straight to its destination too. The look-ahead is processed at once, to the last
 * complete header; the rest is moved to its front.
 *
 * Nothing from the peer is trusted: frame.c decodes the headers, and target.c and initiator.c
 * check them against keys, queues and sequence. The first error ends the connection with its
 * reason. A qp that is refusing a request of the peer reads on and drops everything, so that
 * a peer which is still sending learns the reason.
 *
 * A READ of SOFT_DIRECT_BYTES or more into invalid memory fails without other harm, because
 * the system writes there, even what was in the look-ahead. For short ones that would double
 * the time of each (0.8 us to 1.7 for 4 KiB, bench/fabric_rate). So there a bad pointer is a
 * SIGSEGV as in memcpy().
 *
 * Descriptors that come with the stream are kept in order until their frame has come. If more
 * come than were asked for, the connection ends. If this process has no free descriptor
 * number, a descriptor is lost on its way to us, which is not the peer's fault: -1 takes its
 * place, and its memory goes by frames.
 */
#include "receive.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "checked_copy.h"
#include "descriptors.h"
#include "mapping.h"
#include "output.h"

/* What follows the first `skip` bytes of a piece, at most max_bytes of it. */
static struct iovec payload_part(const struct iovec *piece, uint64_t skip,
				 uint64_t max_bytes)
{
	struct iovec part = {
		.iov_base = (uint8_t *)piece->iov_base + skip,
		.iov_len = piece->iov_len - skip,
	};

	if (part.iov_len > max_bytes)
		part.iov_len = max_bytes;
	return part;
}

/* Advances by bytes that have arrived at their destination. */
static void payload_advance(struct soft_qp *qp, uint64_t bytes)
{
	struct soft_input_payload *payload = &qp->payload;

	qp->moved_bytes += bytes;
	if (payload->opcode == SOFT_RESPONSE)
		qp->stalled_ns = 0; /* it comes before the message that waits */
	payload->left_bytes -= bytes;
	payload->addr += bytes;
	while (bytes) {
		uint64_t room = payload->pieces->iov_len -
				payload->piece_skip_bytes;

		if (bytes < room) {
			payload->piece_skip_bytes += bytes;
			return;
		}
		bytes -= room;
		payload->pieces++;
		payload->piece_skip_bytes = 0;
	}
}

static void payload_done(struct soft_qp *qp)
{
	if (qp->payload.opcode == SOFT_RESPONSE)
		soft_initiator_payload_done(qp);
	else
		soft_target_payload_done(qp);
}

/* False: the memory of a READ is invalid. */
static bool payload_place(const struct soft_input_payload *payload,
			  const struct iovec *part, const uint8_t *bytes)
{
	if (payload->opcode == SOFT_RESPONSE &&
	    payload->length_bytes >= SOFT_DIRECT_BYTES)
		return soft_checked_copy(part->iov_base, bytes, part->iov_len);
	memcpy(part->iov_base, bytes, part->iov_len);
	return true;
}

/* The oldest request that is not done is a READ into invalid memory. */
static void read_faulted(struct soft_qp *qp)
{
	soft_qp_fail(qp, qp->send_done, -EFAULT);
}

/* Copies payload out of the look-ahead. */
static void payload_copy(struct soft_qp *qp)
{
	struct soft_input_payload *payload = &qp->payload;
	uint64_t there = qp->lookahead_end - qp->lookahead_begin;
	struct iovec part;

	if (there > payload->left_bytes)
		there = payload->left_bytes;
	while (there) {
		part = payload_part(payload->pieces, payload->piece_skip_bytes,
				    there);
		if (!payload_place(payload, &part,
				   qp->lookahead + qp->lookahead_begin)) {
			read_faulted(qp);
			return;
		}
		payload_advance(qp, part.iov_len);
		qp->lookahead_begin += (uint32_t)part.iov_len;
		there -= part.iov_len;
	}
	if (!payload->left_bytes)
		payload_done(qp);
}

static void frame_dispatch(struct soft_qp *qp, const struct soft_frame *frame,
			   const uint8_t *body)
{
	switch (frame->opcode) {
	case SOFT_WRITE:
	case SOFT_READ:
	case SOFT_SEND:
	case SOFT_COMPARE_SWAP:
	case SOFT_FETCH_ADD:
	case SOFT_MAP_ASK:
	case SOFT_ASK_CREDIT:
		soft_target_frame(qp, frame, body);
		break;
	case SOFT_RESPONSE:
	case SOFT_ACK:
	case SOFT_ERROR:
		soft_initiator_frame(qp, frame);
		break;
	default: /* MAP_ANSWER: decoding lets no other pass */
		soft_mapping_answer(qp, frame, body);
	}
	if (qp->state != SOFT_QP_CONNECTED || !soft_frame_payload_bytes(frame))
		return;
	qp->last_payload_bytes = soft_frame_payload_bytes(frame);
}

/* Takes one frame out of the look-ahead. False: it is not complete. */
static bool frame_take(struct soft_qp *qp)
{
	uint32_t there = qp->lookahead_end - qp->lookahead_begin;
	const uint8_t *bytes = qp->lookahead + qp->lookahead_begin;
	struct soft_frame frame;
	const char *wrong;
	uint32_t body_bytes;

	if (there < SOFT_FRAME_BYTES)
		return false;
	wrong = soft_frame_decode(bytes, &frame);
	if (wrong) {
		soft_qp_cut_off(qp, wrong);
		return false;
	}
	body_bytes = soft_frame_body_bytes(&frame);
	if (there < SOFT_FRAME_BYTES + body_bytes)
		return false;
	qp->lookahead_begin += SOFT_FRAME_BYTES + body_bytes;
	frame_dispatch(qp, &frame, bytes + SOFT_FRAME_BYTES);
	return true;
}

static void lookahead_work_off(struct soft_qp *qp)
{
	uint32_t left;

	while (qp->state == SOFT_QP_CONNECTED &&
	       qp->lookahead_begin != qp->lookahead_end) {
		if (qp->payload.left_bytes)
			payload_copy(qp);
		else if (!frame_take(qp))
			break;
	}
	if (qp->state != SOFT_QP_CONNECTED)
		qp->lookahead_begin = qp->lookahead_end;
	left = qp->lookahead_end - qp->lookahead_begin;
	if (qp->lookahead_begin && left)
		memmove(qp->lookahead, qp->lookahead + qp->lookahead_begin,
			left);
	qp->lookahead_begin = 0;
	qp->lookahead_end = left;
}

/* Fills in where the next bytes go; returns how many are wanted. */
static size_t input_plan(struct soft_qp *qp, struct msghdr *message)
{
	const struct soft_input_payload *payload = &qp->payload;
	const struct iovec *piece = payload->pieces;
	uint64_t left = payload->left_bytes, skip = payload->piece_skip_bytes;
	struct iovec *parts = message->msg_iov;
	size_t wanted = 0, count = 0, lookahead = SOFT_LOOKAHEAD_BYTES;

	if (left > SOFT_RECEIVE_MAX_BYTES)
		left = SOFT_RECEIVE_MAX_BYTES;
	for (; left; piece++, skip = 0) {
		parts[count] = payload_part(piece, skip, left);
		left -= parts[count].iov_len;
		wanted += parts[count++].iov_len;
	}
	if (qp->last_payload_bytes >= SOFT_DIRECT_BYTES)
		lookahead = SOFT_LOOKAHEAD_SHORT_BYTES;
	/* Frames follow the payload only when all of it fits in the plan. */
	if (wanted == payload->left_bytes) {
		parts[count].iov_base = qp->lookahead + qp->lookahead_end;
		parts[count].iov_len = lookahead - qp->lookahead_end;
		wanted += parts[count++].iov_len;
	}
	message->msg_iovlen = count;
	return wanted;
}

/* The descriptors of one answer, as each comes with a sendmsg() of its own. */
static void fds_miss(struct soft_qp *qp, uint8_t kept)
{
	while (qp->fd_count > kept)
		soft_descriptor_close(qp->fds[--qp->fd_count]);
	while (qp->fd_count <= SOFT_MAP_FDS_MAX &&
	       qp->fd_count < kept + SOFT_MAP_FDS)
		qp->fds[qp->fd_count++] = -1;
}

static void fds_keep(struct soft_qp *qp, struct msghdr *message)
{
	uint8_t kept = qp->fd_count;

	qp->fd_count = soft_descriptors_keep(message, qp->fds, kept,
					     SOFT_MAP_FDS_MAX + 1);
	if (message->msg_flags & MSG_CTRUNC &&
	    qp->fd_count - kept < SOFT_MAP_FDS)
		fds_miss(qp, kept);
	if (qp->fd_count > soft_mapping_fds_due(qp))
		soft_qp_cut_off(qp, "more descriptors than were asked for");
}

/* One destination, the usual case, has a shorter path through the system. */
static ssize_t input_take(const struct soft_qp *qp, struct msghdr *message)
{
	if (message->msg_iovlen == 1 && !message->msg_control)
		return recv(qp->fd, message->msg_iov[0].iov_base,
			    message->msg_iov[0].iov_len, MSG_DONTWAIT);
	return recvmsg(qp->fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

/* Returns bytes, 0 at the end, or -errno. *more: the socket may have more. */
static ssize_t input_read(struct soft_qp *qp, bool *more)
{
	struct iovec parts[SOFT_SGE_MAX + 1];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE((SOFT_MAP_FDS_MAX + 1) * sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = parts };
	size_t wanted;
	ssize_t got;

	wanted = input_plan(qp, &message);
	if (qp->mappings) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	do {
		got = input_take(qp, &message);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (qp->mappings &&
	    (message.msg_controllen || message.msg_flags & MSG_CTRUNC))
		fds_keep(qp, &message);
	*more = (size_t)got == wanted;
	return got;
}

/*
 * The same under TLS. All goes through the look-ahead: payload in place would save a copy,
 * but a SIGSEGV would be the answer to a READ into memory that is none.
 */
static ssize_t text_read(struct soft_qp *qp, bool *more)
{
	ssize_t got = soft_tls_receive(qp->tls, qp->lookahead + qp->lookahead_end,
				       SOFT_LOOKAHEAD_BYTES - qp->lookahead_end, more);

	if (got == -EBADMSG)
		qp->qp.cut_off = "what it sent was changed on its way (TLS)";
	return got;
}

static ssize_t socket_read(struct soft_qp *qp, bool *more)
{
	return qp->tls ? text_read(qp, more) : input_read(qp, more);
}

static void input_arrived(struct soft_qp *qp, size_t bytes)
{
	struct soft_input_payload *payload = &qp->payload;
	size_t direct = bytes < payload->left_bytes ? bytes :
						      payload->left_bytes;

	if (qp->tls)
		direct = 0;
	if (direct) {
		payload_advance(qp, direct);
		if (!payload->left_bytes)
			payload_done(qp);
	}
	qp->lookahead_end += (uint32_t)(bytes - direct);
	lookahead_work_off(qp);
}

bool soft_receive(struct soft_qp *qp)
{
	bool received = false;
	ssize_t got;
	bool more;
	int round;

	for (round = 0; round < SOFT_RECEIVE_ROUNDS_MAX; round++) {
		if (qp->state >= SOFT_QP_ERROR)
			break;
		if (qp->state == SOFT_QP_REFUSING)
			qp->payload.left_bytes = 0;
		else if (qp->payload.left_bytes && !soft_target_may_write(qp))
			continue;
		got = socket_read(qp, &more);
		if (got == -EAGAIN)
			break;
		if (got == -EFAULT && qp->payload.left_bytes &&
		    qp->payload.opcode == SOFT_RESPONSE) {
			read_faulted(qp);
			break;
		}
		if (got <= 0) {
			soft_qp_lose(qp, got ? (int)-got : qp->output_error);
			break;
		}
		received = true;
		input_arrived(qp, (size_t)got);
		if (!more)
			break;
	}
	return received;
}
