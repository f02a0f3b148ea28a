/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion.h - the hook that decides how much may be in flight on a device.
 *
 * The paper regulates what is in flight with a window, and leaves the policy to a
 * software hook (section IV-A, "RDMA I/O level Admission Control"). This is the hook,
 * the same for a program, which names its policy in struct rbx_options, and for the
 * kernel. A policy sees what is posted and what completes, in integers, and says how
 * many bytes may be in flight. The window is that of the device: all its peers share
 * it.
 *
 * No two functions of a policy run at once for one window, but they run on different
 * threads: those that submit and those that poll. They must not block, and should be
 * short: every request waits for them. The time that they are told never goes back.
 */
#ifndef RDMABOX_CONGESTION_H
#define RDMABOX_CONGESTION_H

#ifndef RBX_PORT_H /* the core brings the integer types of its host */
#include <stdint.h>
#endif

/* What a policy may remember: zeroed at first, aligned for an uint64_t. */
#define RBX_CONGESTION_STATE_BYTES 256u

struct rbx_congestion_ops {
	const char *name; /* shown by rbx_describe() */

	/* Called once, before all others. low_bytes is the longest fragment. A window
	 * outside of low_bytes to high_bytes is clamped, and counted as one of
	 * `window_clamps`. */
	void (*init)(void *state, uint64_t low_bytes, uint64_t high_bytes);

	/* A chain of so many bytes is about to be posted. NULL: of no interest. */
	void (*on_post)(void *state, uint64_t now_ns, uint64_t bytes);

	/* One look at a completion queue found so many bytes done. rtt_ns is the time
	 * from post to completion, the longest of those found together. What came while
	 * another thread was in the policy is told with the next. NULL: of no
	 * interest. */
	void (*on_complete)(void *state, uint64_t now_ns, uint64_t rtt_ns,
			    uint64_t bytes);

	/* A work request failed for a reason of its own: it was not flushed. A policy
	 * that keeps account of what is in flight starts anew. NULL: of no interest. */
	void (*on_error)(void *state);

	/* Called after each of the above: how many bytes may be in flight. */
	uint64_t (*window)(const void *state);
};

#endif
