/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.h - an endpoint whose operations go through a channel: the part that user space and
 * kernel share.
 *
 * An operation takes a place, whose fragment is submitted, and gives it back after its
 * completion was reported. Plain READs and WRITEs may be merged; all other operations keep
 * their order among each other (request.h, RBX_DIRECTION_ORDERED). Nothing is sent twice.
 *
 * The end. With the first failure the channel is dead: posted work comes back flushed, and
 * what waits to be posted, or comes later, is refused. Refused operations are reported after
 * the posted ones, and in order. No event of the device says when all posted ones are back,
 * and the poller may sleep. So a marker is posted on the queue pair, behind all else. If the
 * device took a part of a chain and not its end, the marker also reports earlier work
 * requests without a signal. Only another marker is posted after a marker.
 */
#ifndef RBX_PACED_H
#define RBX_PACED_H

#include "core/drive.h"

struct rbx_paced;

/* What differs between hosts. */
struct rbx_paced_host {
	/* Ends the connection, which also ends its receives. Called once, by any thread. */
	void (*disconnect)(struct rbx_paced *paced);
	/* Posts a WRITE of no bytes, signaled. 0 or -errno. By the combiner. */
	int (*post_marker)(struct rbx_paced *paced);
};

/* Entries for markers that the queue pair needs beyond those of the ring. */
#define RBX_PACED_MARKERS 1u

struct rbx_paced {
	struct rbx_channel channel; /* of one ring */
	const struct rbx_paced_host *host;
	bool is_dead; /* atomic: the connection has failed, or is closed */
	bool is_marked; /* atomic: a marker is posted, or never will be */
	struct rbx_node *refused; /* atomic: not reported yet, newest first */
	uint32_t places_count;
	/* The free places; guarded by the lock under which the host posts. */
	struct rbx_fragment *free_first;
	uint32_t free_count;
	struct rbx_node *freed; /* atomic: places given back since */
};

/* The memory was zeroed. works: ring_depth of them, a power of two. */
void rbx_paced_init(struct rbx_paced *paced, const struct rbx_paced_host *host,
		    const struct rbx_planner *planner, struct rbx_window *window,
		    struct rbx_work *works, uint32_t ring_depth);

/* ---- Places -------------------------------------------------------------------------*/

/* Adds a place, before the first operation. */
static inline void rbx_paced_add(struct rbx_paced *paced,
				 struct rbx_fragment *fragment)
{
	paced->places_count++;
	rbx_drive_push_ended(&paced->freed, fragment);
}

/* Whether so many places may be taken. */
bool rbx_paced_has_room(struct rbx_paced *paced, uint32_t count);

/* Takes a place; the caller has checked that there is room. */
static inline struct rbx_fragment *rbx_paced_take(struct rbx_paced *paced)
{
	struct rbx_fragment *fragment = paced->free_first;

	paced->free_first = rbx_fragment_next(fragment);
	paced->free_count--;
	return fragment;
}

/*
 * The operation was reported; from here on a posting thread may use the place again. By the
 * poller.
 */
static inline void rbx_paced_give(struct rbx_paced *paced,
				  struct rbx_fragment *fragment)
{
	fragment->node.next = NULL;
	rbx_drive_push_ended(&paced->freed, fragment);
}

/* Fills in the fragment of an operation, except its local and remote memory. */
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

/* ---- Functions for the rbx_drive of a host ------------------------------------------ */

/* The connection is over: what waits is refused when the channel is unparked. */
void rbx_paced_broken(struct rbx_channel *channel);
/* What the device did not take. The connection is over, so it is not tried again. */
void rbx_paced_keep(struct rbx_channel *channel, struct rbx_harvest *harvest);
/* Fragments that were refused, with status set. By the combiner, so no thread posts meanwhile. */
void rbx_paced_refuse(struct rbx_channel *channel, struct rbx_fragment *list);

/* ---- The end ------------------------------------------------------------------------*/

/* The marker has completed, whatever its status. By the poller. */
void rbx_paced_marked(struct rbx_paced *paced, uint64_t now_ns,
		      struct rbx_harvest *harvest);

/*
 * The queue pair is destroyed, nothing is submitted any more, and the caller is the combiner.
 * It ends all that is left and gives up the role. all_is_back: what was posted has completed,
 * and failures were reported; else it counts as flushed.
 */
void rbx_paced_clear(struct rbx_paced *paced, bool all_is_back, uint64_t now_ns,
		     struct rbx_harvest *harvest);

#endif
