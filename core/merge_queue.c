/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * merge_queue.c - the lines of the merge queue, see merge_queue.h.
 *
 * A line has two parts. The front is what may be planned: in remote order if the planner
 * merges, unless the line keeps the order of submission. Behind it is what has arrived since,
 * in order of arrival. When the planner reaches the end of the front, up to RBX_OVERTAKE_MAX
 * of the arrived fragments are sorted and become the front. So sorting costs n log n however
 * many come while the window is closed, and no fragment in the front is overtaken.
 */
#include "core/merge_queue.h"

#include "core/remote_order.h"

void rbx_merge_queue_init(struct rbx_merge_queue *queue, bool in_order)
{
	rbx_port_fill(queue, 0, sizeof(*queue));
	queue->in_order = in_order;
	queue->turn_bit = 1u << RBX_LINES;
	queue->last_bit = 1u << (RBX_DIRECTIONS - 1);
}

static inline bool is_fenced(const struct rbx_merge_queue *queue,
			     const struct rbx_fragment *fragment)
{
	return !(fragment->flags & RBX_FRAGMENT_AGAIN) &&
	       (queue->fenced_first || fragment->flags & RBX_FRAGMENT_FENCE);
}

/* The last of the fragments in a row that go to the same line as the first. */
static inline struct rbx_fragment *end_of_run(struct rbx_fragment *first)
{
	struct rbx_fragment *last = first, *next;

	while ((next = rbx_fragment_next(last)) &&
	       next->direction == first->direction &&
	       next->flags == first->flags)
		last = next;
	return last;
}

void rbx_merge_queue_add_any(struct rbx_merge_queue *queue,
			     struct rbx_node *list)
{
	while (list) {
		struct rbx_fragment *first = rbx_fragment_of(list);
		struct rbx_fragment *last = end_of_run(first);
		uint32_t index = rbx_merge_queue_line(first);
		struct rbx_line *line = &queue->lines[index];

		list = last->node.next;
		if (is_fenced(queue, first)) {
			rbx_fragment_append(&queue->fenced_first,
					    &queue->fenced_last, first, last);
			continue;
		}
		rbx_fragment_append(&line->arrived_first, &line->arrived_last,
				    first, last);
		queue->waiting_mask |= 1u << index;
	}
}

/* Which of several lines has the next turn. */
static uint32_t choose(const struct rbx_merge_queue *queue)
{
	uint32_t urgent = queue->waiting_mask & RBX_URGENT_LINES;
	uint32_t lines = queue->waiting_mask & ~RBX_URGENT_LINES;
	/* The lines behind the last one, or from the first on. */
	uint32_t after = (uint32_t)__builtin_ctz(queue->last_bit) %
				 RBX_FRAGMENT_URGENT +
			 1;
	uint32_t preferred;

	if (urgent != 0 &&
	    (lines == 0 || queue->urgent_count < RBX_URGENT_RUN_MAX))
		lines = urgent;
	preferred = lines & RBX_LINES_BOTH(RBX_ALL_DIRECTIONS &
					   RBX_ALL_DIRECTIONS << after);
	return (uint32_t)__builtin_ctz(preferred ? preferred : lines);
}

void rbx_merge_queue_choose(struct rbx_merge_queue *queue)
{
	uint32_t mask = queue->waiting_mask;
	uint32_t index = (mask & (mask - 1)) == 0 ? (uint32_t)__builtin_ctz(mask) :
						    choose(queue);

	queue->turn = &queue->lines[index];
	queue->turn_bit = 1u << index;
}

struct rbx_fragment *rbx_merge_queue_arrived(struct rbx_merge_queue *queue)
{
	struct rbx_line *line = queue->turn;
	struct rbx_fragment *list = line->arrived_first;

	if (queue->in_order && !(queue->turn_bit & RBX_ORDERED_LINES))
		return rbx_remote_order_take(&line->arrived_first);
	line->arrived_first = NULL;
	return list;
}

void rbx_merge_queue_pass_fence(struct rbx_merge_queue *queue)
{
	struct rbx_fragment *fragment = queue->fenced_first;

	RBX_ASSERT(fragment && rbx_merge_queue_fenced(queue));
	fragment->flags &= (uint8_t)~RBX_FRAGMENT_FENCE;
	queue->fenced_first = NULL;
	rbx_merge_queue_add(queue, &fragment->node);
}

static void append_all(struct rbx_fragment **first, struct rbx_fragment **last,
		       struct rbx_fragment *list)
{
	struct rbx_fragment *end = list;

	if (!list)
		return;
	while (end->node.next)
		end = rbx_fragment_next(end);
	rbx_fragment_append(first, last, list, end);
}

struct rbx_fragment *rbx_merge_queue_clear(struct rbx_merge_queue *queue)
{
	struct rbx_fragment *first = NULL, *last = NULL;

	for (uint32_t i = 0; i < RBX_LINES; i++) {
		append_all(&first, &last, queue->lines[i].first);
		append_all(&first, &last, queue->lines[i].arrived_first);
	}
	append_all(&first, &last, queue->fenced_first);
	rbx_merge_queue_init(queue, queue->in_order);
	return first;
}
