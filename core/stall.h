/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stall.h - notices that a peer which is alive does not answer work requests.
 *
 * The session notices a silent peer, and a queue pair reports that it failed. But nothing
 * notices a peer that keeps its session alive and never answers a work request, and requests
 * to it would wait for ever. So the host looks at each ring from time to time. A ring is
 * stalled after RBX_STALL_LOOKS looks in a row that found work posted, and none completed
 * since the look before.
 *
 * It counts looks and not time: a process that was stopped itself, however long, counts one
 * late look when it goes on.
 */
#ifndef RBX_STALL_H
#define RBX_STALL_H

#include "core/send_ring.h"

#define RBX_STALL_LOOKS 4u

struct rbx_stall {
	uint32_t answered_count; /* of the ring at the last look */
	uint32_t looks_count; /* in a row that saw no progress */
};

/* True: the ring is stalled. One thread. */
static inline bool rbx_stall_look(struct rbx_stall *stall,
				  const struct rbx_send_ring *ring)
{
	uint32_t answered_count = RBX_LOAD_RELAXED(&ring->answered_count);

	if (answered_count != stall->answered_count ||
	    rbx_send_ring_used(ring) == 0) {
		stall->answered_count = answered_count;
		stall->looks_count = 0;
		return false;
	}
	return ++stall->looks_count >= RBX_STALL_LOOKS;
}

#endif
