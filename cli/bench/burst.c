/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bursts: a worker submits all its slots at once. The next burst begins when all have
 * completed and the gap is over (the paper's clusters of requests, section III-B).
 *
 * The worker's thread starts a burst, with a plug, so that it leaves at once. If there is
 * no gap, the callback of the last request that completes starts the next burst itself,
 * as a program would that works on one batch after the other. After a failure the thread
 * does it.
 *
 * The source must not end within a burst; the measured load never does.
 */
#include "cli/bench/load.h"

/* The caller that takes the last request of a burst owns all slots. */
static bool is_last(struct bench_worker *worker)
{
	return atomic_fetch_sub(&worker->burst_left, 1) == 1;
}

static void retire_all(struct bench_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->busy_count = 0;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

/* The caller owns all slots. Only the first slot checks whether there is more to do, as a
 * burst is never partial. */
static void start_burst(struct bench_worker *worker)
{
	struct bench_load *load = worker->load;

	if (!bench_slot_fill(&worker->slots[0])) {
		retire_all(worker);
		return;
	}
	for (uint32_t i = 1; i < load->shape.depth; i++)
		load->source->next(load->source, &worker->slots[i]);
	atomic_store(&worker->burst_failed, false);
	atomic_store(&worker->burst_left, load->shape.depth);
	for (uint32_t i = 0; i < load->shape.depth; i++)
		bench_slot_submit(&worker->slots[i]);
}

/* Makes the thread start the next burst. */
static void make_due(struct bench_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->is_due = true;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

static void end_burst(struct bench_worker *worker)
{
	if (worker->load->shape.timing.gap_ns ||
	    atomic_load(&worker->burst_failed))
		make_due(worker);
	else
		start_burst(worker);
}

static void burst_back(struct bench_slot *slot)
{
	if (slot->request.status)
		atomic_store(&slot->worker->burst_failed, true);
	if (is_last(slot->worker))
		end_burst(slot->worker);
}

/* Waits for something to do. False: the worker has ended. */
static bool wait_for_work(struct bench_worker *worker,
			  struct bench_slot **refused, bool *is_due)
{
	bool is_over;

	pthread_mutex_lock(&worker->lock);
	while (worker->busy_count && !worker->parked && !worker->is_due)
		pthread_cond_wait(&worker->changed, &worker->lock);
	*refused = worker->parked;
	if (worker->parked)
		worker->parked = worker->parked->next;
	*is_due = worker->is_due;
	worker->is_due = false;
	is_over = !worker->busy_count;
	pthread_mutex_unlock(&worker->lock);
	return !is_over;
}

/* Called by the worker's thread. A callback is plugged already. */
static void start_plugged(struct bench_worker *worker)
{
	rbx_plug(worker->load->ctx);
	start_burst(worker);
	rbx_unplug(worker->load->ctx);
}

static void burst_run(struct bench_worker *worker)
{
	struct bench_load *load = worker->load;
	struct bench_slot *refused;
	bool is_due;

	start_plugged(worker);
	while (wait_for_work(worker, &refused, &is_due)) {
		if (refused)
			bench_slot_retry(refused);
		if (!is_due)
			continue;
		bench_worker_sleep(worker, bench_now_ns() +
					   load->shape.timing.gap_ns);
		start_plugged(worker);
	}
}

const struct bench_pace bench_pace_burst = { burst_run, burst_back };
