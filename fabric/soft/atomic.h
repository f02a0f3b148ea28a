/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * atomic.h - atomics of the peer on our memory. The caller holds the lock of the qp, from the
 * first of the two functions to the end of the second.
 */
#ifndef SOFT_ATOMIC_H
#define SOFT_ATOMIC_H

#include "frame.h"

struct soft_qp;

/* Whether its key grants the right for these 8 bytes, and they are aligned. */
bool soft_atomic_is_allowed(struct soft_qp *qp, const struct soft_frame *frame);
/* Returns the former value of the bytes, in the byte order of the wire. */
uint64_t soft_atomic_carry_out(const struct soft_frame *frame,
			       const struct soft_atomic *atomic);

#endif
