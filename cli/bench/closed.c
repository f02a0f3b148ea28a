/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closed: each worker keeps all its slots outstanding.
 *
 * The thread of a worker submits each slot once, one by one. From then on the slot's
 * completion callback asks the source for the next request and submits it. So the library
 * sees the same as from a program with independent requests, and batches come from
 * plugging.
 */
#include "cli/bench/load.h"

/* Waits for a parked slot or for the end of the worker (NULL). */
static struct bench_slot *wait_for_parked(struct bench_worker *worker)
{
	struct bench_slot *slot;

	pthread_mutex_lock(&worker->lock);
	while (worker->busy_count && !worker->parked)
		pthread_cond_wait(&worker->changed, &worker->lock);
	slot = worker->parked;
	if (slot)
		worker->parked = slot->next;
	pthread_mutex_unlock(&worker->lock);
	return slot;
}

static void closed_run(struct bench_worker *worker)
{
	struct bench_slot *slot;

	for (uint32_t i = 0; i < worker->load->shape.depth; i++)
		bench_slot_go(&worker->slots[i]);
	while ((slot = wait_for_parked(worker))) {
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
