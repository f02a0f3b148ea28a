/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit_queue.h - many threads put fragments in, and the first of them takes out for all.
 *
 * This is the front half of the paper's algorithm 1 (section IV-A, "load-aware merging and
 * chaining"). Every thread pushes its fragments. A thread that finds the queue idle becomes
 * the combiner: it takes everything that is there, plans and posts it, and looks again. The
 * other threads return at once, because the combiner will see what they pushed. This is where
 * batches across threads come from. A thread that comes alone is its own combiner and waits
 * for no other.
 *
 * It is one word. It points to the newest pushed node, or means
 *   idle   nothing queued, no combiner
 *   busy   nothing queued, a combiner is at work
 * So the operation that pushes answers "was I first?", and the operation that leaves answers
 * "did a thread push meanwhile?". No request can be lost between the two.
 */
#ifndef RBX_SUBMIT_QUEUE_H
#define RBX_SUBMIT_QUEUE_H

#include "core/request.h"

struct rbx_submit_queue {
	struct rbx_node *newest; /* atomic; NULL is idle */
	struct rbx_node busy; /* its address means busy; never linked to */
};

void rbx_submit_queue_init(struct rbx_submit_queue *queue);

/*
 * Pushes the nodes linked from first to last (last->next is overwritten). Any
 * thread. True: the caller is the combiner now and must take and leave.
 */
bool rbx_submit_queue_push(struct rbx_submit_queue *queue,
			   struct rbx_node *first, struct rbx_node *last);

/*
 * Combiner only: takes all that was pushed, at least one node; oldest first, linked by next
 * and ended by NULL.
 */
struct rbx_node *rbx_submit_queue_take(struct rbx_submit_queue *queue);

/* Combiner only. Whether there is something to take. */
static inline bool rbx_submit_queue_pushed(const struct rbx_submit_queue *queue)
{
	return RBX_LOAD_RELAXED(&queue->newest) != &queue->busy;
}

/* Combiner only. True: the caller is not the combiner any more. False: more was pushed; take
 * again. */
static inline bool rbx_submit_queue_leave(struct rbx_submit_queue *queue)
{
	struct rbx_node *expected = &queue->busy;

	return RBX_COMPARE_EXCHANGE(&queue->newest, &expected, NULL);
}

/* Any thread. True: the queue was idle and the caller is the combiner now. */
static inline bool rbx_submit_queue_claim(struct rbx_submit_queue *queue)
{
	struct rbx_node *expected = NULL;

	return !RBX_LOAD_RELAXED(&queue->newest) &&
	       RBX_COMPARE_EXCHANGE(&queue->newest, &expected, &queue->busy);
}

#endif
