/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * atomic.h - atomics of the peer on our memory. The lock of the qp is held by the
 * caller, from the first of the two to the end of the second.
 */
#ifndef SOFT_ATOMIC_H
#define SOFT_ATOMIC_H

#include "frame.h"

struct soft_qp;

/* Whether its key has the right to it, for these 8 bytes, and they are aligned. */
bool soft_atomic_is_allowed(struct soft_qp *qp, const struct soft_frame *frame);
/* Returns what the bytes held before, as it goes over the wire. */
uint64_t soft_atomic_carry_out(const struct soft_frame *frame,
			       const struct soft_atomic *atomic);

#endif
