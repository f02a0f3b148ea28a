/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * waiting.h - how a thread of the program waits if the program polls (pollers = 0): it
 * polls.
 *
 * It polls without a pause for about as long as a wake-up takes; most completions come
 * within this time. Then it sleeps between two polls, as a wait may take seconds if a
 * server is cut off. A completion wakes it. It notices what another thread has polled a
 * moment later.
 */
#ifndef RBX_LIB_WAITING_H
#define RBX_LIB_WAITING_H

#include <stdint.h>

struct rbx_context;

struct rbx_waiting {
	uint64_t looks_until_ns; /* 0: set at the first call. After this time it sleeps. */
};

/* Polls, or sleeps for a moment. Call it with a zeroed struct at first, and again until
 * the wait is over. */
void rbx_waiting_poll(struct rbx_waiting *waiting, struct rbx_context *ctx);

#endif
