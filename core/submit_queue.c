/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit_queue.c - elects the combiner and hands fragments over, in one atomic word.
 *
 * The states of `newest` and the only moves between them:
 *
 *   idle --push--> list (the pusher combines)
 *   idle --claim-> busy (the claimer combines)
 *   busy --push--> list (a combiner is at work)
 *   list --push--> longer list
 *   list --take--> busy            combiner only
 *   busy --leave--> idle           combiner only
 *
 * The transitions are read-modify-write operations on one word, so they have one order that
 * all threads agree on. In that order idle is followed by exactly one push or claim that
 * finds it idle: there is exactly one combiner. Leave succeeds only from busy, that is, if no
 * push came after the last take: no node is left behind without a combiner. Each push
 * releases the node it links, and take acquires the word, so the combiner sees complete
 * fragments.
 *
 * The combiner looks (pushed) before it takes. A push that this look does not see yet is seen
 * by the leave that follows, or by the next look.
 *
 * Reuse of a node cannot link a push wrongly (the "ABA" problem of such lists): nodes leave
 * only all together by an exchange, never by comparing a pointer that could have come back.
 * When a push compares with an old value, only "this is what my next points to" matters. That
 * stays true however often the value came and went.
 *
 * Bounds: push repeats only while other threads push at the same moment; take
 * walks what was pushed, bounded by the fragments that exist.
 */
#include "core/submit_queue.h"

void rbx_submit_queue_init(struct rbx_submit_queue *queue)
{
	queue->newest = NULL;
	queue->busy.next = NULL;
}

bool rbx_submit_queue_push(struct rbx_submit_queue *queue,
			   struct rbx_node *first, struct rbx_node *last)
{
	struct rbx_node *newest = RBX_LOAD_RELAXED(&queue->newest);
	struct rbx_node *node = first;
	struct rbx_node *next = first->next;

	/* The word has the newest first: reverse the chain. */
	while (node != last) {
		struct rbx_node *after = next->next;

		next->next = node;
		node = next;
		next = after;
	}
	do {
		first->next = newest;
	} while (!RBX_COMPARE_EXCHANGE(&queue->newest, &newest, last));
	return newest == NULL;
}

struct rbx_node *rbx_submit_queue_take(struct rbx_submit_queue *queue)
{
	struct rbx_node *node = RBX_EXCHANGE(&queue->newest, &queue->busy);
	struct rbx_node *oldest = NULL;

	RBX_ASSERT(node && node != &queue->busy);
	do {
		struct rbx_node *next = node->next;

		node->next = oldest;
		oldest = node;
		node = next;
	} while (node && node != &queue->busy);
	return oldest;
}
