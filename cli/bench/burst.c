/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bursts: all slots of a lane at once, then nothing until all are back and the
 * gap is over (the paper's clusters of requests, section III-B).
 *
 * The lane's thread starts a burst, plugged, so that it is at once. Without a
 * gap the callback of the last request that comes back starts the next burst
 * itself, as it would in a program that works off one batch after the other;
 * after a failure the thread does.
 *
 * The source must not run out within a burst: the measured load never does.
 */
#include "cli/bench/load.h"

/* Whoever takes the last of a burst away has all slots to himself. */
static bool is_last(struct bench_lane *lane)
{
	return atomic_fetch_sub(&lane->burst_left, 1) == 1;
}

static void retire_all(struct bench_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	lane->busy_count = 0;
	pthread_cond_signal(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

/* All slots are ours. Whether there is more to do is asked of the first: a
 * burst is whole. */
static void start_burst(struct bench_lane *lane)
{
	struct bench_load *load = lane->load;

	if (!bench_slot_fill(&lane->slots[0])) {
		retire_all(lane);
		return;
	}
	for (uint32_t i = 1; i < load->shape.depth; i++)
		load->source->next(load->source, &lane->slots[i]);
	atomic_store(&lane->burst_failed, false);
	atomic_store(&lane->burst_left, load->shape.depth);
	for (uint32_t i = 0; i < load->shape.depth; i++)
		bench_slot_submit(&lane->slots[i]);
}

/* The thread starts the next one. */
static void make_due(struct bench_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	lane->is_due = true;
	pthread_cond_signal(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

static void end_burst(struct bench_lane *lane)
{
	if (lane->load->shape.timing.gap_ns || atomic_load(&lane->burst_failed))
		make_due(lane);
	else
		start_burst(lane);
}

static void burst_back(struct bench_slot *slot)
{
	if (slot->request.status)
		atomic_store(&slot->lane->burst_failed, true);
	if (is_last(slot->lane))
		end_burst(slot->lane);
}

/* Waits for something to do; false: the lane has ended. */
static bool wait_for_work(struct bench_lane *lane, struct bench_slot **refused,
			  bool *is_due)
{
	bool is_over;

	pthread_mutex_lock(&lane->lock);
	while (lane->busy_count && !lane->parked && !lane->is_due)
		pthread_cond_wait(&lane->changed, &lane->lock);
	*refused = lane->parked;
	if (lane->parked)
		lane->parked = lane->parked->next;
	*is_due = lane->is_due;
	lane->is_due = false;
	is_over = !lane->busy_count;
	pthread_mutex_unlock(&lane->lock);
	return !is_over;
}

/* From the lane's thread; a callback is plugged as it is. */
static void start_plugged(struct bench_lane *lane)
{
	rbx_plug(lane->load->ctx);
	start_burst(lane);
	rbx_unplug(lane->load->ctx);
}

static void burst_run(struct bench_lane *lane)
{
	struct bench_load *load = lane->load;
	struct bench_slot *refused;
	bool is_due;

	start_plugged(lane);
	while (wait_for_work(lane, &refused, &is_due)) {
		if (refused)
			bench_slot_retry(refused);
		if (!is_due)
			continue;
		bench_lane_sleep(lane, bench_now_ns() +
					   load->shape.timing.gap_ns);
		start_plugged(lane);
	}
}

const struct bench_pace bench_pace_burst = { burst_run, burst_back };
