/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.h - what is written to the socket. The qp's lock is held in all calls.
 */
#ifndef SOFT_OUTPUT_H
#define SOFT_OUTPUT_H

#include "frame.h"

struct soft_qp;

/* Sends what is ready and what the socket takes. */
void soft_output_flush(struct soft_qp *qp);
/*
 * Queues a frame, with a body after it if `map` is given, and a descriptor to send with it,
 * which it takes (-1: none). There is always room: the makers bound each kind of control
 * frame.
 */
void soft_output_control(struct soft_qp *qp, const struct soft_frame *frame,
			 const struct soft_map *map, int fd);

/*
 * Control frames of this kind that the socket has not taken in full. The peer has not seen
 * them: a frame is retired under the lock in which the socket took its last byte.
 */
uint32_t soft_output_unsent(const struct soft_qp *qp, uint8_t opcode);

/* Whether an acknowledgement is due, and nothing else is to be sent. */
bool soft_output_is_ack_alone(const struct soft_qp *qp);

#endif
