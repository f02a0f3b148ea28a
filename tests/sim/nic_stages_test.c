/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nic_stages_test.c - each stage of the model NIC by itself, against times that
 * were reckoned by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/nic/cache.h"
#include "sim/nic/pcie.h"
#include "sim/nic/server.h"
#include "tests/sim/nic_world.h"

static void expect_span(struct rbx_nic_span span, uint64_t head_ps,
			uint64_t tail_ps)
{
	assert_int_equal(span.head_ps, head_ps);
	assert_int_equal(span.tail_ps, tail_ps);
}

/* 8,000 Mbit/s are 1 ns a byte. */
static void pipe_passes_bytes_in_order(void **state)
{
	struct rbx_nic_pipe pipe = { .mbps = 8000 };

	(void)state;
	/* 3,000 bytes from 0 on: the first packet has passed at 1,000 ns. */
	expect_span(rbx_nic_pipe_pass(&pipe, rbx_nic_span_at(0), 3000, 1000),
		    1000000, 3000000);
	/* Asked for at 500, begins at 3,000. */
	expect_span(rbx_nic_pipe_pass(&pipe, rbx_nic_span_at(500000), 100,
				      1000),
		    3100000, 3100000);
	/* Idle from 3,100 to 5,000. */
	expect_span(rbx_nic_pipe_pass(&pipe, rbx_nic_span_at(5000000), 10,
				      1000),
		    5010000, 5010000);
	assert_int_equal(pipe.busy_ps, 3110000);
	assert_int_equal(pipe.messages, 3);
}

/* What comes slower than the pipe is leaves as slowly: its last packet of 1,000
 * comes at 9,000 and passes at 10,000. */
static void pipe_waits_for_the_tail(void **state)
{
	struct rbx_nic_pipe pipe = { .mbps = 8000 };
	struct rbx_nic_span slow = { 0, 9000000 };

	(void)state;
	expect_span(rbx_nic_pipe_pass(&pipe, slow, 3000, 1000), 1000000,
		    10000000);
}

/* 54,540 Mbit/s: 4,096 bytes take 600,806.7 ps; what is cut off is less than a
 * picosecond a message. */
static void pipe_rounds_below_a_picosecond(void **state)
{
	struct rbx_nic_pipe pipe = { .mbps = 54540 };

	(void)state;
	assert_int_equal(rbx_nic_pipe_ps(&pipe, 4096), 600806);
}

struct work {
	struct rbx_nic_job job;
	uint64_t cost_ps, begin_ps, done_ns;
};

static uint64_t serve(struct rbx_nic_job *job, uint64_t begin_ps)
{
	struct work *work = RBX_CONTAINER_OF(job, struct work, job);

	work->begin_ps = begin_ps;
	return begin_ps + work->cost_ps;
}

static void done(struct rbx_nic_job *job)
{
	RBX_CONTAINER_OF(job, struct work, job)->done_ns = rbx_sim_now();
}

static struct work work_of(uint64_t cost_ps)
{
	return (struct work){ .job = { .serve = serve, .done = done },
			      .cost_ps = cost_ps };
}

static void run(void)
{
	while (rbx_sim_step())
		;
}

/* Services of 1.5, 1.5 and 10 ns follow each other without a gap; their ends are
 * told at the next nanosecond. */
static void server_serves_one_after_the_other(void **state)
{
	struct work works[] = { work_of(1500), work_of(1500), work_of(10000) };
	struct rbx_nic_server server;

	(void)state;
	nic_world_begin(NULL);
	rbx_nic_server_init(&server);
	for (int i = 0; i < 3; i++)
		rbx_nic_server_add(&server, &works[i].job);
	assert_int_equal(server.queued_peak, 3);
	run();
	assert_int_equal(works[0].begin_ps, 0);
	assert_int_equal(works[0].done_ns, 2);
	assert_int_equal(works[1].begin_ps, 1500);
	assert_int_equal(works[1].done_ns, 3);
	assert_int_equal(works[2].begin_ps, 3000);
	assert_int_equal(works[2].done_ns, 13);
	assert_int_equal(server.busy_ps, 13000);
	/* Idle until 20: the next begins then. */
	nic_world_pass(7);
	rbx_nic_server_add(&server, &works[0].job);
	run();
	assert_int_equal(works[0].begin_ps, 20000);
	assert_int_equal(works[0].done_ns, 22);
}

static void server_forgets_what_is_removed(void **state)
{
	struct work works[] = { work_of(5000), work_of(5000), work_of(5000) };
	struct rbx_nic_server server;

	(void)state;
	nic_world_begin(NULL);
	rbx_nic_server_init(&server);
	for (int i = 0; i < 3; i++)
		rbx_nic_server_add(&server, &works[i].job);
	nic_world_pass(2);
	/* The first is being served, and its time stays taken. */
	rbx_nic_server_remove(&works[0].job);
	rbx_nic_server_remove(&works[2].job);
	rbx_nic_server_remove(&works[2].job);
	run();
	assert_int_equal(works[0].done_ns, 0);
	assert_int_equal(works[2].done_ns, 0);
	assert_int_equal(works[1].begin_ps, 5000);
	assert_int_equal(works[1].done_ns, 10);
	assert_int_equal(server.queued_count, 0);
}

/* One set of two ways: the least recently used goes. */
static void cache_evicts_the_least_recently_used(void **state)
{
	struct rbx_nic_cache cache;

	(void)state;
	assert_int_equal(rbx_nic_cache_init(&cache, 2, 2), 0);
	assert_false(rbx_nic_cache_use(&cache, 1));
	assert_false(rbx_nic_cache_use(&cache, 2));
	assert_true(rbx_nic_cache_use(&cache, 1));
	assert_false(rbx_nic_cache_use(&cache, 3)); /* in the place of 2 */
	assert_true(rbx_nic_cache_use(&cache, 1));
	assert_false(rbx_nic_cache_use(&cache, 2)); /* in the place of 3 */
	rbx_nic_cache_drop(&cache, 1);
	rbx_nic_cache_put(&cache, 4); /* in the place of nobody */
	assert_true(rbx_nic_cache_use(&cache, 2));
	assert_true(rbx_nic_cache_use(&cache, 4));
	assert_int_equal(cache.misses, 4);
	assert_int_equal(cache.hits, 4);
	rbx_nic_cache_destroy(&cache);
}

/* A working set twice the cache, walked in a circle, misses mostly; one of half
 * the cache hits mostly, though sets are not filled evenly. */
static void cache_holds_half_its_size_and_not_twice(void **state)
{
	struct rbx_nic_cache cache;

	(void)state;
	assert_int_equal(rbx_nic_cache_init(&cache, 1024, 8), 0);
	for (int i = 0; i < 10 * 512; i++)
		rbx_nic_cache_use(&cache, (uint64_t)(i % 512) + 1);
	assert_true(cache.misses < 10 * 512 / 5);
	rbx_nic_cache_destroy(&cache);
	assert_int_equal(rbx_nic_cache_init(&cache, 1024, 8), 0);
	for (int i = 0; i < 10 * 2048; i++)
		rbx_nic_cache_use(&cache, (uint64_t)(i % 2048) + 1);
	assert_true(cache.hits < 10 * 2048 / 10);
	rbx_nic_cache_destroy(&cache);
}

/* 1 ns a byte, 24 bytes of header for each 256 of payload. */
static void pcie_counts_headers(void **state)
{
	struct rbx_nic_params *params = nic_world_begin(NULL);
	struct rbx_nic_pcie pcie;

	(void)state;
	params->pcie_header_bytes = 24;
	rbx_nic_pcie_init(&pcie, params);
	/* A doorbell of 8: 32 bytes, and 100 ns on the way. */
	assert_int_equal(rbx_nic_pcie_ring(&pcie, 0, 8), 132000);
	/* 600 bytes to the host: 3 packets, 672 bytes; the first of 280. */
	expect_span(rbx_nic_pcie_write(&pcie, rbx_nic_span_at(0), 600), 380000,
		    772000);
	/*
	 * A read of 600 at 1,000: 2 requests of 24 bytes, to the host by 1,048,
	 * the first by 1,024; 3 packets back, from 1,024 on, 672 ns, but the last
	 * of 280 not before 1,048; 1,000 for the round trip.
	 */
	expect_span(rbx_nic_pcie_read(&pcie, rbx_nic_span_at(1000000), 600),
		    2304000, 2696000);
}

/* One fill at once, of 64 bytes: 1,064 ns each. */
static void fills_wait_for_each_other(void **state)
{
	struct rbx_nic_params *params = nic_world_begin(NULL);
	struct rbx_nic_pcie pcie;

	(void)state;
	rbx_nic_pcie_init(&pcie, params);
	assert_int_equal(rbx_nic_pcie_fill(&pcie, 0, 64), 1064000);
	assert_int_equal(rbx_nic_pcie_fill(&pcie, 0, 64), 2128000);
	assert_int_equal(pcie.fill_wait_ps, 1064000);
	/* With two, the second shares the bus alone. */
	params->fills_at_once = 2;
	rbx_nic_pcie_init(&pcie, params);
	assert_int_equal(rbx_nic_pcie_fill(&pcie, 0, 64), 1064000);
	assert_int_equal(rbx_nic_pcie_fill(&pcie, 0, 64), 1128000);
	assert_int_equal(rbx_nic_pcie_fill(&pcie, 0, 64), 2128000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipe_passes_bytes_in_order),
		cmocka_unit_test(pipe_waits_for_the_tail),
		cmocka_unit_test(pipe_rounds_below_a_picosecond),
		cmocka_unit_test(server_serves_one_after_the_other),
		cmocka_unit_test(server_forgets_what_is_removed),
		cmocka_unit_test(cache_evicts_the_least_recently_used),
		cmocka_unit_test(cache_holds_half_its_size_and_not_twice),
		cmocka_unit_test(pcie_counts_headers),
		cmocka_unit_test(fills_wait_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
