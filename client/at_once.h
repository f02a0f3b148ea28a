/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * at_once.h - asks each of many servers, several of them at a time (client/side_by_side.h), and
 * keeps what each call came to. Who waits for all of them waits for the slowest one only.
 *
 * In a program the text of an error belongs to the thread that reports it. So it is kept here, and
 * reported once more by the caller's thread: of servers that fail the first one counts, in the
 * order of their places. Which one is asked or answers first decides nothing.
 */
#ifndef RBX_CLIENT_AT_ONCE_H
#define RBX_CLIENT_AT_ONCE_H

#include "client/side_by_side.h"

struct rbx_at_once {
	int (*act)(void *user, uint32_t index);
	void *user;
	bool needs_all;
	struct rbx_side_by_side side_by_side;
	struct rbx_at_once_result {
		int err; /* 0, or -errno that was reported */
		char why[RBX_ERROR_BYTES];
	} *results;
};

/* Acts on the servers 0 to count - 1 and waits for all of them. act() is called by several threads,
 * and reports its errors. needs_all: after an error no other server is begun with, and those have
 * no error. 0, with results; -ENOMEM, reported; -EINTR: a signal came, which the host obeys
 * (host.h). */
int rbx_at_once_do(struct rbx_at_once *all, uint32_t count, bool needs_all,
		   int (*act)(void *user, uint32_t index), void *user);
/* The error of one of them, reported by this thread; or 0. */
int rbx_at_once_error(const struct rbx_at_once *all, uint32_t index);
/* Frees the results, if there are any. */
void rbx_at_once_free(struct rbx_at_once *all);

/* The same, if an error of one is one of all: the first one, reported; or 0. */
int rbx_at_once(uint32_t count, int (*act)(void *user, uint32_t index), void *user);

#endif
