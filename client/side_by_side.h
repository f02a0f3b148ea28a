/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * side_by_side.h - acts on each of many servers, on a few at a time.
 *
 * Each of them takes a round trip or several, and one that does not answer the peer
 * timeout. So a few threads do it side by side. Whoever has them do it only waits, so
 * that a signal may end that.
 */
#ifndef RBX_CLIENT_SIDE_BY_SIDE_H
#define RBX_CLIENT_SIDE_BY_SIDE_H

#include "client/host.h"
#include "core/limits.h"

struct rbx_side_by_side {
	void (*act)(void *user, uint32_t index);
	void *user;
	uint32_t count; /* of what is acted on */
	uint32_t next; /* atomic */
	bool stop; /* atomic: begin with no other */
	uint32_t thread_count;
	struct rbx_thread threads[RBX_CONNECTS_MAX];
	struct rbx_monitor monitor; /* guards the next; who waits is woken by the last */
	uint32_t left_count; /* of the threads */
};

/* Acts on 0 to count - 1. Where no thread can be had the caller does it, here. Each is
 * followed by its end(). */
void rbx_side_by_side_begin(struct rbx_side_by_side *all, uint32_t count,
			    void (*act)(void *user, uint32_t index),
			    void *user);
/* Those that nobody has begun with are left. Any thread. */
void rbx_side_by_side_stop(struct rbx_side_by_side *all);
/* Waits until all is done. -EINTR: a signal came before, and it was stopped. */
int rbx_side_by_side_wait(struct rbx_side_by_side *all);
/* Waits until nobody acts any more. */
void rbx_side_by_side_end(struct rbx_side_by_side *all);

#endif
