/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * base_rtt.h - measures the round trip of a device that has no queue.
 *
 * Policies that use delay compare a round trip with the shortest one. The shortest ever would
 * be wrong for good once the path to the peers has become longer. The shortest of the last
 * seconds is wrong too: it was measured with the policy's own queue in it, so the window
 * would grow from one measurement to the next. So from time to time the window is closed to
 * its minimum. The shortest round trip of what is posted then is the new base. This costs a
 * few round trips every second or two.
 */
#ifndef RBX_BASE_RTT_H
#define RBX_BASE_RTT_H

#include "core/port.h"

/* How long a base is valid, and how many round trips make one. */
#define RBX_BASE_RTT_AGE_NS 2000000000ull
#define RBX_BASE_RTT_SAMPLES 8u

struct rbx_base_rtt {
	uint64_t shortest_ns; /* 0: nothing measured yet */
	uint64_t begin_ns; /* of the last measurement */
	uint32_t samples_left; /* not 0: the window has to be at its minimum */
};

static inline void rbx_base_rtt_init(struct rbx_base_rtt *base)
{
	base->shortest_ns = 0;
	base->begin_ns = 0;
	base->samples_left = RBX_BASE_RTT_SAMPLES;
}

/* Takes a round trip into account. True: the window has to be at its minimum. */
static inline bool rbx_base_rtt_sample(struct rbx_base_rtt *base,
				       uint64_t now_ns, uint64_t rtt_ns)
{
	rtt_ns = RBX_MAX(rtt_ns, 1u);
	if (base->samples_left == 0 &&
	    now_ns - base->begin_ns > RBX_BASE_RTT_AGE_NS) {
		base->samples_left = RBX_BASE_RTT_SAMPLES;
		base->begin_ns = now_ns;
		return true;
	}
	if (base->samples_left == 0) {
		base->shortest_ns = RBX_MIN(base->shortest_ns, rtt_ns);
		return false;
	}
	if (base->begin_ns == 0)
		base->begin_ns = now_ns - rtt_ns;
	if (now_ns - rtt_ns < base->begin_ns)
		return true; /* posted while there was a queue */
	if (base->samples_left == RBX_BASE_RTT_SAMPLES)
		base->shortest_ns = rtt_ns;
	base->shortest_ns = RBX_MIN(base->shortest_ns, rtt_ns);
	return --base->samples_left != 0;
}

#endif
