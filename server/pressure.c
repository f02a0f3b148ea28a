/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pressure.c - gives memory back when the host itself runs short.
 *
 * Lent memory is good only while the machine that lends it is well. The kernel
 * says how much could still be had without swapping (MemAvailable). Below a
 * reserve of 1/64 of the machine nothing more is lent; below half of that,
 * once a second, as many slabs are asked for as would mend it.
 *
 * Left out: limits of a memory control group, which MemAvailable does not show.
 */
#include "server/host_memory.h"
#include "server/state.h"

#define RESERVE_DIVISOR 64
#define CHECK_INTERVAL_NS 1000000000ull

bool rbx_host_has_room(const struct rbx_server *s)
{
	struct rbx_host_memory memory;

	return !rbx_host_memory_read(&memory) ||
	       memory.available_bytes >= s->options.slab_bytes +
						 memory.total_bytes /
							 RESERVE_DIVISOR;
}

void rbx_pressure_tick(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_lender_counts counts;
	struct rbx_host_memory memory;
	uint64_t wanted_bytes, wanted_count;

	if (now_ns - s->pressure_checked_ns < CHECK_INTERVAL_NS)
		return;
	s->pressure_checked_ns = now_ns;
	if (!rbx_host_memory_read(&memory))
		return;
	wanted_bytes = memory.total_bytes / RESERVE_DIVISOR / 2;
	if (memory.available_bytes >= wanted_bytes)
		return;
	wanted_bytes -= memory.available_bytes;
	wanted_count = (wanted_bytes + s->options.slab_bytes - 1) /
		       s->options.slab_bytes;
	rbx_lender_counts(s->lender, &counts);
	if (wanted_count <= counts.slabs_asked)
		return;
	wanted_count = RBX_MIN(wanted_count - counts.slabs_asked, s->slabs_count);
	wanted_count = rbx_lender_shrink(s->lender, (uint32_t)wanted_count,
					 now_ns, RBX_EVICT_GRACE_NS);
	if (wanted_count)
		rbx_log("this host is short of memory: asked for %llu slabs",
			(unsigned long long)wanted_count);
}
