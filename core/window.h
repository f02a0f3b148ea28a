/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window.h - how much may be in flight on a device.
 *
 * The paper's admission control (section IV-A): credit in bytes and in work requests is taken
 * before a post, and given back at completion, error or flush. There is one window for the
 * device, shared by all its peers, because it is the NIC that thrashes. Without credit the
 * work stays in the merge queue, where waiting only gives more neighbours to merge.
 *
 * One work request is always let through when nothing is in flight, however
 * large it is: a window can slow down but never stop.
 */
#ifndef RBX_WINDOW_H
#define RBX_WINDOW_H

#include "core/congestion.h"
#include "core/port.h"
#include "core/turns.h"

/* One work request in flight; the bytes are in the bits below. */
#define RBX_WINDOW_WORK_REQUEST_SHIFT 40
#define RBX_WINDOW_WORK_REQUEST ((uint64_t)1 << RBX_WINDOW_WORK_REQUEST_SHIFT)
#define RBX_WINDOW_BYTES_MASK (RBX_WINDOW_WORK_REQUEST - 1)

struct rbx_window {
	uint64_t in_flight; /* atomic: work requests << 40 | bytes */
	uint64_t bytes_max; /* atomic; set by the policy; UINT64_MAX: no limit */
	uint64_t in_flight_bytes_peak; /* atomic, for the statistics */
	uint32_t work_requests_max;
	struct rbx_turns turns; /* among channels that wait for credit */

	/* The policy; see window.c. */
	const struct rbx_congestion_ops *ops; /* NULL: bytes_max is fixed */
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint32_t told; /* atomic: 1 while a thread calls the policy */
	uint64_t told_ns; /* of the thread that calls the policy */
	uint64_t untold_posted_bytes; /* atomic: for the next thread that calls it */
	uint64_t untold_completed_bytes; /* atomic */
	uint32_t untold_errors; /* atomic */
	uint64_t clamps; /* atomic, for the statistics */
	uint64_t state[RBX_CONGESTION_STATE_BYTES / 8];
};

/* A fixed window. 0: no limit. */
void rbx_window_init(struct rbx_window *window, uint64_t bytes_max,
		     uint32_t work_requests_max);

/* Before the first use: lets a policy set the width, low_bytes to high_bytes. */
void rbx_window_set_policy(struct rbx_window *window,
			   const struct rbx_congestion_ops *ops,
			   uint64_t low_bytes, uint64_t high_bytes);

/* Whether `in_flight`, which includes the new work request, is within the window. */
static inline bool rbx_window_within(const struct rbx_window *window,
				     uint64_t in_flight)
{
	uint64_t work_requests = in_flight >> RBX_WINDOW_WORK_REQUEST_SHIFT;

	return ((in_flight & RBX_WINDOW_BYTES_MASK) <=
			RBX_LOAD_RELAXED(&window->bytes_max) &&
		work_requests <= window->work_requests_max) ||
	       work_requests == 1;
}

/* Takes credit for one work request; false: there is none. Any thread. */
static inline bool rbx_window_take(struct rbx_window *window, uint32_t bytes)
{
	uint64_t credit = RBX_WINDOW_WORK_REQUEST + bytes;

	if (rbx_window_within(window, RBX_FETCH_ADD(&window->in_flight, credit) +
					      credit))
		return true;
	RBX_FETCH_ADD(&window->in_flight, -credit);
	return false;
}

/* Gives credit back, for several work requests at once. Any thread. */
static inline void rbx_window_give(struct rbx_window *window,
				   uint32_t work_requests, uint64_t bytes)
{
	uint64_t credit = work_requests * RBX_WINDOW_WORK_REQUEST + bytes;
	uint64_t before = RBX_FETCH_ADD(&window->in_flight, -credit);

	RBX_ASSERT((before & RBX_WINDOW_BYTES_MASK) >= bytes);
	RBX_ASSERT(before >> RBX_WINDOW_WORK_REQUEST_SHIFT >= work_requests);
	(void)before;
}

/* Whether a work request of these bytes would get credit now. */
bool rbx_window_has_room(const struct rbx_window *window, uint32_t bytes);

/* Whether nothing is in flight, and no thread takes credit at this moment. */
static inline bool rbx_window_idle(const struct rbx_window *window)
{
	return RBX_LOAD_ORDERED(&window->in_flight) == 0;
}

static inline uint64_t
rbx_window_in_flight_bytes(const struct rbx_window *window)
{
	return RBX_LOAD_RELAXED(&window->in_flight) & RBX_WINDOW_BYTES_MASK;
}

/* If there is a policy. */
void rbx_window_tell_post(struct rbx_window *window, uint64_t now_ns,
			  uint64_t bytes);
void rbx_window_tell_complete(struct rbx_window *window, uint64_t now_ns,
			      uint64_t rtt_ns, uint64_t bytes);

/* Tells the policy what is about to be posted, after credit was taken for it; and what has
 * completed, before its credit is given back: see window.c. Any thread. */
static inline void rbx_window_on_post(struct rbx_window *window,
				      uint64_t now_ns, uint64_t bytes)
{
	uint64_t in_flight_bytes = rbx_window_in_flight_bytes(window);

	/* A statistic: a lost race loses a peak by a hair, nothing else. */
	if (in_flight_bytes > RBX_LOAD_RELAXED(&window->in_flight_bytes_peak))
		RBX_STORE_RELAXED(&window->in_flight_bytes_peak, in_flight_bytes);
	if (window->ops)
		rbx_window_tell_post(window, now_ns, bytes);
}

static inline void rbx_window_on_complete(struct rbx_window *window,
					  uint64_t now_ns, uint64_t rtt_ns,
					  uint64_t bytes)
{
	if (window->ops)
		rbx_window_tell_complete(window, now_ns, rtt_ns, bytes);
}

void rbx_window_on_error(struct rbx_window *window);

/* How wide it is now; 0: no limit. */
uint64_t rbx_window_bytes(const struct rbx_window *window);
uint32_t rbx_window_in_flight_work_requests(const struct rbx_window *window);

#endif
