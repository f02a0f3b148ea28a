/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * waiting.h - a thread of the program waits where the program is the poller
 * (pollers = 0): so it polls.
 *
 * It looks as long as a wake-up would take, in which most completions come. Then it sleeps
 * between two looks: for seconds, if a server is cut off, a processor has better to do.
 * What completes wakes it. Of what another thread has polled it hears a moment later.
 */
#ifndef RBX_LIB_WAITING_H
#define RBX_LIB_WAITING_H

#include <stdint.h>

struct rbx_context;

struct rbx_waiting {
	uint64_t looks_until_ns; /* then it sleeps; 0: it begins */
};

/* Polls, or sleeps for a moment; to be called, with one that is zeroed at first, until
 * what is waited for is there. */
void rbx_waiting_poll(struct rbx_waiting *waiting, struct rbx_context *ctx);

#endif
