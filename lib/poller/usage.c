/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage.c - the CPU time and context switches of a poller's thread.
 *
 * The kernel counts them anyway. So the reader of the statistics asks the kernel, and the
 * thread itself does nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/poller/poller.h"

/* Sums the two lines "voluntary_ctxt_switches: N" and "nonvoluntary_ctxt_switches: N". */
static bool read_context_switches(int thread_id, uint64_t *switches)
{
	char line[128];
	uint64_t count;
	FILE *status;

	snprintf(line, sizeof(line), "/proc/self/task/%d/status", thread_id);
	status = fopen(line, "r");
	if (!status)
		return false;
	*switches = 0;
	while (fgets(line, sizeof(line), status)) {
		char *name = strstr(line, "voluntary_ctxt_switches:");

		if (name &&
		    sscanf(name, "voluntary_ctxt_switches: %" SCNu64,
			   &count) == 1)
			*switches += count;
	}
	fclose(status);
	return true;
}

void rbx_poller_usage_get(struct rbx_poller *poller,
			  struct rbx_poller_usage *usage)
{
	int thread_id = RBX_LOAD_ACQUIRE(&poller->thread_id);
	uint64_t switches;
	struct timespec cpu;
	clockid_t clock;

	*usage = (struct rbx_poller_usage){ 0 };
	if (!poller->has_thread || thread_id == 0)
		return;
	/* If no descriptor is left the old number stays, so that it never goes backwards. */
	if (read_context_switches(thread_id, &switches))
		RBX_STORE_RELAXED(&poller->context_switches, switches);
	usage->context_switches = RBX_LOAD_RELAXED(&poller->context_switches);
	if (pthread_getcpuclockid(poller->thread, &clock) == 0 &&
	    clock_gettime(clock, &cpu) == 0)
		usage->cpu_ns = rbx_timespec_ns(&cpu);
}
