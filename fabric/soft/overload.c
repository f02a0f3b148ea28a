/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* overload.c - see overload.h. */
#include "overload.h"

#include "device.h"

static uint64_t cost_ns(const struct soft_overload *overload, uint32_t queued)
{
	uint64_t cost;

	if (queued <= overload->work_requests)
		return 0;
	cost = (uint64_t)(queued - overload->work_requests) *
	       overload->cost_ns;
	return cost < SOFT_OVERLOAD_MAX_NS ? cost : SOFT_OVERLOAD_MAX_NS;
}

void soft_overload_charge(struct soft_overload *overload, uint32_t count)
{
	uint32_t queued = atomic_fetch_add_explicit(&overload->queued_count,
						    count,
						    memory_order_relaxed);
	uint64_t cost = 0, begin_ns;
	uint32_t i;

	for (i = 1; i <= count; i++)
		cost += cost_ns(overload, queued + i);
	if (!cost)
		return;
	begin_ns = soft_now_ns();
	while (soft_now_ns() - begin_ns < cost)
		;
}
