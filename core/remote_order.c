/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_order.c - a merge sort of linked lists that is faster if they are partly sorted.
 *
 * The list is cut into the ascending runs that it already has. Runs of equal sizes are merged
 * pairwise, like the digits of a binary counter: level i holds the merge of 2^i runs or
 * nothing. So n fragments in m runs cost about n * log2(m) comparisons. Sorted fragments (or
 * a single one) cost n - 1 and no merge.
 *
 * Sorting random places also costs a branch misprediction for every other comparison. So it
 * is done only if it may gain something. A bit filter, set where fragments begin and looked
 * up where they end, says that there are certainly no neighbours, or that there may be some.
 * A few possible ones are searched for; if there are more, sorting is cheaper.
 *
 * Merging prefers the earlier run if fragments are equal. So the sort is stable, and of two
 * writes to one place the later stays the later.
 */
#include "core/remote_order.h"

/* 2^8 runs of one fragment end as one on level 8. */
#define LEVELS 9
RBX_STATIC_ASSERT(RBX_OVERTAKE_MAX <= 1u << (LEVELS - 1), "runs fit the levels");

/* 16 bits for each fragment of the longest list. */
#define FILTER_SHIFT 12
RBX_STATIC_ASSERT(16 * RBX_OVERTAKE_MAX <= 1u << FILTER_SHIFT,
		  "the filter tells something");

static inline bool is_after(const struct rbx_fragment *a,
			    const struct rbx_fragment *b)
{
	if (a->rkey != b->rkey)
		return a->rkey > b->rkey;
	return a->remote_addr > b->remote_addr;
}

/* Cuts the ascending run off the front of a list. */
static inline struct rbx_fragment *cut_run(struct rbx_fragment **list)
{
	struct rbx_fragment *first = *list, *last = first, *next;

	while ((next = rbx_fragment_next(last)) && !is_after(last, next))
		last = next;
	last->node.next = NULL;
	*list = next;
	return first;
}

/* If they are equal those of `early` come first. */
static struct rbx_fragment *merge(struct rbx_fragment *early,
				  struct rbx_fragment *late)
{
	struct rbx_node head, *last = &head;

	for (;;) {
		if (is_after(early, late)) {
			last = last->next = &late->node;
			late = rbx_fragment_next(late);
			if (!late)
				break;
		} else {
			last = last->next = &early->node;
			early = rbx_fragment_next(early);
			if (!early)
				break;
		}
	}
	last->next = early ? &early->node : &late->node;
	return rbx_fragment_of(head.next);
}

static struct rbx_fragment *sort(struct rbx_fragment *list)
{
	struct rbx_fragment *levels[LEVELS] = { NULL };
	struct rbx_fragment *run;
	uint32_t level;

	while (list) {
		run = cut_run(&list);
		for (level = 0; levels[level]; level++) {
			run = merge(levels[level], run);
			levels[level] = NULL;
		}
		levels[level] = run;
	}
	run = NULL;
	for (level = 0; level < LEVELS; level++) {
		if (levels[level])
			run = run ? merge(levels[level], run) : levels[level];
	}
	return run;
}

/* The last of the fragments that are sorted from the first on, at most *count; *count becomes
 * how many they are. */
static inline struct rbx_fragment *end_of_order(struct rbx_fragment *first,
						uint32_t *count)
{
	struct rbx_fragment *last = first, *next;
	uint32_t left = *count - 1;

	while ((next = rbx_fragment_next(last)) && left != 0 &&
	       !is_after(last, next)) {
		last = next;
		left--;
	}
	*count -= left;
	return last;
}

/* The bit of a remote address in the filter. */
static inline uint32_t filter_bit(uint64_t remote_addr)
{
	return (uint32_t)((remote_addr * 0x9e3779b97f4a7c15u) >>
			  (64 - FILTER_SHIFT));
}

/* How many possible neighbours in a list are searched for. */
#define DOUBTS_MAX 4u

/* Whether a fragment of the list begins there. */
RBX_RARE static bool begins_at(const struct rbx_fragment *list,
			       uint64_t remote_addr)
{
	while (list && list->remote_addr != remote_addr)
		list = rbx_fragment_next(list);
	return list != NULL;
}

/* Cuts the list after RBX_OVERTAKE_MAX. Returns whether one fragment may begin where another
 * one ends; false is always right. */
static bool cut(struct rbx_fragment *first, struct rbx_fragment **rest)
{
	uint64_t filter[(1u << FILTER_SHIFT) / 64] = { 0 };
	struct rbx_fragment *fragment = first, *last;
	uint32_t left = RBX_OVERTAKE_MAX, doubts_count = 0;
	uint64_t end;
	uint32_t bit;

	do {
		bit = filter_bit(fragment->remote_addr);
		filter[bit / 64] |= (uint64_t)1 << bit % 64;
		last = fragment;
		fragment = rbx_fragment_next(fragment);
	} while (fragment && --left != 0);
	last->node.next = NULL;
	*rest = fragment;
	for (fragment = first; fragment; fragment = rbx_fragment_next(fragment)) {
		end = fragment->remote_addr + fragment->length_bytes;
		bit = filter_bit(end);
		if (filter[bit / 64] >> bit % 64 & 1 &&
		    (doubts_count++ == DOUBTS_MAX || begins_at(first, end)))
			return true;
	}
	return false;
}

struct rbx_fragment *rbx_remote_order_take(struct rbx_fragment **list)
{
	struct rbx_fragment *first = *list;
	uint32_t count = RBX_OVERTAKE_MAX;
	struct rbx_fragment *last = end_of_order(first, &count);

	if (!rbx_fragment_next(last) || count == RBX_OVERTAKE_MAX) {
		*list = rbx_fragment_next(last);
		last->node.next = NULL;
		return first;
	}
	return cut(first, list) ? sort(first) : first;
}
