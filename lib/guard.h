/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * guard.h - calls that would hang are refused.
 *
 * A thread of the library that runs a callback of the program cannot wait for what
 * that same thread is to bring about. And of a process that forks, the child has
 * none of the library's threads: what its parent opened is of no use to it.
 */
#ifndef RBX_LIB_GUARD_H
#define RBX_LIB_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct rbx_context;

/* How often this process and those that it comes from have forked since the first
 * context was opened; before that it is of no interest. */
extern uint32_t rbx_forks_count;

/* Once before the first context: has the forks counted. 0 or -errno. */
int rbx_forks_watch(void);

/* 0, or -EINVAL for a context that was opened before a fork. */
int rbx_guard_use(const struct rbx_context *ctx, const char *call);

/* For calls that wait: the same, or -EDEADLK in a callback. */
int rbx_guard_wait(const struct rbx_context *ctx, const char *call);
/* The same where there is no context. */
int rbx_guard_thread(const char *call);

/* Around callbacks of the program other than completion callbacks (poller.h);
 * `where` is what to call them. Returns what leave() wants. */
const char *rbx_callback_enter(const char *where);
void rbx_callback_leave(const char *before);

#endif
