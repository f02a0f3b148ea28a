/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fail.c - see fail.h. */
#include "sim/fail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/port.h"
#include "sim/events.h"
#include "sim/trace.h"

#define WHAT_BYTES 512u

static void (*told)(const char *invariant, const char *what);

void rbx_sim_fail_hook(void (*hook)(const char *invariant, const char *what))
{
	told = hook;
}

void rbx_sim_print_hash(uint64_t events, uint64_t virtual_ns)
{
	printf("hash %016" PRIx64 " events %" PRIu64 " virtual_us %" PRIu64
	       "\n",
	       rbx_sim_trace_hash(), events, virtual_ns / 1000);
}

void rbx_sim_print_end(void)
{
	rbx_sim_print_hash(rbx_sim_events_run(), rbx_sim_now());
}

void rbx_sim_fail(const char *invariant, const char *format, ...)
{
	char what[WHAT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (told)
		told(invariant, what);
	rbx_sim_print_end();
	printf("what: %s\nresult FAIL %s\n", what, invariant);
	fflush(stdout);
	_exit(RBX_SIM_EXIT_FAILED);
}

void rbx_sim_assert_failed(const char *condition, const char *file, int line)
{
	rbx_sim_fail("assertion", "%s:%d: %s", file, line, condition);
}
