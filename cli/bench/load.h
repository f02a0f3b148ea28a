/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load.h - shared by the files of a load: workers, their slots, and the paces.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <time.h>

#include "cli/bench/bench.h"

#define BENCH_ERRORS_MAX 1000 /* after so many a run ends */

struct bench_worker {
	struct bench_load *load;
	struct bench_slot *slots;
	pthread_t thread;
	uint64_t random; /* state of bench_random() for the pace */
	_Atomic uint32_t burst_left; /* requests of the burst that have not completed */
	_Atomic bool burst_failed; /* a request of the burst failed */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct bench_slot *parked; /* for the worker's thread to submit */
	struct bench_slot *idle; /* open: free slots */
	uint32_t busy_count; /* slots that have not retired */
	bool is_due; /* burst: the worker's thread has to start the next one */
};

/* A pace: when the slots of a worker are submitted. */
struct bench_pace {
	void (*run)(struct bench_worker *worker); /* runs in the worker's thread */
	/* A request has completed; called in its callback. */
	void (*back)(struct bench_slot *slot);
};

struct bench_load {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct bench_load_shape shape;
	const struct bench_pace *pace;
	struct bench_slot *slots;
	struct bench_worker *workers;
	char *buffers;
	size_t buffers_bytes;
	struct rbx_region *region;
	/* Of the current run. */
	struct bench_source *source;
	_Atomic bool stop;
	_Atomic uint64_t errors;
	char first_error[BENCH_ERROR_BYTES]; /* written by the thread that counts the first error */
	struct bench_latency latency_of_op[BENCH_OPS];
	pthread_mutex_t lock; /* guards workers_running */
	pthread_cond_t worker_ended;
	uint32_t workers_running;
};

extern const struct bench_pace bench_pace_closed;
extern const struct bench_pace bench_pace_burst;
extern const struct bench_pace bench_pace_open;

const struct bench_pace *bench_pace_of(enum bench_timing_kind kind);

static inline uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Sleeps until then, or not at all if that time has passed. False: the run is over. */
bool bench_worker_sleep(const struct bench_worker *worker, uint64_t at_ns);

/* ---- slot.c ----------------------------------------------------------*/

/* Called before a run: no slot is outstanding. */
void bench_worker_reset(struct bench_worker *worker);

/* Fills in the next request of a slot. False: the source has none, or the run is over. */
bool bench_slot_fill(struct bench_slot *slot);
/* Submits what was filled in. If the library has no room, parks the slot. */
void bench_slot_submit(struct bench_slot *slot);
/* Fills in and submits the slot, or retires it. */
void bench_slot_go(struct bench_slot *slot);
/* Leaves the slot to the worker's thread. */
void bench_slot_park(struct bench_slot *slot, bool is_refused);
void bench_slot_retire(struct bench_slot *slot);

/* Called by the worker's thread: waits until there is room, then submits. */
void bench_slot_retry(struct bench_slot *slot);

/* rbx_request.complete of every slot. */
void bench_slot_complete(struct rbx_request *request);

#endif
