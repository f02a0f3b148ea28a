/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.h - an endpoint whose operations go through a channel: what a program and the
 * kernel have in common of it.
 *
 * An operation takes a place, whose fragment is submitted, and gives it back when it has
 * been told of. Plain READs and WRITEs may be merged; all else keeps its order among itself
 * (request.h, RBX_DIRECTION_ORDERED). Nothing is sent twice.
 *
 * The end. With the first failure the channel is dead: what is posted comes back flushed,
 * and what waits to be posted, or comes later, is refused. It is told of after what was
 * posted before it, and in order. Nothing of the device says when that is, and who polls
 * may sleep: so a marker is posted on the queue pair, behind all else. It also tells of
 * what was before it without a signal, if the device took a part of a chain and not its
 * end. Nothing is posted after a marker but another one.
 */
#ifndef RBX_PACED_H
#define RBX_PACED_H

#include "core/drive.h"

struct rbx_paced;

/* What is different of hosts. */
struct rbx_paced_host {
	/* Ends the connection, which takes its receives too. Once, by any thread. */
	void (*disconnect)(struct rbx_paced *paced);
	/* Posts a WRITE of no bytes, signaled. 0 or -errno. By the combiner. */
	int (*post_marker)(struct rbx_paced *paced);
};

/* One more than the ring has, on the queue pair. */
#define RBX_PACED_MARKERS 1u

struct rbx_paced {
	struct rbx_channel channel; /* of one ring */
	const struct rbx_paced_host *host;
	bool is_dead; /* atomic: it has failed, or is closed */
	bool is_marked; /* atomic: a marker is posted, or never will be */
	struct rbx_node *refused; /* atomic: not told of yet, newest first */
	uint32_t places_count;
	/* Those that are free; with the lock under which the host posts. */
	struct rbx_fragment *free_first;
	uint32_t free_count;
	struct rbx_node *freed; /* atomic: given back since */
};

/* Zeroed before. works: ring_depth of them, a power of two. */
void rbx_paced_init(struct rbx_paced *paced, const struct rbx_paced_host *host,
		    const struct rbx_planner *planner, struct rbx_window *window,
		    struct rbx_work *works, uint32_t ring_depth);

/* ---- Places -------------------------------------------------------------------------*/

/* One more, before the first operation. */
static inline void rbx_paced_add(struct rbx_paced *paced,
				 struct rbx_fragment *fragment)
{
	paced->places_count++;
	rbx_drive_push_ended(&paced->freed, fragment);
}

/* Whether so many may be taken. */
bool rbx_paced_has_room(struct rbx_paced *paced, uint32_t count);

/* There is room. */
static inline struct rbx_fragment *rbx_paced_take(struct rbx_paced *paced)
{
	struct rbx_fragment *fragment = paced->free_first;

	paced->free_first = rbx_fragment_next(fragment);
	paced->free_count--;
	return fragment;
}

/* It has been told of; from here on whoever posts may use it again. By who polls. */
static inline void rbx_paced_give(struct rbx_paced *paced,
				  struct rbx_fragment *fragment)
{
	fragment->node.next = NULL;
	rbx_drive_push_ended(&paced->freed, fragment);
}

/* The fragment of an operation, but for its memory here and there. */
static inline void rbx_paced_fill(struct rbx_fragment *fragment,
				  enum rbx_direction direction, bool is_fence,
				  bool is_urgent)
{
	uint8_t flags = RBX_FRAGMENT_HAS_LKEY | RBX_FRAGMENT_NO_RESEND;

	if (direction == RBX_DIRECTION_ORDERED)
		flags |= RBX_FRAGMENT_ORDERED_FLAGS;
	if (is_fence)
		flags |= RBX_FRAGMENT_FENCE;
	if (is_urgent)
		flags |= RBX_FRAGMENT_URGENT;
	*fragment = (struct rbx_fragment){
		.direction = (uint8_t)direction,
		.flags = flags,
		.done = fragment->done,
	};
}

/* ---- Of a host's rbx_drive ----------------------------------------------------------*/

/* It is over: what waits is refused when the channel is unparked. */
void rbx_paced_broken(struct rbx_channel *channel);
/* What the device has not taken: the connection is over, so it is not tried again. */
void rbx_paced_keep(struct rbx_channel *channel, struct rbx_harvest *harvest);
/* What was refused, status set. By the combiner: so nobody posts at the same time. */
void rbx_paced_refuse(struct rbx_channel *channel, struct rbx_fragment *list);

/* ---- The end ------------------------------------------------------------------------*/

/* The marker has completed, whatever its status. By who polls. */
void rbx_paced_marked(struct rbx_paced *paced, uint64_t now_ns,
		      struct rbx_harvest *harvest);

/*
 * Its queue pair is destroyed, and the caller has the role of the combiner, which it gives
 * up here: all that is left ends. all_is_back: what was posted has completed, and failures
 * have said so; else it counts as flushed. Nothing is submitted any more.
 */
void rbx_paced_clear(struct rbx_paced *paced, bool all_is_back, uint64_t now_ns,
		     struct rbx_harvest *harvest);

#endif
