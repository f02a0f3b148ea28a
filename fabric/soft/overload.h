/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * overload.h - makes the soft device collapse under overload, as a NIC does.
 *
 * A NIC holds the work requests in flight in a cache. If there are more, each one makes it
 * fetch earlier ones again, and throughput falls (the paper's figure 1). The soft device has
 * no such cache, but can behave as if it had. Then a work request that is posted while more
 * than so many are queued on the device costs a time that grows with the excess. The posting
 * thread spends it, with the qp locked. A work request is queued from its post until a
 * completion at or behind it has been polled.
 *
 * Only for measurements of pacing: off unless asked for, and named in the description of the
 * device.
 */
#ifndef SOFT_OVERLOAD_H
#define SOFT_OVERLOAD_H

#include <stdatomic.h>
#include <stdint.h>

struct soft_overload {
	uint32_t work_requests; /* that cost nothing */
	uint32_t cost_ns; /* for each one above; 0: off */
	atomic_uint queued_count; /* relaxed: a measure, it orders nothing */
};

void soft_overload_charge(struct soft_overload *overload, uint32_t count);

/* `count` work requests were posted. */
static inline void soft_overload_posted(struct soft_overload *overload,
					uint32_t count)
{
	if (overload->cost_ns && count)
		soft_overload_charge(overload, count);
}

/* `count` work requests have left the queue. */
static inline void soft_overload_freed(struct soft_overload *overload,
				       uint32_t count)
{
	if (overload->cost_ns)
		atomic_fetch_sub_explicit(&overload->queued_count, count,
					  memory_order_relaxed);
}

#endif
