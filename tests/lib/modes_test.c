/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * modes_test.c - the options that say how requests become work requests: what
 * the numbers show of them, and that the bytes are right under each.
 *
 * The load is one of random reads and writes of pages, each page with one
 * request outstanding, so that what it must hold is known at any time.
 */
#include "tests/lib/tenant.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "core/random.h"

#define PAGE 4096u
#define BATCH 64u
#define ROUNDS 60u
#define THREADS 4u

/* One thread's part of the borrowed memory, and what it holds. */
struct load {
	struct tenant *tenant;
	uint64_t base;
	uint8_t model[BATCH * PAGE];
	uint8_t bytes[BATCH * PAGE];
	struct rbx_request requests[BATCH];
	uint32_t done_count; /* atomic */
	uint32_t failed_count; /* atomic */
};

static void load_done(struct rbx_request *request)
{
	struct load *load = request->user;

	if (request->status)
		RBX_FETCH_ADD(&load->failed_count, 1);
	RBX_FETCH_ADD(&load->done_count, 1);
}

/* A batch of pages in random order, each read or written once. */
static void load_round(struct load *load, struct rbx_random *random)
{
	struct rbx_request *list[BATCH];
	uint32_t start = rbx_random_below(random, BATCH);

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t page = (start + i) % BATCH;
		uint8_t *bytes = load->bytes + page * PAGE;

		load->requests[i] = (struct rbx_request){
			.op = (uint8_t)rbx_random_below(random, 2),
			.length_bytes = PAGE,
			.offset = load->base + page * PAGE,
			.buf = bytes,
			.complete = load_done,
			.user = load,
		};
		if (load->requests[i].op == RBX_WRITE) {
			memset(load->model + page * PAGE,
			       (int)rbx_random_below(random, 256), PAGE);
			memcpy(bytes, load->model + page * PAGE, PAGE);
		} else {
			memset(bytes, 0xee, PAGE);
		}
		list[i] = &load->requests[i];
	}
	load->done_count = 0;
	assert_int_equal(rbx_remote_submit(load->tenant->remote, list, BATCH),
			 0);
	tenant_wait(load->tenant->ctx, &load->done_count, BATCH, false);
	assert_int_equal(load->failed_count, 0);
	assert_memory_equal(load->bytes, load->model, sizeof(load->model));
}

static void *load_run(void *arg)
{
	struct load *load = arg;
	struct rbx_random random;

	rbx_random_seed(&random, load->base + 1);
	for (uint32_t round = 0; round < ROUNDS; round++)
		load_round(load, &random);
	return NULL;
}

/* The load from one thread or several; the numbers that it made. */
static struct rbx_stats run(const char *settings, uint32_t threads)
{
	struct load *loads = calloc(threads, sizeof(*loads));
	pthread_t ids[THREADS];
	struct tenant tenant;
	struct rbx_stats stats;

	assert_non_null(loads);
	tenant_open(&tenant, settings);
	for (uint32_t i = 0; i < threads; i++) {
		loads[i].tenant = &tenant;
		loads[i].base = (uint64_t)i * BATCH * PAGE;
		if (threads > 1)
			assert_int_equal(pthread_create(&ids[i], NULL, load_run,
							&loads[i]),
					 0);
		else
			load_run(&loads[i]);
	}
	for (uint32_t i = 0; threads > 1 && i < threads; i++)
		pthread_join(ids[i], NULL);
	stats = tenant_stats(tenant.ctx);
	tenant_close(&tenant);
	free(loads);
	assert_int_equal(stats.requests, threads * ROUNDS * BATCH);
	assert_int_equal(stats.bytes, stats.requests * PAGE);
	assert_int_equal(stats.errors, 0);
	assert_int_equal(stats.inflight_bytes, 0);
	assert_int_equal(stats.work_requests + stats.merged_requests,
			 stats.requests);
	assert_true(stats.doorbells <= stats.work_requests);
	assert_true(stats.completions > 0);
	assert_true(stats.polls >= stats.empty_polls);
	assert_true(stats.latency_p50_ns > 0);
	assert_true(stats.latency_p50_ns <= stats.latency_p99_ns);
	assert_true(stats.latency_p99_ns <= stats.latency_p999_ns);
	return stats;
}

/* ---- Modes -----------------------------------------------------------------*/

static void mode_single_posts_each_request_alone(void **state)
{
	struct rbx_stats stats = run("mode=single", 1);

	(void)state;
	assert_int_equal(stats.work_requests, stats.requests);
	assert_int_equal(stats.doorbells, stats.work_requests);
	assert_int_equal(stats.merged_requests, 0);
}

static void mode_doorbell_chains_and_does_not_merge(void **state)
{
	struct rbx_stats stats = run("mode=doorbell", 1);

	(void)state;
	assert_int_equal(stats.work_requests, stats.requests);
	assert_int_equal(stats.merged_requests, 0);
	assert_true(stats.doorbells <= stats.work_requests / 8);
}

static void mode_merge_merges_and_does_not_chain(void **state)
{
	struct rbx_stats stats = run("mode=merge", 1);

	(void)state;
	assert_true(stats.merged_requests > stats.requests / 10);
	assert_int_equal(stats.doorbells, stats.work_requests);
}

static void mode_hybrid_merges_and_chains(void **state)
{
	struct rbx_stats stats = run("mode=hybrid", 1);

	(void)state;
	assert_true(stats.merged_requests > stats.requests / 10);
	assert_true(stats.doorbells <= stats.work_requests / 2);
}

/* ---- The window ------------------------------------------------------------*/

static void window_in_bytes_is_never_exceeded(void **state)
{
	struct rbx_stats stats = run("mode=doorbell window=64K fragment_bytes=64K", 1);

	(void)state;
	assert_true(stats.inflight_bytes_max <= 64 << 10);
	assert_true(stats.inflight_bytes_max >= PAGE);
	assert_true(stats.window_waits > 0);
}

static void window_bounds_what_merging_makes(void **state)
{
	struct rbx_stats stats = run("mode=hybrid window=16K fragment_bytes=16K", 1);

	(void)state;
	assert_true(stats.inflight_bytes_max <= 16 << 10);
	assert_true(stats.window_waits > 0);
	assert_true(stats.merged_requests > 0);
}

static void window_in_work_requests_is_never_exceeded(void **state)
{
	/* Pages are not merged: so many work requests are so many bytes. */
	struct rbx_stats stats = run("mode=doorbell window_work_requests=4", 1);

	(void)state;
	assert_true(stats.inflight_bytes_max <= 4 * PAGE);
	assert_true(stats.window_waits > 0);
}

static void window_is_shared_by_threads_and_queue_pairs(void **state)
{
	struct rbx_stats stats = run(
		"mode=doorbell window=32K fragment_bytes=32K queue_pairs=4 pollers=2", THREADS);

	(void)state;
	assert_true(stats.inflight_bytes_max <= 32 << 10);
	assert_true(stats.window_waits > 0);
}

static void window_of_one_fragment_lets_one_through(void **state)
{
	struct rbx_stats stats = run("mode=hybrid window=4K fragment_bytes=4K", 1);

	(void)state;
	assert_true(stats.inflight_bytes_max <= PAGE);
}

static void window_policies_keep_the_bytes_right(void **state)
{
	static const char *const settings[] = {
		"window=aimd fragment_bytes=4K pollers=2",
		"window=delay fragment_bytes=4K queue_pairs=3",
		"window=auto fragment_bytes=4K pollers=2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		struct rbx_stats stats = run(settings[i], THREADS);

		assert_true(stats.window_bytes >= PAGE);
		assert_int_equal(stats.window_clamps, 0);
	}
}

/* ---- Everything else -------------------------------------------------------*/

static void queue_pairs_share_the_work(void **state)
{
	(void)state;
	run("queue_pairs=2", 1);
	run("queue_pairs=16 mode=single", 1);
}

static void several_threads_and_pollers_share_a_peer(void **state)
{
	(void)state;
	run("", THREADS);
	run("pollers=4 queue_pairs=4", THREADS);
	run("mode=single queue_pairs=3", THREADS);
}

static void polling_busy_never_sleeps(void **state)
{
	struct rbx_stats stats = run("polling=busy", 1);

	(void)state;
	assert_int_equal(stats.arms, 0);
	assert_int_equal(stats.wakeups, 0);
}

static void polling_event_arms_and_sleeps(void **state)
{
	struct rbx_stats stats = run("polling=event", 1);

	(void)state;
	assert_true(stats.arms > 0);
	assert_true(stats.wakeups > 0);
}

static void polling_adaptive_takes_any_numbers(void **state)
{
	(void)state;
	run("polling=adaptive:0", 1);
	run("polling=adaptive:120:4", 1);
	run("polling=adaptive:1:1", THREADS);
}

static void staging_is_as_good_in_each_mode(void **state)
{
	struct rbx_stats stats;

	(void)state;
	stats = run("buffers=staging mode=single", 1);
	assert_int_equal(stats.staged_bytes, stats.bytes);
	stats = run("buffers=staging mode=hybrid", THREADS);
	assert_int_equal(stats.staged_bytes, stats.bytes);
	assert_true(stats.merged_requests > 0);
}

static void fragments_of_any_size_join_again(void **state)
{
	static const char *const settings[] = { "fragment_bytes=4K", "fragment_bytes=64K",
						"fragment_bytes=256K" };
	static const uint32_t fragment_bytes[] = { 4 << 10, 64 << 10,
						   256 << 10 };
	uint8_t *bytes = malloc(TENANT_SLAB_BYTES);
	uint8_t *seen = malloc(TENANT_SLAB_BYTES);
	struct tenant tenant;

	(void)state;
	assert_true(bytes && seen);
	for (int i = 0; i < 3; i++) {
		char text[64] = "mode=single ";

		tenant_open(&tenant, strcat(text, settings[i]));
		tenant_fill(bytes, TENANT_SLAB_BYTES, (uint64_t)i);
		assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, bytes,
						 TENANT_SLAB_BYTES, 0),
				 0);
		assert_int_equal(tenant_stats(tenant.ctx).work_requests,
				 TENANT_SLAB_BYTES / fragment_bytes[i]);
		assert_int_equal(tenant_stats(tenant.ctx).requests, 1);
		assert_int_equal(tenant_transfer(&tenant, RBX_READ, seen,
						 TENANT_SLAB_BYTES, 0),
				 0);
		assert_memory_equal(seen, bytes, TENANT_SLAB_BYTES);
		tenant_close(&tenant);
	}
	free(bytes);
	free(seen);
}

static void stats_reset_starts_from_zero(void **state)
{
	struct tenant tenant;
	struct rbx_stats stats;
	uint8_t page[PAGE] = { 0 };

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, page, PAGE, 0), 0);
	rbx_stats_reset(tenant.ctx);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.requests, 0);
	assert_int_equal(stats.work_requests, 0);
	assert_int_equal(stats.inflight_bytes_max, 0);
	assert_int_equal(stats.latency_max_ns, 0);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, page, PAGE, 0), 0);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.requests, 1);
	assert_int_equal(stats.bytes, PAGE);
	assert_int_equal(stats.work_requests, 1);
	assert_int_equal(stats.inflight_bytes_max, PAGE);
	tenant_close(&tenant);
}

static void stats_of_closed_peers_stay_counted(void **state)
{
	struct tenant tenant;
	struct rbx_stats before, after;
	uint8_t page[PAGE] = { 0 };

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, page, PAGE, 0), 0);
	before = tenant_stats(tenant.ctx);
	rbx_return(tenant.remote);
	rbx_peer_close(tenant.peer);
	after = tenant_stats(tenant.ctx);
	assert_int_equal(after.work_requests, before.work_requests);
	assert_int_equal(after.doorbells, before.doorbells);
	rbx_close(tenant.ctx);
	rbx_server_stop(tenant.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mode_single_posts_each_request_alone),
		cmocka_unit_test(mode_doorbell_chains_and_does_not_merge),
		cmocka_unit_test(mode_merge_merges_and_does_not_chain),
		cmocka_unit_test(mode_hybrid_merges_and_chains),
		cmocka_unit_test(window_in_bytes_is_never_exceeded),
		cmocka_unit_test(window_bounds_what_merging_makes),
		cmocka_unit_test(window_in_work_requests_is_never_exceeded),
		cmocka_unit_test(window_is_shared_by_threads_and_queue_pairs),
		cmocka_unit_test(window_of_one_fragment_lets_one_through),
		cmocka_unit_test(window_policies_keep_the_bytes_right),
		cmocka_unit_test(queue_pairs_share_the_work),
		cmocka_unit_test(several_threads_and_pollers_share_a_peer),
		cmocka_unit_test(polling_busy_never_sleeps),
		cmocka_unit_test(polling_event_arms_and_sleeps),
		cmocka_unit_test(polling_adaptive_takes_any_numbers),
		cmocka_unit_test(staging_is_as_good_in_each_mode),
		cmocka_unit_test(fragments_of_any_size_join_again),
		cmocka_unit_test(stats_reset_starts_from_zero),
		cmocka_unit_test(stats_of_closed_peers_stay_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
