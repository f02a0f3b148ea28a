/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a load, runs it, and watches it.
 *
 * A load has workers, which are threads of the program. Each worker has `depth` slots: a
 * request and its buffer. The pace of a worker decides when its slots are submitted; each
 * pace is a file (closed.c, burst.c, open.c). What happens to one slot is the same for
 * all paces (slot.c).
 *
 * If nothing completes for the stall limit although requests are outstanding, the library
 * has broken its promise. Then the run ends with -ETIMEDOUT. The library still borrows
 * the slots then, so they must never be freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench/load.h"

#define TICK_MS 100

/* One in so many slots of a worker is measured: for the histogram. In a mix there are
 * more of them, as its latencies come from them. */
#define TIMED_EVERY 32u
#define TIMED_EVERY_OF_MIX 8u

static void *worker_run(void *worker_pointer)
{
	struct bench_worker *worker = worker_pointer;
	struct bench_load *load = worker->load;

	/* So that a pace that sleeps wakes up on time. */
	prctl(PR_SET_TIMERSLACK, 1);
	load->pace->run(worker);
	pthread_mutex_lock(&load->lock);
	load->workers_running--;
	pthread_cond_signal(&load->worker_ended);
	pthread_mutex_unlock(&load->lock);
	return NULL;
}

/* ---- Set-up ----------------------------------------------------------------*/

static void init_slot(struct bench_load *load, uint32_t index)
{
	struct bench_slot *slot = &load->slots[index];

	memset(slot, 0, sizeof(*slot));
	slot->load = load;
	slot->worker_index = index / load->shape.depth;
	slot->worker = &load->workers[slot->worker_index];
	slot->random = load->shape.seed + index;
	slot->random = bench_random(&slot->random);
	slot->is_timed = load->shape.timing.kind != BENCH_OPEN &&
			 index % load->shape.depth %
					 (load->shape.is_mix ? TIMED_EVERY_OF_MIX :
							       TIMED_EVERY) == 0;
	slot->request.buf = load->buffers +
			    (size_t)index * load->shape.buffer_bytes;
	slot->request.region = load->region;
	slot->request.complete = bench_slot_complete;
	slot->request.user = slot;
}

static void init_worker(struct bench_load *load, uint32_t index)
{
	struct bench_worker *worker = &load->workers[index];

	worker->load = load;
	worker->random = load->shape.seed ^ (~0ull / (index + 2));
	worker->slots = &load->slots[index * load->shape.depth];
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
}

/* Data that does not compress and differs from page to page. */
static void fill_buffers(struct bench_load *load)
{
	uint64_t *words = (uint64_t *)load->buffers;
	uint64_t random = load->shape.seed;

	for (size_t i = 0; i < load->buffers_bytes / sizeof(*words); i++)
		words[i] = bench_random(&random);
}

static int allocate(struct bench_load *load)
{
	size_t slots = (size_t)load->shape.workers_count * load->shape.depth;
	size_t page = sysconf(_SC_PAGESIZE);

	load->buffers_bytes = (slots * load->shape.buffer_bytes + page - 1) &
			      ~(page - 1);
	load->slots = aligned_alloc(64, slots * sizeof(*load->slots));
	load->workers =
		calloc(load->shape.workers_count, sizeof(*load->workers));
	load->buffers = aligned_alloc(page, load->buffers_bytes);
	return load->slots && load->workers && load->buffers ? 0 : -ENOMEM;
}

int bench_load_create(struct bench_load **load_out, struct rbx_context *ctx,
		      struct rbx_volume *volume,
		      const struct bench_load_shape *shape)
{
	struct bench_load *load = calloc(1, sizeof(*load));
	int err = -ENOMEM;

	if (!load)
		return err;
	load->ctx = ctx;
	load->volume = volume;
	load->shape = *shape;
	load->pace = bench_pace_of(shape->timing.kind);
	pthread_mutex_init(&load->lock, NULL);
	pthread_cond_init(&load->worker_ended, NULL);
	err = allocate(load);
	if (!err && shape->is_registered)
		err = rbx_region_register(ctx, load->buffers,
					  load->buffers_bytes, &load->region);
	if (err) {
		bench_load_destroy(load);
		return err;
	}
	fill_buffers(load);
	for (uint32_t i = 0; i < shape->workers_count; i++)
		init_worker(load, i);
	for (uint32_t i = 0; i < shape->workers_count * shape->depth; i++)
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
	free(load->workers);
	free(load->slots);
	free(load);
}

/* ---- A run -----------------------------------------------------------------*/

static double now_s(void)
{
	return bench_now_ns() / 1e9;
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
	uint32_t slots = load->shape.workers_count * load->shape.depth;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < slots; i++)
		sum += atomic_load_explicit(&load->slots[i].done_count,
					    memory_order_relaxed);
	return sum;
}

uint64_t bench_load_p50_ns(const struct bench_load *load)
{
	struct bench_latency all;

	bench_latency_clear(&all);
	for (int op = 0; op < BENCH_OPS; op++)
		bench_latency_merge(&all, &load->latency_of_op[op]);
	return bench_latency_quantile_ns(&all, 500);
}

static int start(struct bench_load *load)
{
	int err = 0;

	load->workers_running = load->shape.workers_count;
	for (uint32_t i = 0; i < load->shape.workers_count; i++)
		bench_worker_reset(&load->workers[i]);
	for (uint32_t i = 0; i < load->shape.workers_count && !err; i++)
		err = -pthread_create(&load->workers[i].thread, NULL,
				      worker_run, &load->workers[i]);
	return err;
}

/* Sleeps for a tick or until the last worker ends. Returns whether it has ended. */
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
	while (load->workers_running &&
	       pthread_cond_timedwait(&load->worker_ended, &load->lock,
				      &until) != ETIMEDOUT)
		;
	ended = !load->workers_running;
	pthread_mutex_unlock(&load->lock);
	return ended;
}

/* Watches until all workers have ended, or nothing completes any more. before: requests
 * of earlier runs. */
static int watch(struct bench_load *load, uint64_t before, double runtime_s,
		 uint32_t stall_limit_ms, bench_progress_fn *progress,
		 void *user)
{
	double begin_s = now_s(), moved_s = begin_s, elapsed_s = 0;
	uint64_t done = before;

	for (;;) {
		double left_s = runtime_s - elapsed_s;
		uint64_t done_now;

		if (wait_a_tick(load, runtime_s && left_s > 0 ? left_s : 1))
			return 0;
		elapsed_s = now_s() - begin_s;
		if ((runtime_s && elapsed_s >= runtime_s) ||
		    cli_interrupted())
			atomic_store(&load->stop, true);
		done_now = count_done(load);
		if (done_now != done)
			moved_s = begin_s + elapsed_s;
		done = done_now;
		if (begin_s + elapsed_s - moved_s > stall_limit_ms / 1e3)
			return -ETIMEDOUT;
		if (progress)
			progress(user, done - before, elapsed_s);
	}
}

int bench_load_run(struct bench_load *load, struct bench_source *source,
		   double runtime_s, uint32_t stall_limit_ms,
		   bench_progress_fn *progress, void *user,
		   struct bench_result *result)
{
	double begin_s, begin_cpu_s;
	uint64_t before;
	int err;

	load->source = source;
	atomic_store(&load->stop, false);
	atomic_store(&load->errors, 0);
	load->first_error[0] = 0;
	for (int op = 0; op < BENCH_OPS; op++)
		bench_latency_clear(&load->latency_of_op[op]);
	before = count_done(load);
	begin_s = now_s();
	begin_cpu_s = cpu_s();
	err = start(load);
	if (!err)
		err = watch(load, before, runtime_s, stall_limit_ms, progress,
			    user);
	result->elapsed_s = now_s() - begin_s;
	result->cpu_s = cpu_s() - begin_cpu_s;
	result->requests = count_done(load) - before;
	result->errors = atomic_load(&load->errors);
	result->gave_up = result->errors >= BENCH_ERRORS_MAX;
	result->latency_of_op = load->latency_of_op;
	if (err)
		return err;
	for (uint32_t i = 0; i < load->shape.workers_count; i++)
		pthread_join(load->workers[i].thread, NULL);
	memcpy(result->first_error, load->first_error,
	       sizeof(result->first_error));
	return 0;
}
