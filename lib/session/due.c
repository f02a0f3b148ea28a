/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * due.c - finds the clock that is due next: a binary heap of clocks, by time.
 */
#include "lib/session/set.h"

static void put(struct rbx_due *due, uint32_t at, struct rbx_clock *clock)
{
	due->clocks[at] = clock;
	clock->due_place = at + 1;
}

/* Puts a clock at its place: from `at` up, and then down, clocks are moved out of its
 * way. */
static void sift(struct rbx_due *due, uint32_t at, struct rbx_clock *clock)
{
	uint32_t next;

	for (; at; at = next) {
		next = (at - 1) / 2;
		if (due->clocks[next]->due_ns <= clock->due_ns)
			break;
		put(due, at, due->clocks[next]);
	}
	for (; (next = 2 * at + 1) < due->count; at = next) {
		if (next + 1 < due->count &&
		    due->clocks[next + 1]->due_ns < due->clocks[next]->due_ns)
			next++;
		if (due->clocks[next]->due_ns >= clock->due_ns)
			break;
		put(due, at, due->clocks[next]);
	}
	put(due, at, clock);
}

static void take_out(struct rbx_due *due, struct rbx_clock *clock)
{
	struct rbx_clock *last = due->clocks[--due->count];
	uint32_t at = clock->due_place - 1;

	clock->due_place = 0;
	if (last != clock)
		sift(due, at, last);
}

void rbx_due_set(struct rbx_due *due, struct rbx_clock *clock, uint64_t at_ns)
{
	clock->due_ns = at_ns;
	if (at_ns == UINT64_MAX) {
		if (clock->due_place)
			take_out(due, clock);
		return;
	}
	if (!clock->due_place)
		put(due, due->count++, clock);
	sift(due, clock->due_place - 1, clock);
}
