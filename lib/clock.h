/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clock.h - the clock of the user host. The core gets its time as now_ns. */
#ifndef RBX_LIB_CLOCK_H
#define RBX_LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rbx_timespec_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

/* Nanoseconds since some moment in the past; never goes back. */
static inline uint64_t rbx_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return rbx_timespec_ns(&now);
}

static inline uint64_t rbx_after_ms(uint32_t ms)
{
	return rbx_now_ns() + ms * UINT64_C(1000000);
}

/* The same moment, as pthread_cond_timedwait() with CLOCK_MONOTONIC wants it. */
static inline struct timespec rbx_timespec_at(uint64_t at_ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(at_ns / 1000000000u),
		.tv_nsec = (long)(at_ns % 1000000000u),
	};
}

#endif
