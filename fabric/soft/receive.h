/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * receive.h - what is read from the socket. The caller holds the lock.
 */
#ifndef SOFT_RECEIVE_H
#define SOFT_RECEIVE_H

#include "queue_pair.h"

/* Reads what is there, within limits. Returns whether bytes came in. */
bool soft_receive(struct soft_qp *qp);

/*
 * Carries out a frame. Payload that follows goes where qp->payload says after the call;
 * soft_payload_done() is called when it is complete.
 */

/* target.c: WRITE, READ, SEND, atomics with their body, MAP_ASK, ASK_CREDIT */
void soft_target_frame(struct soft_qp *qp, const struct soft_frame *frame,
		       const uint8_t *body);
void soft_target_payload_done(struct soft_qp *qp);
/* Whether a WRITE under way may go on; if not, the qp was handled. */
bool soft_target_may_write(struct soft_qp *qp);

/* initiator.c: RESPONSE, ACK, ERROR */
void soft_initiator_frame(struct soft_qp *qp, const struct soft_frame *frame);
void soft_initiator_payload_done(struct soft_qp *qp);

#endif
