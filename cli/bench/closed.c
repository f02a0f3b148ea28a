/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closed: each lane keeps all its slots outstanding.
 *
 * The thread of a lane submits each slot once, one by one. From then on a slot
 * lives by itself: its completion callback asks the source what comes next and
 * submits it. So the library sees what a program gives it that works off
 * separate requests, and batches come from plugging.
 */
#include "cli/bench/load.h"

/* Waits for a parked slot or for the end of the lane (NULL). */
static struct bench_slot *wait_for_parked(struct bench_lane *lane)
{
	struct bench_slot *slot;

	pthread_mutex_lock(&lane->lock);
	while (lane->busy_count && !lane->parked)
		pthread_cond_wait(&lane->changed, &lane->lock);
	slot = lane->parked;
	if (slot)
		lane->parked = slot->next;
	pthread_mutex_unlock(&lane->lock);
	return slot;
}

static void closed_run(struct bench_lane *lane)
{
	struct bench_slot *slot;

	for (uint32_t i = 0; i < lane->load->shape.depth; i++)
		bench_slot_go(&lane->slots[i]);
	while ((slot = wait_for_parked(lane))) {
		if (slot->is_refused)
			bench_slot_retry(slot);
		else
			bench_slot_go(slot);
	}
}

static void closed_back(struct bench_slot *slot)
{
	if (slot->request.status)
		bench_slot_park(slot, false);
	else
		bench_slot_go(slot);
}

const struct bench_pace bench_pace_closed = { closed_run, closed_back };
