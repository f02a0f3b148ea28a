/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_os.h - client/host.h on a stage (stage.h): threads of which one runs at a time,
 * and a clock that the test moves.
 */
#ifndef RBX_HOST_OS_H
#define RBX_HOST_OS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rbx_monitor {
	bool is_entered;
};

void rbx_monitor_init(struct rbx_monitor *monitor);
void rbx_monitor_destroy(struct rbx_monitor *monitor);
void rbx_monitor_enter(struct rbx_monitor *monitor);
void rbx_monitor_leave(struct rbx_monitor *monitor);
void rbx_monitor_wait(struct rbx_monitor *monitor);
void rbx_monitor_wait_until(struct rbx_monitor *monitor, uint64_t at_ns);
void rbx_monitor_wake(struct rbx_monitor *monitor);

struct rbx_thread; /* a session has none */

uintptr_t rbx_thread_self(void);
uint64_t rbx_now_ns(void);

static inline void *rbx_memory_make(size_t bytes)
{
	return calloc(1, bytes);
}

static inline void rbx_text_copy(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%s", from);
}

static inline void rbx_memory_free(void *memory)
{
	free(memory);
}

static inline void rbx_memory_wipe(void *memory, size_t bytes)
{
	explicit_bzero(memory, bytes);
}

struct rbx_address {
	char name[16];
};

#endif
