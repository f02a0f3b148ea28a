/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open: requests come at their own times, whether or not earlier ones have completed.
 *
 * The worker's thread draws the planned start times, a Poisson process with the worker's
 * share of the rate. It sleeps until the next one, and submits all that are due. A
 * request may start late, because no slot was free or the thread was late. Its latency
 * counts from the planned time, so a slow moment shows in every request that it delayed
 * (no coordinated omission).
 */
#include <math.h>

#include "cli/bench/load.h"

/* The time between two arrivals. */
static uint64_t draw_gap_ns(struct bench_worker *worker)
{
	const struct bench_load_shape *shape = &worker->load->shape;
	double mean_ns = 1e9 * shape->workers_count / shape->timing.rate;
	/* 53 bits, never 0. */
	double uniform = ((bench_random(&worker->random) >> 11) + 1) * 0x1p-53;

	return (uint64_t)(-log(uniform) * mean_ns);
}

/* The thread waits for the first free slot, and at the end for the last. */
static void give_idle_locked(struct bench_slot *slot)
{
	struct bench_worker *worker = slot->worker;

	worker->busy_count--;
	if (!worker->idle || !worker->busy_count)
		pthread_cond_signal(&worker->changed);
	slot->next = worker->idle;
	worker->idle = slot;
}

static void open_back(struct bench_slot *slot)
{
	struct bench_worker *worker = slot->worker;

	pthread_mutex_lock(&worker->lock);
	give_idle_locked(slot);
	pthread_mutex_unlock(&worker->lock);
}

/* A slot that found no room in the library, or NULL. */
static struct bench_slot *take_parked(struct bench_worker *worker)
{
	struct bench_slot *slot;

	pthread_mutex_lock(&worker->lock);
	slot = worker->parked;
	if (slot)
		worker->parked = slot->next;
	pthread_mutex_unlock(&worker->lock);
	return slot;
}

/* Waits for a free slot. */
static struct bench_slot *take_idle(struct bench_worker *worker)
{
	struct bench_slot *slot;

	pthread_mutex_lock(&worker->lock);
	while (!worker->idle)
		pthread_cond_wait(&worker->changed, &worker->lock);
	slot = worker->idle;
	worker->idle = slot->next;
	worker->busy_count++;
	pthread_mutex_unlock(&worker->lock);
	return slot;
}

static void give_idle(struct bench_slot *slot)
{
	pthread_mutex_lock(&slot->worker->lock);
	give_idle_locked(slot);
	pthread_mutex_unlock(&slot->worker->lock);
}

/* Submits, again and again until the library has room. */
static void send(struct bench_slot *slot)
{
	struct bench_slot *refused;

	bench_slot_submit(slot);
	while ((refused = take_parked(slot->worker)))
		bench_slot_retry(refused);
}

static void wait_until_all_are_back(struct bench_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->busy_count)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

static void open_run(struct bench_worker *worker)
{
	uint64_t due_ns = bench_now_ns();

	for (uint32_t i = 0; i < worker->load->shape.depth; i++)
		give_idle(&worker->slots[i]);
	due_ns += draw_gap_ns(worker);
	while (bench_worker_sleep(worker, due_ns)) {
		struct bench_slot *slot = take_idle(worker);

		slot->due_ns = due_ns;
		if (!bench_slot_fill(slot)) {
			give_idle(slot);
			break;
		}
		send(slot);
		due_ns += draw_gap_ns(worker);
	}
	wait_until_all_are_back(worker);
}

const struct bench_pace bench_pace_open = { open_run, open_back };
