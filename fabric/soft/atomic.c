/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * atomic.c - carries out atomics of the peer.
 *
 * Different threads serve the connections, and all change memory by the CPU's own atomic
 * instructions: so atomics of all connections are atomic to each other. They work on memory
 * of this process in its byte order; on the wire numbers are little-endian.
 *
 * Not done: an atomic through a mapping of the peer's memory. It would save a round trip, but
 * the peer could not be told afterwards that its key had ended before.
 */
#include "atomic.h"

#include <endian.h>
#include <stdatomic.h>

#include "queue_pair.h"

bool soft_atomic_is_allowed(struct soft_qp *qp, const struct soft_frame *frame)
{
	return frame->remote_addr % SOFT_VALUE_BYTES == 0 &&
	       soft_keys_find(qp, frame->rkey, frame->remote_addr,
			      SOFT_VALUE_BYTES, RBX_REMOTE_ATOMIC);
}

uint64_t soft_atomic_carry_out(const struct soft_frame *frame,
			       const struct soft_atomic *atomic)
{
	_Atomic uint64_t *value =
		(_Atomic uint64_t *)(uintptr_t)frame->remote_addr;
	uint64_t before = atomic->compare_add;

	if (frame->opcode == SOFT_FETCH_ADD)
		before = atomic_fetch_add(value, atomic->compare_add);
	else
		atomic_compare_exchange_strong(value, &before, atomic->swap);
	return htole64(before);
}
