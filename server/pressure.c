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
#include <stdio.h>
#include <string.h>

#include "server/state.h"

#define RESERVE_DIVISOR 64
#define CHECK_INTERVAL_NS 1000000000ull

struct host_memory {
	uint64_t total_bytes;
	uint64_t available_bytes;
};

/* False where the kernel does not tell: then there is no pressure to see. */
static bool host_memory_read(struct host_memory *memory)
{
	unsigned long long total_kib = 0, available_kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu kB", &total_kib) == 1)
			continue;
		if (sscanf(line, "MemAvailable: %llu kB", &available_kib) == 1)
			break;
	}
	fclose(file);
	memory->total_bytes = total_kib << 10;
	memory->available_bytes = available_kib << 10;
	return total_kib && available_kib;
}

bool rbx_host_has_room(const struct rbx_server *s)
{
	struct host_memory memory;

	return !host_memory_read(&memory) ||
	       memory.available_bytes >= s->options.slab_bytes +
						 memory.total_bytes /
							 RESERVE_DIVISOR;
}

void rbx_pressure_tick(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_lender_counts counts;
	struct host_memory memory;
	uint64_t wanted_bytes, wanted_count;

	if (now_ns - s->pressure_checked_ns < CHECK_INTERVAL_NS)
		return;
	s->pressure_checked_ns = now_ns;
	if (!host_memory_read(&memory))
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
