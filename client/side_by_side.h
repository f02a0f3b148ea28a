/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * side_by_side.h - acts on each of many servers, on a few at a time in parallel.
 *
 * Each action takes one or more round trips, and with a server that does not answer the peer
 * timeout. So a few threads do it in parallel. The caller only waits, so a signal may end its
 * wait.
 */
#ifndef RBX_CLIENT_SIDE_BY_SIDE_H
#define RBX_CLIENT_SIDE_BY_SIDE_H

#include "client/host.h"
#include "core/limits.h"

struct rbx_side_by_side {
	void (*act)(void *user, uint32_t index);
	void *user;
	uint32_t count; /* number of actions */
	uint32_t next; /* atomic */
	bool stop; /* atomic: begin no other action */
	uint32_t thread_count;
	struct rbx_thread threads[RBX_CONNECTS_MAX];
	struct rbx_monitor monitor; /* guards what follows; the last thread wakes the waiting one */
	uint32_t left_count; /* of the threads */
};

/* Acts on 0 to count - 1. If no thread can be started the caller acts, here. Each begin() is
 * followed by its end(). */
void rbx_side_by_side_begin(struct rbx_side_by_side *all, uint32_t count,
			    void (*act)(void *user, uint32_t index),
			    void *user);
/* Actions that were not begun are left out. Any thread. */
void rbx_side_by_side_stop(struct rbx_side_by_side *all);
/* Waits until all is done. -EINTR: a signal came before, and it was stopped. */
int rbx_side_by_side_wait(struct rbx_side_by_side *all);
/* Waits until no thread acts any more. */
void rbx_side_by_side_end(struct rbx_side_by_side *all);

#endif
