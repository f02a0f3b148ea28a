/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps requests outstanding.
 *
 * A load has lanes, one application thread each, and a lane has `depth` slots:
 * a request and its buffer. The thread of a lane submits each slot once, one by
 * one. From then on a slot lives by itself: its completion callback asks the
 * source what comes next and submits it. So the library sees what a program
 * gives it that works off separate requests, and batches come from plugging.
 *
 * A slot retires when time is over or the source has nothing left; a lane ends
 * when all its slots have retired.
 *
 * Two things are not done in a callback: waiting where the library has no room
 * (-EAGAIN), and going on after a failure, since requests that cannot go
 * anywhere may complete inside of rbx_submit(), which would call the callback
 * inside of itself. Then the slot is parked, and the lane's thread, which
 * otherwise sleeps, takes it up.
 *
 * A request that fails is counted and its slot goes on, since other parts of
 * the volume may be well; ERRORS_MAX failures end the run. If nothing completes
 * for the stall limit although requests are outstanding, the library has broken
 * its promise: the run ends with -ETIMEDOUT and the slots, which the library
 * still borrows, must never be freed.
 *
 * The path of a request reads no clock, allocates nothing and takes no lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define ERRORS_MAX 1000
#define TICK_MS 100
#define ROOM_WAIT_MS 100

struct bench_lane {
	struct bench_load *load;
	struct bench_slot *slots;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct bench_slot *parked;
	uint32_t busy_count; /* slots that have not retired */
};

struct bench_load {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct bench_load_shape shape;
	struct bench_slot *slots;
	struct bench_lane *lanes;
	char *buffers;
	size_t buffers_bytes;
	struct rbx_region *region;
	/* Of the run under way. */
	struct bench_source *source;
	_Atomic bool stop;
	_Atomic uint64_t errors;
	char first_error[160]; /* written by whoever counts the first error */
	pthread_mutex_t lock; /* guards lanes_running */
	pthread_cond_t lane_ended;
	uint32_t lanes_running;
};

_Atomic bool bench_interrupted;

static void slot_retire(struct bench_slot *slot)
{
	struct bench_lane *lane = slot->lane;

	pthread_mutex_lock(&lane->lock);
	if (!--lane->busy_count)
		pthread_cond_signal(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

static void slot_park(struct bench_slot *slot, bool is_refused)
{
	struct bench_lane *lane = slot->lane;

	slot->is_refused = is_refused;
	pthread_mutex_lock(&lane->lock);
	slot->parked_next = lane->parked;
	lane->parked = slot;
	pthread_cond_signal(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

static void note_error(struct bench_load *load,
		       const struct rbx_request *request, int status)
{
	uint64_t before = atomic_fetch_add(&load->errors, 1);

	if (!before)
		snprintf(load->first_error, sizeof(load->first_error),
			 "%s of %" PRIu32 " bytes at offset %" PRIu64 ": %s",
			 request->op == RBX_READ ? "read" : "write",
			 request->length_bytes, request->offset,
			 strerror(-status));
	if (before + 1 >= ERRORS_MAX)
		atomic_store(&load->stop, true);
}

/* The request is back, or was never taken. */
static void slot_end(struct bench_slot *slot)
{
	struct bench_load *load = slot->load;
	uint64_t done_count = atomic_load_explicit(&slot->done_count,
						   memory_order_relaxed);

	atomic_store_explicit(&slot->done_count, done_count + 1,
			      memory_order_relaxed);
	if (slot->request.status)
		note_error(load, &slot->request, slot->request.status);
	if (load->source->done)
		load->source->done(load->source, slot);
}

static void slot_submit(struct bench_slot *slot)
{
	struct rbx_request *request = &slot->request;
	int rc = rbx_submit(slot->load->volume, &request, 1);

	if (!rc)
		return;
	if (rc == -EAGAIN) {
		slot_park(slot, true);
		return;
	}
	request->status = rc;
	slot_end(slot);
	slot_retire(slot);
}

static void slot_go(struct bench_slot *slot)
{
	struct bench_load *load = slot->load;

	if (atomic_load_explicit(&load->stop, memory_order_relaxed) ||
	    !load->source->next(load->source, slot))
		slot_retire(slot);
	else
		slot_submit(slot);
}

static void slot_complete(struct rbx_request *request)
{
	struct bench_slot *slot = request->user;

	slot_end(slot);
	if (request->status)
		slot_park(slot, false);
	else
		slot_go(slot);
}

/* Waits for a parked slot or for the end of the lane (NULL). */
static struct bench_slot *lane_wait(struct bench_lane *lane)
{
	struct bench_slot *slot;

	pthread_mutex_lock(&lane->lock);
	while (lane->busy_count && !lane->parked)
		pthread_cond_wait(&lane->changed, &lane->lock);
	slot = lane->parked;
	if (slot)
		lane->parked = slot->parked_next;
	pthread_mutex_unlock(&lane->lock);
	return slot;
}

static void *lane_run(void *lane_pointer)
{
	struct bench_lane *lane = lane_pointer;
	struct bench_load *load = lane->load;
	struct bench_slot *slot;

	for (uint32_t i = 0; i < load->shape.depth; i++)
		slot_go(&lane->slots[i]);
	while ((slot = lane_wait(lane))) {
		if (!slot->is_refused) {
			slot_go(slot);
			continue;
		}
		rbx_wait_room(load->ctx, ROOM_WAIT_MS);
		slot_submit(slot);
	}
	pthread_mutex_lock(&load->lock);
	load->lanes_running--;
	pthread_cond_signal(&load->lane_ended);
	pthread_mutex_unlock(&load->lock);
	return NULL;
}

/* ---- Set-up ----------------------------------------------------------------*/

static void init_slot(struct bench_load *load, uint32_t index)
{
	struct bench_slot *slot = &load->slots[index];

	memset(slot, 0, sizeof(*slot));
	slot->load = load;
	slot->lane_index = index / load->shape.depth;
	slot->lane = &load->lanes[slot->lane_index];
	slot->random = load->shape.seed + index;
	slot->random = bench_random(&slot->random);
	slot->request.buf = load->buffers +
			    (size_t)index * load->shape.buffer_bytes;
	slot->request.region = load->region;
	slot->request.complete = slot_complete;
	slot->request.user = slot;
}

static void init_lane(struct bench_load *load, uint32_t index)
{
	struct bench_lane *lane = &load->lanes[index];

	lane->load = load;
	lane->slots = &load->slots[index * load->shape.depth];
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->changed, NULL);
}

/* Something that does not compress and differs from page to page. */
static void fill_buffers(struct bench_load *load)
{
	uint64_t *words = (uint64_t *)load->buffers;
	uint64_t random = load->shape.seed;

	for (size_t i = 0; i < load->buffers_bytes / sizeof(*words); i++)
		words[i] = bench_random(&random);
}

static int allocate(struct bench_load *load)
{
	size_t slots = (size_t)load->shape.lanes_count * load->shape.depth;
	size_t page = sysconf(_SC_PAGESIZE);

	load->buffers_bytes = (slots * load->shape.buffer_bytes + page - 1) &
			      ~(page - 1);
	load->slots = aligned_alloc(64, slots * sizeof(*load->slots));
	load->lanes = calloc(load->shape.lanes_count, sizeof(*load->lanes));
	load->buffers = aligned_alloc(page, load->buffers_bytes);
	return load->slots && load->lanes && load->buffers ? 0 : -ENOMEM;
}

int bench_load_create(struct bench_load **load_out, struct rbx_context *ctx,
		      struct rbx_volume *volume,
		      const struct bench_load_shape *shape)
{
	struct bench_load *load = calloc(1, sizeof(*load));
	int rc = -ENOMEM;

	if (!load)
		return rc;
	load->ctx = ctx;
	load->volume = volume;
	load->shape = *shape;
	pthread_mutex_init(&load->lock, NULL);
	pthread_cond_init(&load->lane_ended, NULL);
	rc = allocate(load);
	if (!rc && shape->is_registered)
		rc = rbx_region_register(ctx, load->buffers,
					 load->buffers_bytes, &load->region);
	if (rc) {
		bench_load_destroy(load);
		return rc;
	}
	fill_buffers(load);
	for (uint32_t i = 0; i < shape->lanes_count; i++)
		init_lane(load, i);
	for (uint32_t i = 0; i < shape->lanes_count * shape->depth; i++)
		init_slot(load, i);
	*load_out = load;
	return 0;
}

void bench_load_destroy(struct bench_load *load)
{
	if (!load)
		return;
	if (load->region)
		rbx_region_release(load->region);
	free(load->buffers);
	free(load->lanes);
	free(load->slots);
	free(load);
}

/* ---- A run -----------------------------------------------------------------*/

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static uint64_t count_done(struct bench_load *load)
{
	uint32_t slots = load->shape.lanes_count * load->shape.depth;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < slots; i++)
		sum += atomic_load_explicit(&load->slots[i].done_count,
					    memory_order_relaxed);
	return sum;
}

static int start(struct bench_load *load)
{
	int rc = 0;

	load->lanes_running = load->shape.lanes_count;
	for (uint32_t i = 0; i < load->shape.lanes_count; i++)
		load->lanes[i].busy_count = load->shape.depth;
	for (uint32_t i = 0; i < load->shape.lanes_count && !rc; i++)
		rc = pthread_create(&load->lanes[i].thread, NULL, lane_run,
				    &load->lanes[i]);
	return -rc;
}

/* Sleeps for a tick or until the last lane ends; says whether it has. */
static bool wait_a_tick(struct bench_load *load, double limit_s)
{
	double tick_s = limit_s < TICK_MS / 1e3 ? limit_s : TICK_MS / 1e3;
	struct timespec until;
	bool ended;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += tick_s * 1e9;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&load->lock);
	while (load->lanes_running &&
	       pthread_cond_timedwait(&load->lane_ended, &load->lock,
				      &until) != ETIMEDOUT)
		;
	ended = !load->lanes_running;
	pthread_mutex_unlock(&load->lock);
	return ended;
}

/* Until all lanes have ended, or nothing moves any more. */
static int watch(struct bench_load *load, double runtime_s,
		 uint32_t stall_limit_ms, bench_progress_fn *progress,
		 void *user)
{
	double begin_s = now_s(), moved_s = begin_s, elapsed_s = 0;
	uint64_t done = 0;

	for (;;) {
		double left_s = runtime_s - elapsed_s;
		uint64_t done_now;

		if (wait_a_tick(load, runtime_s && left_s > 0 ? left_s : 1))
			return 0;
		elapsed_s = now_s() - begin_s;
		if ((runtime_s && elapsed_s >= runtime_s) ||
		    atomic_load(&bench_interrupted))
			atomic_store(&load->stop, true);
		done_now = count_done(load);
		if (done_now != done)
			moved_s = begin_s + elapsed_s;
		done = done_now;
		if (begin_s + elapsed_s - moved_s > stall_limit_ms / 1e3)
			return -ETIMEDOUT;
		if (progress)
			progress(user, done, elapsed_s);
	}
}

int bench_load_run(struct bench_load *load, struct bench_source *source,
		   double runtime_s, uint32_t stall_limit_ms,
		   bench_progress_fn *progress, void *user,
		   struct bench_result *result)
{
	double begin_s, begin_cpu_s;
	uint64_t before;
	int rc;

	load->source = source;
	atomic_store(&load->stop, false);
	atomic_store(&load->errors, 0);
	load->first_error[0] = 0;
	before = count_done(load);
	begin_s = now_s();
	begin_cpu_s = cpu_s();
	rc = start(load);
	if (!rc)
		rc = watch(load, runtime_s, stall_limit_ms, progress, user);
	result->elapsed_s = now_s() - begin_s;
	result->cpu_s = cpu_s() - begin_cpu_s;
	result->requests = count_done(load) - before;
	result->errors = atomic_load(&load->errors);
	result->gave_up = result->errors >= ERRORS_MAX;
	if (rc)
		return rc;
	for (uint32_t i = 0; i < load->shape.lanes_count; i++)
		pthread_join(load->lanes[i].thread, NULL);
	memcpy(result->first_error, load->first_error,
	       sizeof(result->first_error));
	return 0;
}
