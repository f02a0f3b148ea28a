/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay_window.h - the common part of the delay-based policies: a window within bounds, and
 * one decision about it each round trip.
 *
 * After a decision there is no other until what was posted under the old window has come
 * back. The window is at its minimum while the base is measured (base_rtt.h), and at the
 * start.
 */
#ifndef RBX_DELAY_WINDOW_H
#define RBX_DELAY_WINDOW_H

#include "core/base_rtt.h"

struct rbx_delay_window {
	struct rbx_base_rtt base;
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t bytes; /* as decided */
	uint64_t decided_ns; /* round trips of what was posted before do not count */
};

static inline void rbx_delay_window_init(struct rbx_delay_window *window,
					 uint64_t low_bytes,
					 uint64_t high_bytes)
{
	rbx_base_rtt_init(&window->base);
	window->low_bytes = low_bytes;
	window->high_bytes = high_bytes;
	window->bytes = low_bytes;
	window->decided_ns = 0;
}

/* Takes a round trip into account. True: the policy has to decide now. */
static inline bool rbx_delay_window_sample(struct rbx_delay_window *window,
					   uint64_t now_ns, uint64_t rtt_ns)
{
	if (rbx_base_rtt_sample(&window->base, now_ns, rtt_ns) ||
	    now_ns - rtt_ns < window->decided_ns)
		return false;
	window->decided_ns = now_ns;
	return true;
}

/* The least step by which a window grows. */
static inline uint64_t
rbx_delay_window_step(const struct rbx_delay_window *window)
{
	return window->low_bytes / 4;
}

static inline void rbx_delay_window_set(struct rbx_delay_window *window,
					uint64_t bytes)
{
	window->bytes = RBX_MIN(RBX_MAX(bytes, window->low_bytes),
				window->high_bytes);
}

/* The window that the policy returns. */
static inline uint64_t
rbx_delay_window_bytes(const struct rbx_delay_window *window)
{
	return window->base.samples_left ? window->low_bytes : window->bytes;
}

#endif
