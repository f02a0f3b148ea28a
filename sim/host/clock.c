/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clock.c - the clock of a node, and sleeping by it. */
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "sim/fiber.h"
#include "sim/host/wrap.h"

/* When a thread yields, others run for the time of a context switch. */
#define YIELD_NS 1000u

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t clock_ns = rbx_sim_node_clock(rbx_sim_node());

	(void)clock;
	time->tv_sec = (time_t)(clock_ns / 1000000000u);
	time->tv_nsec = (long)(clock_ns % 1000000000u);
	return 0;
}

int __wrap_usleep(useconds_t us)
{
	rbx_sim_sleep((uint64_t)us * 1000);
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	rbx_sim_sleep((uint64_t)time->tv_sec * 1000000000u +
		      (uint64_t)time->tv_nsec);
	return 0;
}

int __wrap_sched_yield(void)
{
	rbx_sim_sleep(YIELD_NS);
	return 0;
}
