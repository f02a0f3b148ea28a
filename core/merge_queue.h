/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * merge_queue.h - the fragments that wait for the planner, and which of them is next.
 *
 * There is one line for reads and one for writes, as in the paper, one for what keeps its
 * order, and three more for urgent fragments of each kind. Behind a fence waits all that came
 * after it. The lines take turns, so none starves another. Urgent fragments go first: a read
 * that a thread waits for overtakes writes that no thread waits for. After RBX_URGENT_RUN_MAX
 * urgent work requests in a row one of the other lines has its turn, so these slow down but
 * never stop.
 *
 * If the planner merges, a line of reads or writes is sorted in remote order (remote_order.h)
 * when its turn comes, not at each addition: what arrives while a line waits is sorted only
 * once. At most RBX_OVERTAKE_MAX later fragments of its line overtake a fragment. No fragment
 * overtakes a fence, urgent or not.
 *
 * Only the combiner uses it, without locks.
 */
#ifndef RBX_MERGE_QUEUE_H
#define RBX_MERGE_QUEUE_H

#include "core/request.h"

/* A line is a direction, plus RBX_FRAGMENT_URGENT if it is urgent. So a fragment's line is
 * found without a branch. */
#define RBX_LINES (2 * RBX_FRAGMENT_URGENT)
RBX_STATIC_ASSERT((int)RBX_DIRECTIONS <= (int)RBX_FRAGMENT_URGENT, "apart");
#define RBX_LINES_BOTH(lines) ((lines) | (lines) << RBX_FRAGMENT_URGENT)
#define RBX_ALL_DIRECTIONS ((1u << RBX_DIRECTIONS) - 1)
#define RBX_URGENT_LINES (RBX_ALL_DIRECTIONS << RBX_FRAGMENT_URGENT)
#define RBX_ORDERED_LINES RBX_LINES_BOTH(1u << RBX_DIRECTION_ORDERED)

struct rbx_line {
	struct rbx_fragment *first; /* may be planned, in this order */
	struct rbx_fragment *arrived_first; /* after those */
	struct rbx_fragment *arrived_last; /* valid only if arrived_first is set */
};

struct rbx_merge_queue {
	struct rbx_line lines[RBX_LINES];
	struct rbx_fragment *fenced_first; /* a fence and all that follows it */
	struct rbx_fragment *fenced_last;
	uint32_t waiting_mask; /* a bit for each line that is not empty */
	uint32_t urgent_count; /* urgent turns in a row while others waited */
	/* The line whose turn it is, and its bit, which is no line's before the first turn. */
	struct rbx_line *turn;
	uint32_t turn_bit;
	uint32_t last_bit; /* the line from which something was taken last */
	bool in_order; /* in remote order */
};

void rbx_merge_queue_init(struct rbx_merge_queue *queue, bool in_order);

/* Whether nothing may be planned: all that waits is behind a fence. */
static inline bool rbx_merge_queue_fenced(const struct rbx_merge_queue *queue)
{
	return queue->waiting_mask == 0;
}

static inline bool rbx_merge_queue_empty(const struct rbx_merge_queue *queue)
{
	return queue->waiting_mask == 0 && !queue->fenced_first;
}

static inline uint32_t
rbx_merge_queue_line(const struct rbx_fragment *fragment)
{
	RBX_DEBUG_ASSERT(fragment->direction < RBX_DIRECTIONS);
	RBX_DEBUG_ASSERT(fragment->direction != RBX_DIRECTION_ORDERED ||
			 (fragment->flags & RBX_FRAGMENT_ORDERED_FLAGS) ==
				 RBX_FRAGMENT_ORDERED_FLAGS);
	return fragment->direction | (fragment->flags & RBX_FRAGMENT_URGENT);
}

/* Adds the fragments of a list ended by NULL. */
void rbx_merge_queue_add_any(struct rbx_merge_queue *queue,
			     struct rbx_node *list);

/* The same. The inline part is for a single fragment that finds the queue empty, the usual case
 * if requests come one at a time. */
static inline void rbx_merge_queue_add(struct rbx_merge_queue *queue,
				       struct rbx_node *list)
{
	struct rbx_fragment *fragment = rbx_fragment_of(list);
	uint32_t index = rbx_merge_queue_line(fragment);

	if (list->next || !rbx_merge_queue_empty(queue) ||
	    fragment->flags & RBX_FRAGMENT_FENCE) {
		rbx_merge_queue_add_any(queue, list);
		return;
	}
	queue->lines[index].arrived_first = fragment;
	queue->lines[index].arrived_last = fragment;
	queue->waiting_mask = 1u << index;
}

/* What has arrived in the line whose turn it is, at least one fragment: as much as is sorted
 * at once. */
struct rbx_fragment *rbx_merge_queue_arrived(struct rbx_merge_queue *queue);

/* Gives one of the lines that wait the next turn. Out of line: mostly one line waits alone, and
 * keeps its turn. */
void rbx_merge_queue_choose(struct rbx_merge_queue *queue);

/* The fragment whose turn it is, or NULL: all is empty or behind a fence. */
static inline struct rbx_fragment *
rbx_merge_queue_head(struct rbx_merge_queue *queue)
{
	struct rbx_line *line;

	if (queue->waiting_mask != queue->turn_bit) {
		if (queue->waiting_mask == 0)
			return NULL;
		rbx_merge_queue_choose(queue);
	}
	line = queue->turn;
	if (line->first)
		return line->first;
	line->first = line->arrived_first;
	if (line->first->node.next)
		line->first = rbx_merge_queue_arrived(queue);
	else
		line->arrived_first = NULL; /* a single fragment is in order */
	return line->first;
}

/* The next fragment in the line whose turn it is, or NULL. */
static inline struct rbx_fragment *
rbx_merge_queue_after(struct rbx_merge_queue *queue,
		      struct rbx_fragment *fragment)
{
	struct rbx_fragment *next = rbx_fragment_next(fragment);

	if (!next && queue->turn->arrived_first) {
		next = rbx_merge_queue_arrived(queue);
		fragment->node.next = &next->node;
	}
	return next;
}

/* Takes out the fragments from the head to `last`; the turn is over. Returns whether others may
 * be planned. */
static inline bool rbx_merge_queue_take(struct rbx_merge_queue *queue,
					struct rbx_fragment *last)
{
	struct rbx_line *line = queue->turn;
	struct rbx_fragment *next = rbx_fragment_next(last);
	uint32_t bit = queue->turn_bit;
	uint32_t urgent_count = 0;

	RBX_DEBUG_ASSERT(line->first);
	line->first = next;
	last->node.next = NULL;
	queue->last_bit = bit;
	if (!next && !line->arrived_first)
		queue->waiting_mask &= ~bit;
	if (bit & RBX_URGENT_LINES && queue->waiting_mask & ~RBX_URGENT_LINES)
		urgent_count = queue->urgent_count + 1;
	queue->urgent_count = urgent_count;
	return next || queue->waiting_mask;
}

/*
 * Lets a fence pass, and what follows it up to the next fence. Only after all earlier
 * fragments have completed: the lines are empty, nothing is in flight.
 */
void rbx_merge_queue_pass_fence(struct rbx_merge_queue *queue);

/* Takes everything out, fenced or not; a list ended by NULL. */
struct rbx_fragment *rbx_merge_queue_clear(struct rbx_merge_queue *queue);

#endif
