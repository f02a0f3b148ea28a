/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send_queue.c - takes work requests, and completes them in order.
 *
 * A post copies the request and its scatter list into the next place of a ring, with the
 * frame header already made, and passes the ring to output.c: the posting thread itself sends
 * what the socket takes. A completed request is reported if it was signaled. Its place is
 * free again when a completion at or behind it has been polled, as on a NIC. A program that
 * never signals finds its queue full.
 *
 * The data of an inline WRITE is copied at the end of the post, and only if the socket has
 * not taken it by then. So it is the system that reads the program's memory, which may be
 * invalid.
 *
 * If the memory of the peer is mapped and nothing is outstanding, a request is done by memcpy
 * during the post and never enters the ring (mapping.c). If something is outstanding it waits
 * in the ring for the same.
 *
 * A SEND, or a WRITE with immediate, is sent only when the peer has a receive for it, which
 * it announces by credit; so no frame ever meets a receiver that is not ready. Requests
 * behind it wait too. The service thread fails it after SOFT_RECEIVER_WAIT_MS. That time
 * begins anew with each part of an answer to a READ, since all such READs come before it. It
 * does not count while bytes that were sent before it are on their way.
 *
 * A peer with shared receives is asked for credit only when the message can be sent soon,
 * because the peer withholds promised receives from others. So first all but SOFT_ASK_BYTES
 * of what comes before the message must have been sent, and all but as much of the data of
 * READs must have come, because the credit follows behind that.
 *
 * A fenced request waits until all READs before it are done. The target gathers the data of a
 * READ when it sends it. By then it may have placed a WRITE that came later, or ended a key.
 * So a SEND with invalidate is always fenced.
 */
#include "send_queue.h"

#include <errno.h>
#include <string.h>

#include "checked_copy.h"
#include "deadlines.h"
#include "device.h"
#include "mapping.h"
#include "output.h"
#include "receive.h"

/* Flags that any operation may have; a few operations have more. */
#define PLAIN_FLAGS (RBX_WR_SIGNALED | RBX_WR_INLINE | RBX_WR_FENCE)

static uint32_t free_places(struct soft_qp *qp)
{
	/*
	 * Acquire, with the release in cq_pop(): the poller has read the completion out of
	 * its slot before a new one can be put there.
	 */
	uint32_t freed = atomic_load_explicit(&qp->send_freed,
					      memory_order_acquire);

	return qp->qp.send_depth_count - (qp->send_posted - freed);
}

/* Checks flags and lists that not every operation may have. */
static bool operation_is_possible(const struct rbx_wr *wr, uint64_t bytes)
{
	const uint8_t both = RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE;

	if (soft_is_atomic(wr->opcode) &&
	    (wr->sge_count != 1 || bytes != SOFT_VALUE_BYTES))
		return false;
	if (wr->opcode == RBX_OP_OPEN_WINDOW)
		return !wr->sge_count &&
		       !(wr->flags & ~(RBX_WR_SIGNALED | RBX_WR_FENCE));
	if (wr->flags & RBX_WR_INVALIDATE && wr->opcode != RBX_OP_SEND)
		return false;
	if (wr->flags & RBX_WR_IMMEDIATE && soft_is_read(wr->opcode))
		return false;
	return (wr->flags & both) != both;
}

int soft_wr_check(const struct soft_qp *qp, const struct rbx_wr *wr,
		  uint32_t *length_bytes)
{
	uint64_t sum = 0;
	uint32_t i;

	if (wr->opcode > RBX_OP_FETCH_ADD || wr->sge_count > qp->max_sge)
		return -EINVAL;
	for (i = 0; i < wr->sge_count; i++)
		sum += wr->sges[i].length_bytes;
	if (sum > SOFT_MESSAGE_MAX_BYTES)
		return -EINVAL;
	if (wr->flags & RBX_WR_INLINE && (soft_is_read(wr->opcode) ||
					  sum > qp->qp.max_inline_bytes))
		return -EINVAL;
	if ((wr->opcode > RBX_OP_SEND || wr->flags > PLAIN_FLAGS) &&
	    !operation_is_possible(wr, sum))
		return -EINVAL;
	*length_bytes = (uint32_t)sum;
	return 0;
}

bool soft_wr_may_use_local(struct soft_qp *qp, const struct rbx_wr *wr)
{
	uint32_t rights = soft_is_read(wr->opcode) ? RBX_LOCAL_WRITE : 0;
	uint32_t i;

	if (wr->flags & RBX_WR_INLINE)
		return true;
	for (i = 0; i < wr->sge_count; i++)
		if (!soft_qp_may_use(qp, &wr->sges[i], rights))
			return false;
	return true;
}

static void header_add_operation(struct soft_send *send,
				 const struct rbx_wr *wr,
				 struct soft_frame *frame)
{
	const struct soft_atomic atomic = {
		.compare_add = wr->compare_add,
		.swap = wr->opcode == RBX_OP_COMPARE_SWAP ? wr->swap : 0,
	};

	if (wr->flags & RBX_WR_IMMEDIATE) {
		frame->flags |= SOFT_IMMEDIATE;
		frame->immediate = wr->immediate;
	}
	if (wr->flags & RBX_WR_INVALIDATE) {
		frame->flags |= SOFT_INVALIDATE;
		frame->rkey = wr->invalidate_rkey;
	}
	if (soft_is_atomic(wr->opcode)) {
		frame->length_bytes = 0;
		soft_atomic_encode(&atomic, &send->atomic);
	}
}

/* Fills in all but the sequence, which is known when the frame is sent. */
static void header_fill(struct soft_send *send, const struct rbx_wr *wr)
{
	static const uint8_t opcodes[] = {
		[RBX_OP_WRITE] = SOFT_WRITE,
		[RBX_OP_READ] = SOFT_READ,
		[RBX_OP_SEND] = SOFT_SEND,
		[RBX_OP_OPEN_WINDOW] = SOFT_WRITE, /* of no bytes: see window.c */
		[RBX_OP_COMPARE_SWAP] = SOFT_COMPARE_SWAP,
		[RBX_OP_FETCH_ADD] = SOFT_FETCH_ADD,
	};
	struct soft_frame frame = {
		.opcode = opcodes[wr->opcode],
		.flags = wr->flags & RBX_WR_SIGNALED ? SOFT_ACK_WANTED : 0,
		.length_bytes = send->length_bytes,
		.rkey = wr->opcode == RBX_OP_SEND ? 0 : wr->rkey,
		.remote_addr = wr->opcode == RBX_OP_SEND ? 0 : wr->remote_addr,
	};

	if (wr->opcode > RBX_OP_SEND || wr->flags > PLAIN_FLAGS)
		header_add_operation(send, wr, &frame);
	soft_frame_encode(&frame, &send->header);
}

static uint8_t *inline_bytes_of(const struct soft_qp *qp, uint32_t place)
{
	return qp->inline_bytes +
	       (size_t)place * (qp->qp.max_inline_bytes + 1u);
}

/* Its data is copied if the socket has not taken it. */
static bool is_inline_write(uint8_t opcode, uint8_t flags)
{
	return flags & RBX_WR_INLINE && opcode == RBX_OP_WRITE;
}

static void pieces_fill(struct soft_qp *qp, struct soft_send *send,
			const struct rbx_wr *wr, uint32_t place)
{
	struct iovec *pieces = &qp->send_pieces[(size_t)place * qp->max_sge];
	const bool copies = wr->flags & RBX_WR_INLINE &&
			    !is_inline_write(wr->opcode, wr->flags);
	uint8_t *inline_bytes = inline_bytes_of(qp, place);
	uint32_t i, count = 0, copied = 0;

	for (i = 0; i < wr->sge_count; i++) {
		void *addr = (void *)(uintptr_t)wr->sges[i].addr;
		uint32_t length_bytes = wr->sges[i].length_bytes;

		if (!length_bytes)
			continue;
		if (copies) {
			memcpy(inline_bytes + copied, addr, length_bytes);
			addr = inline_bytes + copied;
			copied += length_bytes;
		}
		pieces[count++] = (struct iovec){ addr, length_bytes };
	}
	send->piece_count = (uint8_t)count;
}

static int send_queue_add(struct soft_qp *qp, const struct rbx_wr *wr)
{
	uint32_t index = qp->send_posted;
	uint32_t place = index & qp->send_mask;
	struct soft_send *send = &qp->sends[place];
	uint32_t length_bytes;

	if (soft_wr_check(qp, wr, &length_bytes))
		return -EINVAL;
	if (!free_places(qp))
		return -ENOMEM;
	send->wr_id = wr->wr_id;
	send->opcode = wr->opcode;
	send->flags = wr->flags;
	send->length_bytes = length_bytes;
	send->piece_count = 0;
	qp->send_posted++;
	if (qp->state >= SOFT_QP_ERROR) {
		soft_qp_push_send(qp, index, -ECANCELED);
		qp->send_done = qp->send_started = qp->send_posted;
		return 0;
	}
	if (!soft_wr_may_use_local(qp, wr)) {
		soft_qp_fail(qp, index, -EFAULT);
		return 0;
	}
	header_fill(send, wr);
	pieces_fill(qp, send, wr, place);
	send->mapped = soft_mapping_covers(qp, wr, length_bytes);
	return 0;
}

/* The credit for a waiting SEND may be in the socket already. */
static void send_queue_start(struct soft_qp *qp)
{
	soft_output_flush(qp);
	if (qp->is_stalled && qp->state == SOFT_QP_CONNECTED &&
	    soft_receive(qp))
		soft_output_flush(qp);
}

static bool inline_keep(struct soft_qp *qp, uint32_t place)
{
	struct iovec *piece = &qp->send_pieces[(size_t)place * qp->max_sge];
	const struct iovec *end = piece + qp->sends[place].piece_count;
	uint8_t *bytes = inline_bytes_of(qp, place);

	for (; piece != end; piece++) {
		if (!soft_checked_copy(bytes, piece->iov_base, piece->iov_len))
			return false;
		piece->iov_base = bytes;
		bytes += piece->iov_len;
	}
	return true;
}

/* For requests from this index on that the socket has not taken. */
static void inline_keep_rest(struct soft_qp *qp, uint32_t index)
{
	const struct soft_send *send;

	if ((int32_t)(qp->send_started - index) > 0)
		index = qp->send_started;
	for (; index != qp->send_posted && !qp->has_bad; index++) {
		send = &qp->sends[index & qp->send_mask];
		if (is_inline_write(send->opcode, send->flags) &&
		    !inline_keep(qp, index & qp->send_mask))
			soft_send_queue_fault(qp, index);
	}
}

int soft_post_send(struct rbx_qp *base, struct rbx_wr *first,
		   struct rbx_wr **bad)
{
	struct soft_qp *qp = soft_qp_of(base);
	struct rbx_wr *wr = first;
	uint32_t posted;
	int err = 0;

	soft_qp_lock(qp);
	posted = qp->send_posted;
	if (qp->mappings && qp->send_done == qp->send_posted &&
	    qp->state == SOFT_QP_CONNECTED)
		wr = soft_mapping_carry_out(qp, first, free_places(qp));
	for (; wr; wr = wr->next) {
		err = send_queue_add(qp, wr);
		if (err)
			break;
	}
	soft_overload_posted(&qp->device->overload, qp->send_posted - posted);
	if (qp->send_started != qp->send_posted && !qp->output_blocked)
		send_queue_start(qp);
	if (qp->send_started != qp->send_posted)
		inline_keep_rest(qp, posted);
	soft_qp_unlock(qp);
	if (err && bad)
		*bad = wr;
	return err;
}

static void stall_begin(struct soft_qp *qp)
{
	if (qp->is_stalled)
		return;
	qp->is_stalled = true;
	qp->stalled_ns = 0;
	atomic_fetch_add_explicit(&qp->device->stalled_count, 1,
				  memory_order_relaxed);
	soft_service_wake(qp->device);
}

void soft_send_queue_end_stall(struct soft_qp *qp)
{
	if (!qp->is_stalled)
		return;
	qp->is_stalled = false;
	atomic_fetch_sub_explicit(&qp->device->stalled_count, 1,
				  memory_order_relaxed);
}

/* Messages from this one on, as many as one frame may ask for. */
static uint32_t messages_from(const struct soft_qp *qp, uint32_t index)
{
	uint64_t before_bytes = 0;
	uint32_t count = 0;

	for (; index != qp->send_posted && count < SOFT_ASK_MAX &&
	       before_bytes < SOFT_ASK_BYTES;
	     index++) {
		const struct soft_send *send = &qp->sends[index & qp->send_mask];

		count += soft_is_message(send->opcode, send->flags);
		before_bytes += send->length_bytes;
	}
	return count;
}

/* What has to be sent before a request. There are at most those of one gather. */
static uint64_t bytes_before(const struct soft_qp *qp, uint32_t index)
{
	const uint64_t gone_bytes =
		qp->partial_kind == SOFT_OUTPUT_REQUEST ? qp->partial_bytes : 0;
	uint64_t bytes = 0;
	uint32_t i;

	for (i = qp->send_started; i != index; i++) {
		const struct soft_send *send = &qp->sends[i & qp->send_mask];

		if (!soft_is_read(send->opcode))
			bytes += send->length_bytes;
	}
	return bytes > gone_bytes ? bytes - gone_bytes : 0;
}

/* What READs before a request have not brought yet, or more than SOFT_ASK_BYTES of it. */
static uint64_t bytes_to_come(const struct soft_qp *qp, uint32_t index)
{
	const struct soft_input_payload *payload = &qp->payload;
	uint64_t bytes = 0, come_bytes = 0;
	uint32_t i;

	if (payload->left_bytes && payload->opcode == SOFT_RESPONSE)
		come_bytes = payload->length_bytes - payload->left_bytes;
	for (i = qp->send_done;
	     i != index && bytes <= SOFT_ASK_BYTES + come_bytes; i++) {
		const struct soft_send *send = &qp->sends[i & qp->send_mask];

		if (soft_is_read(send->opcode))
			bytes += send->length_bytes;
	}
	return bytes - come_bytes;
}

/* Asks, unless it is too early. Once until all that was asked for is there, so at most one
 * question is under way. */
static void credit_ask(struct soft_qp *qp, uint32_t index, uint32_t sends)
{
	struct soft_frame frame = { .opcode = SOFT_ASK_CREDIT };

	if (!qp->asks_credit || qp->send_asked != qp->send_credit)
		return;
	if (bytes_before(qp, index) > SOFT_ASK_BYTES ||
	    bytes_to_come(qp, index) > SOFT_ASK_BYTES)
		return;
	qp->send_asked = sends + messages_from(qp, index);
	frame.credit = qp->send_asked;
	soft_output_control(qp, &frame, NULL, -1);
}

bool soft_send_queue_may_start(struct soft_qp *qp, uint32_t index,
			       uint32_t reads, uint32_t sends)
{
	const struct soft_send *send = &qp->sends[index & qp->send_mask];

	if (send->mapped ||
	    (send->flags & (RBX_WR_FENCE | RBX_WR_INVALIDATE) && reads))
		return false;
	if (soft_is_message(send->opcode, send->flags) &&
	    sends == qp->send_credit) {
		credit_ask(qp, index, sends);
		stall_begin(qp);
		return false;
	}
	return true;
}

/* Whether the peer acknowledges this request. */
static bool is_answered(const struct soft_qp *qp, uint32_t index)
{
	const struct soft_send *send = &qp->sends[index & qp->send_mask];

	return soft_is_read(send->opcode) ||
	       soft_frame_wants_ack(&send->header);
}

void soft_send_queue_end_bad(struct soft_qp *qp)
{
	if (!qp->has_bad)
		return;
	/* All before it have been sent, the last of them perhaps in the same gather, so it
	 * did not ask for an acknowledgement. */
	if (qp->send_done == qp->bad_index ||
	    (qp->send_started == qp->bad_index &&
	     !is_answered(qp, qp->bad_index - 1)))
		soft_qp_fail(qp, qp->bad_index, -EFAULT);
}

void soft_send_queue_fault(struct soft_qp *qp, uint32_t index)
{
	qp->has_bad = true;
	qp->bad_index = index;
	soft_send_queue_end_bad(qp);
}

void soft_send_queue_complete(struct soft_qp *qp, uint32_t end)
{
	for (; qp->send_done != end; qp->send_done++)
		if (qp->sends[qp->send_done & qp->send_mask].flags &
		    RBX_WR_SIGNALED)
			soft_qp_push_send(qp, qp->send_done, 0);
	soft_send_queue_end_bad(qp);
}

/* Whether our bytes that the system still holds are moving. */
static bool is_on_its_way(const struct soft_qp *qp)
{
	return soft_qp_unacknowledged(qp) > SOFT_QUEUED_BYTES &&
	       soft_qp_moved(qp) != qp->seen.moved_bytes;
}

void soft_send_queue_check_stall(struct soft_qp *qp, uint64_t counts_ns)
{
	/* If the socket has room, all before the stalled one has been sent. */
	if (qp->output_blocked || is_on_its_way(qp))
		return;
	qp->stalled_ns += counts_ns;
	if (qp->stalled_ns > SOFT_RECEIVER_WAIT_MS * 1000000ull)
		soft_qp_fail(qp, qp->send_started, -ENOBUFS);
}
