/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wr_ring.h - the work requests of one queue that are posted and not yet polled.
 *
 * The device knows a work request by its number in the order of posting; the ring keeps the
 * wr_id that its owner gave it. This serves three purposes:
 * - The queue is full when `depth` work requests wait to be polled. A device may have
 *   room earlier (Soft-RoCE has when it is done with the request), but then completions
 *   that are not polled would overrun the completion queue.
 * - A completion frees all places before it, signaled or not.
 * - Even a completion with an error shows whether it was a receive.
 *
 * One thread posts and one polls, as the fabric requires. `completed` tells the posting
 * thread what the polling one has seen, and orders the reuse of a place after its last
 * reading.
 */
#ifndef RBX_VERBS_WR_RING_H
#define RBX_VERBS_WR_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct rbx_verbs_wr_ring {
	_Atomic uint64_t *wr_ids; /* the device's work orders their use */
	uint64_t mask; /* places - 1 */
	uint32_t depth_count;
	/* written by the posting thread; others read it if the device failed */
	_Atomic uint64_t posted;
	_Atomic uint64_t completed;
};

/* The top bit of the ids on the device tells the two queues apart. */
#define RBX_VERBS_WR_RECV (1ull << 63)
/* The next bit marks receives of a shared queue (srq.c), whose ids are numbered differently. */
#define RBX_VERBS_WR_SHARED (1ull << 62)

static inline int rbx_verbs_wr_ring_init(struct rbx_verbs_wr_ring *ring,
					 uint32_t depth_count)
{
	uint64_t places = 1;

	while (places < depth_count)
		places *= 2;
	ring->wr_ids = calloc(places, sizeof(ring->wr_ids[0]));
	ring->mask = places - 1;
	ring->depth_count = depth_count;
	atomic_init(&ring->posted, 0);
	atomic_init(&ring->completed, 0);
	return ring->wr_ids ? 0 : -1;
}

static inline uint64_t
rbx_verbs_wr_ring_posted(const struct rbx_verbs_wr_ring *ring)
{
	return atomic_load_explicit(&ring->posted, memory_order_relaxed);
}

/* Notes how many of the noted work requests the device has taken. */
static inline void rbx_verbs_wr_ring_post(struct rbx_verbs_wr_ring *ring,
					  uint32_t count)
{
	atomic_store_explicit(&ring->posted,
			      rbx_verbs_wr_ring_posted(ring) + count,
			      memory_order_release);
}

/* How many may be posted now. */
static inline uint32_t rbx_verbs_wr_ring_room(struct rbx_verbs_wr_ring *ring)
{
	uint64_t completed = atomic_load_explicit(&ring->completed,
						  memory_order_acquire);

	return ring->depth_count -
	       (uint32_t)(rbx_verbs_wr_ring_posted(ring) - completed);
}

/*
 * Notes the wr_id of the `ahead`-th work request that is about to be posted; returns its
 * number.
 */
static inline uint64_t rbx_verbs_wr_ring_note(struct rbx_verbs_wr_ring *ring,
					      uint32_t ahead, uint64_t wr_id)
{
	uint64_t number = rbx_verbs_wr_ring_posted(ring) + ahead;

	atomic_store_explicit(&ring->wr_ids[number & ring->mask], wr_id,
			      memory_order_relaxed);
	return number;
}

/* Takes the number of a completion and returns the wr_id. */
static inline uint64_t
rbx_verbs_wr_ring_complete(struct rbx_verbs_wr_ring *ring, uint64_t number)
{
	uint64_t wr_id = atomic_load_explicit(
		&ring->wr_ids[number & ring->mask], memory_order_relaxed);

	atomic_store_explicit(&ring->completed, number + 1,
			      memory_order_release);
	return wr_id;
}

#endif
