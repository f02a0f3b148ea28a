/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.c - the queue of events, a heap of four children a node.
 *
 * The key stands beside the pointer, so that sifting touches the heap alone;
 * four children share two cache lines, which halves the depth. Each event knows
 * its place, for cancel.
 */
#include "sim/events.h"

#define CHILDREN 4u

struct entry {
	uint64_t at_ns;
	uint64_t sequence; /* of the call that queued it */
	struct rbx_sim_event *event;
};

static struct entry heap[RBX_SIM_EVENTS_MAX];
static uint32_t count;
static uint64_t now_ns, last_sequence, run_count;

uint64_t rbx_sim_now(void)
{
	return now_ns;
}

uint64_t rbx_sim_events_run(void)
{
	return run_count;
}

static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->at_ns < b->at_ns ||
	       (a->at_ns == b->at_ns && a->sequence < b->sequence);
}

static void put(uint32_t index, const struct entry *entry)
{
	heap[index] = *entry;
	entry->event->place = index + 1;
}

/* Moves an entry towards the root from a free place. */
static void sift_up(uint32_t index, const struct entry *entry)
{
	while (index != 0) {
		uint32_t parent = (index - 1) / CHILDREN;

		if (!is_before(entry, &heap[parent]))
			break;
		put(index, &heap[parent]);
		index = parent;
	}
	put(index, entry);
}

/* Moves an entry away from the root from a free place. */
static void sift_down(uint32_t index, const struct entry *entry)
{
	for (;;) {
		uint32_t first = index * CHILDREN + 1;
		uint32_t end = RBX_MIN(first + CHILDREN, count);
		uint32_t least = first;

		if (first >= count)
			break;
		for (uint32_t child = first + 1; child < end; child++) {
			if (is_before(&heap[child], &heap[least]))
				least = child;
		}
		if (!is_before(&heap[least], entry))
			break;
		put(index, &heap[least]);
		index = least;
	}
	put(index, entry);
}

void rbx_sim_cancel(struct rbx_sim_event *event)
{
	uint32_t index = event->place - 1;
	struct entry last;

	if (!rbx_sim_is_queued(event))
		return;
	RBX_ASSERT(index < count && heap[index].event == event);
	event->place = 0;
	last = heap[--count];
	if (index == count)
		return;
	if (index != 0 && is_before(&last, &heap[(index - 1) / CHILDREN]))
		sift_up(index, &last);
	else
		sift_down(index, &last);
}

void rbx_sim_at(struct rbx_sim_event *event, uint64_t at_ns)
{
	struct entry entry = {
		.at_ns = RBX_MAX(at_ns, now_ns),
		.sequence = ++last_sequence,
		.event = event,
	};

	rbx_sim_cancel(event);
	RBX_ASSERT(count < RBX_SIM_EVENTS_MAX);
	event->at_ns = entry.at_ns;
	sift_up(count++, &entry);
}

void rbx_sim_after(struct rbx_sim_event *event, uint64_t delay_ns)
{
	rbx_sim_at(event, now_ns + delay_ns);
}

bool rbx_sim_step(void)
{
	struct rbx_sim_event *event;

	if (count == 0)
		return false;
	event = heap[0].event;
	now_ns = heap[0].at_ns;
	rbx_sim_cancel(event);
	run_count++;
	event->run(event);
	return true;
}

void rbx_sim_events_reset(void)
{
	while (count != 0)
		heap[--count].event->place = 0;
	now_ns = 0;
	last_sequence = 0;
	run_count = 0;
}
