/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send_ring.h - the work requests that are posted on one queue pair.
 *
 * A queue pair completes in the order of posting, so its work requests are in a ring: the
 * combiner plans at the head, the poller completes at the tail. The number of a work request,
 * counted from the start, is its wr_id. Only the last one of a chain is signaled; its
 * completion completes all before it.
 *
 * One thread at a time at either end. The release of `posted` is not needed for the poller,
 * which learns of a work request from the device. The release of `completed` lets the
 * combiner use the slots again.
 */
#ifndef RBX_SEND_RING_H
#define RBX_SEND_RING_H

#include "core/work.h"

struct rbx_send_ring {
	struct rbx_work *works; /* depth_count slots, in memory of the host */
	uint32_t depth_count; /* a power of two; atomic */
	uint32_t posted_count; /* atomic, the combiner's; wraps */
	uint32_t completed_count; /* atomic, the poller's; wraps */
	uint32_t answered_count; /* the poller's, too: completions that succeeded */
};

static inline void rbx_send_ring_init(struct rbx_send_ring *ring,
				      struct rbx_work *works,
				      uint32_t depth_count)
{
	RBX_ASSERT(depth_count != 0 && (depth_count & (depth_count - 1)) == 0);
	ring->works = works;
	ring->depth_count = depth_count;
	ring->posted_count = 0;
	ring->completed_count = 0;
	ring->answered_count = 0;
}

/* The slots of a ring, for loops: the depth does not change while something is posted, or
 * while its combiner is at work. */
struct rbx_send_slots {
	struct rbx_work *works;
	uint32_t mask;
};

static inline struct rbx_send_slots
rbx_send_ring_slots(const struct rbx_send_ring *ring)
{
	return (struct rbx_send_slots){ ring->works, ring->depth_count - 1 };
}

static inline struct rbx_work *rbx_send_slot(const struct rbx_send_slots *slots,
					     uint32_t number)
{
	return &slots->works[number & slots->mask];
}

static inline struct rbx_work *rbx_send_ring_slot(struct rbx_send_ring *ring,
						  uint32_t number)
{
	struct rbx_send_slots slots = rbx_send_ring_slots(ring);

	return rbx_send_slot(&slots, number);
}

/* How many work requests are posted and not completed. */
static inline uint32_t rbx_send_ring_used(const struct rbx_send_ring *ring)
{
	return RBX_LOAD_ORDERED(&ring->posted_count) -
	       RBX_LOAD_ORDERED(&ring->completed_count);
}

#endif
