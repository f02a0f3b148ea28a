/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fail.c - see fail.h. */
#include "sim/fail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/port.h"
#include "sim/events.h"

static void (*before)(void);

void rbx_sim_fail_hook(void (*hook)(void))
{
	before = hook;
}

void rbx_sim_fail(const char *invariant, const char *format, ...)
{
	va_list args;

	if (before != NULL)
		before();
	printf("what at %" PRIu64 " ns: ", rbx_sim_now());
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\nresult FAIL %s\n", invariant);
	fflush(stdout);
	_exit(RBX_SIM_EXIT_FAILED);
}

void rbx_sim_assert_failed(const char *condition, const char *file, int line)
{
	rbx_sim_fail("assertion", "%s:%d: %s", file, line, condition);
}
