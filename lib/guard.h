/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * guard.h - refuses calls that would hang.
 *
 * A callback runs on a thread of the library. It must not wait for something that this
 * same thread has to do. And after fork() the child has none of the library's threads, so
 * it cannot use what its parent opened.
 */
#ifndef RBX_LIB_GUARD_H
#define RBX_LIB_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct rbx_context;

/* How often this process and its ancestors have forked since the first context was
 * opened. */
extern uint32_t rbx_forks_count;

/* Starts the counting of forks; called before the first context is made. 0 or -errno. */
int rbx_forks_watch(void);

/* 0, or -EINVAL if the context was opened before a fork. */
int rbx_guard_use(const struct rbx_context *ctx, const char *call);

/* For calls that wait: as rbx_guard_use(), and -EDEADLK in a callback. */
int rbx_guard_wait(const struct rbx_context *ctx, const char *call);
/* The same for calls without a context. */
int rbx_guard_thread(const char *call);

/* Call these around callbacks of the program, except completion callbacks (poller.h).
 * `where` names the callback in errors. enter() returns what leave() takes. */
const char *rbx_callback_enter(const char *where);
void rbx_callback_leave(const char *before);

#endif
