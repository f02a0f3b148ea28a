/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * posix_host.h - provides client/host.h with the C library and its threads.
 */
#ifndef RBX_PORT_POSIX_HOST_H
#define RBX_PORT_POSIX_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"

struct rbx_monitor {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
};

static inline void rbx_monitor_init(struct rbx_monitor *monitor)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&monitor->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&monitor->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static inline void rbx_monitor_destroy(struct rbx_monitor *monitor)
{
	pthread_cond_destroy(&monitor->changed);
	pthread_mutex_destroy(&monitor->mutex);
}

static inline void rbx_monitor_enter(struct rbx_monitor *monitor)
{
	pthread_mutex_lock(&monitor->mutex);
}

static inline void rbx_monitor_leave(struct rbx_monitor *monitor)
{
	pthread_mutex_unlock(&monitor->mutex);
}

static inline void rbx_monitor_wait(struct rbx_monitor *monitor)
{
	pthread_cond_wait(&monitor->changed, &monitor->mutex);
}

static inline bool rbx_monitor_wait_signal(struct rbx_monitor *monitor)
{
	rbx_monitor_wait(monitor);
	return false;
}

static inline void rbx_monitor_wait_until(struct rbx_monitor *monitor,
					  uint64_t at_ns)
{
	const struct timespec at = rbx_timespec_at(at_ns);

	pthread_cond_timedwait(&monitor->changed, &monitor->mutex, &at);
}

static inline void rbx_monitor_wake(struct rbx_monitor *monitor)
{
	pthread_cond_broadcast(&monitor->changed);
}

struct rbx_thread {
	pthread_t thread;
};

static inline int rbx_thread_start(struct rbx_thread *thread, const char *name,
				   void *(*main)(void *argument),
				   void *argument)
{
	(void)name;
	return -pthread_create(&thread->thread, NULL, main, argument);
}

static inline void rbx_thread_join(struct rbx_thread *thread)
{
	pthread_join(thread->thread, NULL);
}

static inline uintptr_t rbx_thread_self(void)
{
	return (uintptr_t)pthread_self();
}

static inline void rbx_thread_leave_reserves(void)
{
}

static inline void rbx_pause_ns(uint64_t ns)
{
	const struct timespec pause = rbx_timespec_at(ns);

	nanosleep(&pause, NULL);
}

static inline void *rbx_memory_make(size_t bytes)
{
	return calloc(1, bytes);
}

static inline void *rbx_memory_try(size_t bytes)
{
	return malloc(bytes);
}

static inline void rbx_memory_free(void *memory)
{
	free(memory);
}

static inline void rbx_memory_wipe(void *memory, size_t bytes)
{
	explicit_bzero(memory, bytes);
}

static inline void rbx_text_copy(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%s", from);
}

#define RBX_ADDRESS_BYTES 128u /* as fabrics have it (fabric.h) */

struct rbx_address {
	char name[RBX_ADDRESS_BYTES]; /* "host:port", as it was given */
	/* What the name was resolved to at the first connect. All later connects use it: a
	 * repair resolves no name. */
	char resolved[RBX_ADDRESS_BYTES];
};

#endif
