/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * merge_queue.c - what waits in front of the planner.
 *
 * Two singly linked lists in order of arrival, and a third for a fence and all
 * that came after it. Only the combiner touches them.
 */
#include "core/planner.h"

void rbx_merge_queue_init(struct rbx_merge_queue *queue)
{
	rbx_port_fill(queue, 0, sizeof(*queue));
}

static void append(struct rbx_fragment **first, struct rbx_fragment **last,
		   struct rbx_fragment *fragment)
{
	fragment->node.next = NULL;
	if (*first == NULL)
		*first = fragment;
	else
		(*last)->node.next = &fragment->node;
	*last = fragment;
}

static void append_unfenced(struct rbx_merge_queue *queue,
			    struct rbx_fragment *fragment)
{
	RBX_ASSERT(fragment->direction < RBX_DIRECTIONS);
	append(&queue->first[fragment->direction],
	       &queue->last[fragment->direction], fragment);
}

void rbx_merge_queue_add(struct rbx_merge_queue *queue, struct rbx_node *list)
{
	while (list != NULL) {
		struct rbx_fragment *fragment = rbx_fragment_of(list);

		list = list->next;
		if (!(fragment->flags & RBX_FRAGMENT_AGAIN) &&
		    (queue->fenced_first != NULL ||
		     fragment->flags & RBX_FRAGMENT_FENCE))
			append(&queue->fenced_first, &queue->fenced_last,
			       fragment);
		else
			append_unfenced(queue, fragment);
	}
}

bool rbx_merge_queue_empty(const struct rbx_merge_queue *queue)
{
	return queue->first[RBX_DIRECTION_READ] == NULL &&
	       queue->first[RBX_DIRECTION_WRITE] == NULL &&
	       queue->fenced_first == NULL;
}

void rbx_merge_queue_pass_fence(struct rbx_merge_queue *queue)
{
	struct rbx_fragment *fragment = queue->fenced_first;

	RBX_ASSERT(fragment != NULL);
	RBX_ASSERT(queue->first[RBX_DIRECTION_READ] == NULL);
	RBX_ASSERT(queue->first[RBX_DIRECTION_WRITE] == NULL);
	fragment->flags &= (uint8_t)~RBX_FRAGMENT_FENCE;
	queue->fenced_first = NULL;
	rbx_merge_queue_add(queue, &fragment->node);
}

struct rbx_fragment *rbx_merge_queue_clear(struct rbx_merge_queue *queue)
{
	struct rbx_fragment *first = NULL, *last = NULL;
	struct rbx_fragment *lists[] = { queue->first[RBX_DIRECTION_READ],
					 queue->first[RBX_DIRECTION_WRITE],
					 queue->fenced_first };

	for (unsigned int i = 0; i < 3; i++) {
		struct rbx_fragment *fragment = lists[i];

		while (fragment != NULL) {
			struct rbx_node *next = fragment->node.next;

			append(&first, &last, fragment);
			fragment = next ? rbx_fragment_of(next) : NULL;
		}
	}
	rbx_merge_queue_init(queue);
	return first;
}
