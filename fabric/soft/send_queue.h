/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send_queue.h - work requests from post to completion. The caller holds the lock, except for
 * soft_post_send().
 */
#ifndef SOFT_SEND_QUEUE_H
#define SOFT_SEND_QUEUE_H

#include "queue_pair.h"

int soft_post_send(struct rbx_qp *qp, struct rbx_wr *first,
		   struct rbx_wr **bad);

static inline bool soft_is_atomic(uint8_t opcode)
{
	return opcode >= RBX_OP_COMPARE_SWAP;
}

/* Whether it returns data: only the peer's RESPONSE says that it is done. */
static inline bool soft_is_read(uint8_t opcode)
{
	return opcode == RBX_OP_READ || soft_is_atomic(opcode);
}

/* Whether it takes a receive of the peer. */
static inline bool soft_is_message(uint8_t opcode, uint8_t flags)
{
	return opcode == RBX_OP_SEND || flags & RBX_WR_IMMEDIATE;
}

/* Adds a started request to counts of outstanding reads and started messages. */
static inline void soft_send_count(const struct soft_send *send,
				   uint32_t *reads, uint32_t *sends)
{
	*reads += soft_is_read(send->opcode);
	*sends += soft_is_message(send->opcode, send->flags);
}

/*
 * Whether a request may be sent when so many reads are outstanding and so many messages were
 * sent: fences, and receivers that are not ready, hold it back.
 */
bool soft_send_queue_may_start(struct soft_qp *qp, uint32_t index,
			       uint32_t reads, uint32_t sends);
/* Whether the scatter list lies in memory that its keys cover. */
bool soft_wr_may_use_local(struct soft_qp *qp, const struct rbx_wr *wr);
/* Returns 0 and the length of the message; -EINVAL: it cannot be posted at all. */
int soft_wr_check(const struct soft_qp *qp, const struct rbx_wr *wr,
		  uint32_t *length_bytes);
/* The memory of this request is invalid: nothing is sent from there on. */
void soft_send_queue_fault(struct soft_qp *qp, uint32_t index);
/* Fails the request with bad memory when its turn has come: all before it are done, or will
 * not be acknowledged. */
void soft_send_queue_end_bad(struct soft_qp *qp);
/* Completes all requests before `end`. */
void soft_send_queue_complete(struct soft_qp *qp, uint32_t end);
/* No SEND waits for a receive any more. */
void soft_send_queue_end_stall(struct soft_qp *qp);
/* Fails a SEND that has waited for too long. `counts_ns` have passed since the last call. */
void soft_send_queue_check_stall(struct soft_qp *qp, uint64_t counts_ns);

#endif
