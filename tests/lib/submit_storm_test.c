/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit_storm_test.c - many threads submit to one volume of several servers,
 * completions submit again, and connections are cut meanwhile. Every request
 * ends once, each read is of what was written, nothing stays in flight.
 *
 * Each slot has pages of its own, so what they must hold is known; slots of
 * different threads lie next to each other and merge.
 */
#include "tests/lib/cable.h"
#include "tests/lib/tenant.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"
#include "lib/clock.h"

#define PAGE 4096u
#define WORDS (PAGE / sizeof(uint64_t))
#define THREADS 6u
#define SLOTS_EACH 24u
#define SLOTS (THREADS * SLOTS_EACH)
/* Of a thread: a batch, its resubmissions, a wait. */
#ifdef __SANITIZE_THREAD__ /* ten times as slow, and a race need not strike to be seen */
#define ROUNDS 2u
#else
#define ROUNDS 8u
#endif
#define RESUBMITS 60u /* of a slot in a round */
#define SERVERS 2u

struct storm {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	uint32_t wrong_count; /* atomic */
	uint32_t failed_count; /* atomic */
	uint32_t ended_count; /* atomic: requests */
	uint32_t threads_count; /* atomic: that are at it */
};

struct slot {
	struct storm *storm;
	struct rbx_request request;
	uint32_t left_count;
	uint32_t *waiting_count; /* atomic, the thread's */
	uint64_t number;
	uint64_t page[WORDS];
};

static void prepare(struct slot *slot)
{
	bool write = slot->request.op == RBX_READ;

	slot->request.op = write ? RBX_WRITE : RBX_READ;
	slot->request.flags = slot->left_count % 32 == 5 ? RBX_FENCE :
			      slot->left_count % 8 == 2	 ? RBX_NO_MERGE :
			      slot->left_count % 8 == 5	 ? RBX_URGENT :
							   0;
	slot->number += write;
	for (uint32_t i = 0; i < WORDS; i++)
		slot->page[i] = write ? slot->number : UINT64_MAX;
}

static bool holds(const struct slot *slot)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (slot->page[i] != slot->number)
			return false;
	return true;
}

static void slot_done(struct rbx_request *request)
{
	struct slot *slot = request->user;
	struct rbx_request *list[] = { request };

	RBX_FETCH_ADD(&slot->storm->ended_count, 1);
	if (request->status)
		RBX_FETCH_ADD(&slot->storm->failed_count, 1);
	else if (!holds(slot))
		RBX_FETCH_ADD(&slot->storm->wrong_count, 1);
	if (slot->left_count > 0) {
		slot->left_count--;
		prepare(slot);
		if (rbx_submit(slot->storm->volume, list, 1) == 0)
			return;
		RBX_FETCH_ADD(&slot->storm->failed_count, 1);
	}
	RBX_FETCH_ADD(slot->waiting_count, -1);
}

struct worker {
	struct storm *storm;
	uint32_t index;
	uint32_t waiting_count; /* atomic */
	struct slot slots[SLOTS_EACH];
};

static void submit_all(struct worker *worker)
{
	bool plug = worker->index % 2;

	if (plug)
		rbx_plug(worker->storm->ctx);
	for (uint32_t i = 0; i < SLOTS_EACH; i++) {
		struct slot *slot = &worker->slots[i];
		struct rbx_request *list[] = { &slot->request };
		int err;

		slot->left_count = RESUBMITS;
		prepare(slot);
		while ((err = rbx_submit(worker->storm->volume, list, 1)) ==
		       -EAGAIN)
			(void)rbx_wait_room(worker->storm->ctx, 100);
		if (err) {
			RBX_FETCH_ADD(&worker->storm->failed_count, 1);
			RBX_FETCH_ADD(&worker->waiting_count, -1);
		}
	}
	if (plug)
		rbx_unplug(worker->storm->ctx);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	for (uint32_t i = 0; i < SLOTS_EACH; i++) {
		struct slot *slot = &worker->slots[i];

		slot->storm = worker->storm;
		slot->waiting_count = &worker->waiting_count;
		slot->request = (struct rbx_request){
			.length_bytes = PAGE,
			/* Neighbours are of different threads. */
			.offset = (i * THREADS + worker->index) * PAGE,
			.buf = slot->page,
			.complete = slot_done,
			.user = slot,
		};
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		RBX_STORE_RELEASE(&worker->waiting_count, SLOTS_EACH);
		submit_all(worker);
		while (RBX_LOAD_ACQUIRE(&worker->waiting_count) != 0)
			usleep(200);
	}
	RBX_FETCH_ADD(&worker->storm->threads_count, -1);
	return NULL;
}

/* Cuts cables until the threads are through. */
static void disturb(struct storm *storm, struct cable *cables[SERVERS],
		    bool cut)
{
	uint64_t end_ns = rbx_now_ns() + TENANT_WAIT_MS * 1000000ull;
	uint32_t cuts = 0, ended = 0;

	while (RBX_LOAD_ACQUIRE(&storm->threads_count) != 0) {
		usleep(2000);
		/* What was cut off gets through before the next cut. */
		if (cut && RBX_LOAD_ACQUIRE(&storm->ended_count) - ended > SLOTS) {
			cable_cut(cables[cuts++ % SERVERS]);
			ended = RBX_LOAD_ACQUIRE(&storm->ended_count);
		}
		if (rbx_now_ns() > end_ns)
			fail_msg("the storm hangs after %u requests",
				 storm->ended_count);
	}
}

static void run(const char *settings, bool cut)
{
	struct rbx_volume_options options;
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	struct storm storm = { .threads_count = THREADS };
	struct rbx_server *servers[SERVERS];
	struct cable *cables[SERVERS];
	pthread_t threads[THREADS];
	char list[160];

	assert_non_null(workers);
	for (uint32_t i = 0; i < SERVERS; i++) {
		servers[i] = tenant_server();
		cables[i] = cable_lay(rbx_server_address(servers[i]));
	}
	snprintf(list, sizeof(list), "%s,%s", cable_address(cables[0]),
		 cable_address(cables[1]));
	storm.ctx = tenant_context(settings);
	rbx_volume_options_defaults(&options);
	options.replicas = 2;
	if (rbx_volume_open(storm.ctx, &storm.volume, list,
			    2 * TENANT_SLAB_BYTES, &options))
		fail_msg("%s", rbx_last_error());
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i].storm = &storm;
		workers[i].index = i;
		assert_int_equal(pthread_create(&threads[i], NULL, work,
						&workers[i]),
				 0);
	}
	disturb(&storm, cables, cut);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(storm.failed_count, 0);
	assert_int_equal(storm.wrong_count, 0);
	assert_int_equal(storm.ended_count, SLOTS * ROUNDS * (RESUBMITS + 1));
	assert_int_equal(tenant_stats(storm.ctx).requests, storm.ended_count);
	assert_int_equal(tenant_stats(storm.ctx).inflight_bytes, 0);
	rbx_volume_close(storm.volume);
	rbx_close(storm.ctx);
	for (uint32_t i = 0; i < SERVERS; i++) {
		cable_remove(cables[i]);
		rbx_server_stop(servers[i]);
	}
	free(workers);
}

static void storm_over_whole_cables_loses_nothing(void **state)
{
	(void)state;
	run("pollers=2 requests_max=256", false);
	run("queue_pairs=3 window=64K fragment_bytes=64K", false);
}

static void storm_over_cut_cables_loses_nothing(void **state)
{
	(void)state;
	run("pollers=2 queue_pairs=2 peer_timeout_ms=60000", true);
	run("buffers=staging window_work_requests=8 peer_timeout_ms=60000",
	    true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storm_over_whole_cables_loses_nothing),
		cmocka_unit_test(storm_over_cut_cables_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
