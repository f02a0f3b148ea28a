/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * deadlines.h - the deadlines of a peer, and how much time counts for them.
 */
#ifndef SOFT_DEADLINES_H
#define SOFT_DEADLINES_H

#include "queue_pair.h"

/* Checks a qp, `passed_ns` after the last check. Takes its lock. */
void soft_qp_check_deadlines(struct soft_qp *qp, uint64_t now_ns, uint64_t passed_ns);

/* The lock of the qp is held. */

/* Bytes that the socket has taken, and that the peer's host has not acknowledged. */
uint64_t soft_qp_unacknowledged(const struct soft_qp *qp);
/* Bytes that the connection has moved in both directions; only grows. */
uint64_t soft_qp_moved(const struct soft_qp *qp);

#endif
