/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * deadlines.h - the time that a peer has, and how much of it counts.
 */
#ifndef SOFT_DEADLINES_H
#define SOFT_DEADLINES_H

#include "queue_pair.h"

/* Looks at a qp, `passed_ns` after the last look. Takes its lock. */
void soft_qp_check_deadlines(struct soft_qp *qp, uint64_t now_ns, uint64_t passed_ns);

/* Of a qp whose lock is held. */

/* Bytes that the socket has taken, and the host of the peer has not acknowledged. */
uint64_t soft_qp_unacknowledged(const struct soft_qp *qp);
/* Bytes that the connection has moved in both directions, counted without end. */
uint64_t soft_qp_moved(const struct soft_qp *qp);

#endif
