/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pressure.c - gives memory back when the host itself runs short.
 *
 * Lent memory is good only while the machine that lends it is well. The kernel
 * says how much could still be had without swapping (MemAvailable), and how much
 * the control group of this process still leaves it. Below a reserve of 1/64 of the
 * whole nothing more is lent; below half of that, once a second, as many slabs are
 * asked for as would mend it.
 *
 * A server that is told to lend more than there is at all is refused at its start:
 * it would be killed, and with it what is lent.
 */
#include <errno.h>

#include "lib/error.h"
#include "server/host_memory.h"
#include "server/state.h"

#define RESERVE_DIVISOR 64
#define CHECK_INTERVAL_NS 1000000000ull

int rbx_host_memory_check(const struct rbx_server *s)
{
	uint64_t memory_bytes = s->options.memory_bytes;
	struct rbx_host_memory memory;

	if (s->options.overcommit || !rbx_host_memory_read(&memory))
		return 0;
	if (memory_bytes > memory.total_bytes)
		return rbx_error(-ENOMEM,
				 "cannot lend %llu MiB: %s has %llu MiB in all; "
				 "lend less, or give overcommit (--overcommit) "
				 "if it will have more",
				 (unsigned long long)memory_bytes >> 20,
				 memory.where,
				 (unsigned long long)memory.total_bytes >> 20);
	if (memory_bytes > memory.available_bytes)
		rbx_log(&s->log,
			"%llu MiB are to be lent and %s can give %llu MiB now: "
			"slabs are lent as far as that goes",
			(unsigned long long)memory_bytes >> 20, memory.where,
			(unsigned long long)memory.available_bytes >> 20);
	return 0;
}

bool rbx_host_has_room(const struct rbx_server *s)
{
	struct rbx_lender_counts counts;
	struct rbx_host_memory memory;
	uint64_t wanted_count;

	rbx_lender_counts(s->lender, &counts);
	/* What is being prepared is promised, and not yet taken. */
	wanted_count = 1ull + counts.slabs_preparing;
	return !rbx_host_memory_read(&memory) ||
	       memory.available_bytes >= wanted_count * s->options.slab_bytes +
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
		rbx_log(&s->log, "this host is short of memory: asked for %llu slabs",
			(unsigned long long)wanted_count);
}
