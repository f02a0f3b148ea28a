/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load.h - what the files share that make up a load: workers, their slots,
 * and the paces.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <time.h>

#include "cli/bench/bench.h"

#define BENCH_ERRORS_MAX 1000 /* then a run is given up */

struct bench_worker {
	struct bench_load *load;
	struct bench_slot *slots;
	pthread_t thread;
	uint64_t random; /* state of bench_random(), of the pace */
	_Atomic uint32_t burst_left; /* requests of the burst that are out */
	_Atomic bool burst_failed; /* one of them did */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct bench_slot *parked; /* the worker's thread is to take them up */
	struct bench_slot *idle; /* open: at hand */
	uint32_t busy_count; /* slots that have not retired */
	bool is_due; /* burst: the next is for the worker's thread to start */
};

/* How the slots of a worker are kept going. */
struct bench_pace {
	void (*run)(struct bench_worker *worker); /* its thread; ends with it */
	/* The request is back, in its completion callback. */
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
	/* Of the run under way. */
	struct bench_source *source;
	_Atomic bool stop;
	_Atomic uint64_t errors;
	char first_error[BENCH_ERROR_BYTES]; /* written by whoever counts the first error */
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

/* Sleeps until then, not at all where it is past. False: the run is over. */
bool bench_worker_sleep(const struct bench_worker *worker, uint64_t at_ns);

/* ---- slot.c ----------------------------------------------------------*/

/* Before a run: no slot is out. */
void bench_worker_reset(struct bench_worker *worker);

/* Whether the source has something for the slot and the run goes on; then it is
 * filled in. */
bool bench_slot_fill(struct bench_slot *slot);
/* Submits what was filled in; parks the slot where there is no room. */
void bench_slot_submit(struct bench_slot *slot);
/* Both, or retires the slot. */
void bench_slot_go(struct bench_slot *slot);
/* The worker's thread takes it up. */
void bench_slot_park(struct bench_slot *slot, bool is_refused);
void bench_slot_retire(struct bench_slot *slot);

/* For the worker's thread: waits until there is room, then submits. */
void bench_slot_retry(struct bench_slot *slot);

/* rbx_request.complete of every slot. */
void bench_slot_complete(struct rbx_request *request);

#endif
