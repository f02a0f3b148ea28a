/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* window_test.c - limits in bytes and in work requests, and the balance. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/window.h"

static void window_without_limit_lets_all_through(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 0, 0);
	for (int i = 0; i < 1000; i++)
		assert_true(rbx_window_take(&window, 1 << 20));
	assert_int_equal(rbx_window_in_flight_bytes(&window), 1000ull << 20);
	assert_int_equal(rbx_window_in_flight_work_requests(&window), 1000);
}

static void window_refuses_above_bytes(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 10000, 0);
	assert_true(rbx_window_take(&window, 6000));
	assert_true(rbx_window_take(&window, 4000));
	assert_false(rbx_window_has_room(&window, 1));
	assert_false(rbx_window_take(&window, 1));
	assert_int_equal(rbx_window_in_flight_bytes(&window), 10000);
	rbx_window_give(&window, 1, 4000);
	assert_true(rbx_window_has_room(&window, 4000));
	assert_false(rbx_window_has_room(&window, 4001));
}

static void window_refuses_above_work_requests(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 0, 2);
	assert_true(rbx_window_take(&window, 1));
	assert_true(rbx_window_take(&window, 1));
	assert_false(rbx_window_take(&window, 1));
	rbx_window_give(&window, 2, 2);
	assert_int_equal(rbx_window_in_flight_work_requests(&window), 0);
}

static void window_passes_one_that_is_larger_than_itself(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 4096, 0);
	assert_true(rbx_window_take(&window, 1 << 20));
	assert_false(rbx_window_take(&window, 1));
	rbx_window_give(&window, 1, 1 << 20);
	assert_int_equal(rbx_window_in_flight_bytes(&window), 0);
}

static void window_remembers_peak(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 0, 0);
	rbx_window_take(&window, 5000);
	rbx_window_take(&window, 3000);
	rbx_window_on_post(&window, 0, 8000);
	rbx_window_give(&window, 2, 8000);
	rbx_window_take(&window, 100);
	rbx_window_on_post(&window, 0, 100);
	assert_int_equal(window.in_flight_bytes_peak, 8000);
}

/* A policy that halves its window at an error and doubles it at success, and
 * keeps account of what it is told. */
struct halving {
	uint64_t window_bytes;
	uint64_t posted_bytes;
	uint64_t completed_bytes;
	uint64_t now_ns;
	uint64_t rtt_ns;
	uint32_t callers; /* atomic */
};

static void halving_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	((struct halving *)state)->window_bytes = (low_bytes + high_bytes) / 2;
}

static void halving_on_post(void *state, uint64_t now_ns, uint64_t bytes)
{
	struct halving *halving = state;

	assert_int_equal(RBX_FETCH_ADD(&halving->callers, 1), 0);
	halving->posted_bytes += bytes;
	halving->now_ns = now_ns;
	RBX_FETCH_ADD(&halving->callers, (uint32_t)-1);
}

static void halving_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
				uint64_t bytes)
{
	struct halving *halving = state;

	assert_int_equal(RBX_FETCH_ADD(&halving->callers, 1), 0);
	halving->completed_bytes += bytes;
	halving->now_ns = now_ns;
	halving->rtt_ns = rtt_ns;
	halving->window_bytes *= 2;
	RBX_FETCH_ADD(&halving->callers, (uint32_t)-1);
}

static void halving_on_error(void *state)
{
	((struct halving *)state)->window_bytes /= 2;
}

static uint64_t halving_window(const void *state)
{
	return ((const struct halving *)state)->window_bytes;
}

static const struct rbx_congestion_ops halving = {
	.name = "halving",
	.init = halving_init,
	.on_post = halving_on_post,
	.on_complete = halving_on_complete,
	.on_error = halving_on_error,
	.window = halving_window,
};

static void window_follows_its_policy(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 0, 0);
	rbx_window_set_policy(&window, &halving, 4096, 12288);
	assert_true(rbx_window_take(&window, 4096));
	assert_true(rbx_window_has_room(&window, 4096));
	rbx_window_on_error(&window);
	assert_false(rbx_window_has_room(&window, 4096));
	rbx_window_on_complete(&window, 5000, 1000, 4096);
	assert_true(rbx_window_has_room(&window, 4096));
	assert_int_equal(window.clamps, 0);
}

static void window_tells_its_policy_times_and_bytes(void **state)
{
	struct rbx_window window;
	const struct halving *told = (const struct halving *)window.state;

	(void)state;
	rbx_window_init(&window, 0, 0);
	rbx_window_set_policy(&window, &halving, 4096, 1 << 20);
	rbx_window_on_post(&window, 1000, 8192);
	assert_int_equal(told->posted_bytes, 8192);
	assert_int_equal(told->now_ns, 1000);
	rbx_window_on_complete(&window, 3500, 2500, 4096);
	assert_int_equal(told->completed_bytes, 4096);
	assert_int_equal(told->now_ns, 3500);
	assert_int_equal(told->rtt_ns, 2500);
	/* From a thread that had looked at the clock before. */
	rbx_window_on_complete(&window, 3400, 1000, 4096);
	assert_int_equal(told->now_ns, 3500);
	rbx_window_on_post(&window, 3450, 4096);
	assert_int_equal(told->now_ns, 3500);
}

static void window_clamps_and_counts_what_is_out_of_range(void **state)
{
	struct rbx_window window;
	struct halving *told = (struct halving *)window.state;

	(void)state;
	rbx_window_init(&window, 0, 0);
	rbx_window_set_policy(&window, &halving, 4096, 1 << 20);
	told->window_bytes = 0;
	rbx_window_on_post(&window, 1, 1);
	assert_int_equal(window.bytes_max, 4096);
	assert_int_equal(window.clamps, 1);
	told->window_bytes = UINT64_MAX;
	rbx_window_on_post(&window, 2, 1);
	assert_int_equal(window.bytes_max, 1 << 20);
	assert_int_equal(window.clamps, 2);
	told->window_bytes = 4096;
	rbx_window_on_post(&window, 3, 1);
	assert_int_equal(window.clamps, 2);
}

static void silent_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	*(uint64_t *)state = low_bytes;
	(void)high_bytes;
}

static uint64_t silent_window(const void *state)
{
	return *(const uint64_t *)state;
}

static void window_needs_no_more_of_a_policy_than_init_and_window(void **state)
{
	static const struct rbx_congestion_ops silent = {
		.name = "silent",
		.init = silent_init,
		.window = silent_window,
	};
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, 0, 0);
	rbx_window_set_policy(&window, &silent, 8192, 1 << 20);
	rbx_window_on_post(&window, 1, 1);
	rbx_window_on_complete(&window, 2, 1, 1);
	rbx_window_on_error(&window);
	assert_int_equal(window.bytes_max, 8192);
}

#define TELLERS 4
#define TELLINGS 30000

static void *tell(void *arg)
{
	for (int i = 0; i < TELLINGS; i++) {
		rbx_window_on_post(arg, 1, 512);
		rbx_window_on_complete(arg, 2, 1, 512);
		if (i % 100 == 0)
			rbx_window_on_error(arg);
	}
	return NULL;
}

/* The policy itself asserts that it is alone; no byte may get lost. */
static void window_many_tellers_meet_one_policy(void **state)
{
	struct rbx_window window;
	const struct halving *told = (const struct halving *)window.state;
	pthread_t threads[TELLERS];

	(void)state;
	rbx_window_init(&window, 0, 0);
	rbx_window_set_policy(&window, &halving, 4096, 1 << 20);
	for (int t = 0; t < TELLERS; t++)
		pthread_create(&threads[t], NULL, tell, &window);
	for (int t = 0; t < TELLERS; t++)
		pthread_join(threads[t], NULL);
	rbx_window_on_post(&window, 1, 0);
	rbx_window_on_complete(&window, 2, 1, 0);
	assert_int_equal(told->posted_bytes, TELLERS * TELLINGS * 512ull);
	assert_int_equal(told->completed_bytes, TELLERS * TELLINGS * 512ull);
}

static void *take_and_give(void *arg)
{
	struct rbx_window *window = arg;

	for (int i = 0; i < 50000; i++) {
		if (!rbx_window_take(window, 4096))
			continue;
		assert_true(rbx_window_in_flight_work_requests(window) > 0);
		rbx_window_give(window, 1, 4096);
	}
	return NULL;
}

static void window_many_threads_end_at_zero(void **state)
{
	struct rbx_window window;
	pthread_t threads[4];

	(void)state;
	rbx_window_init(&window, 8192, 3);
	for (int t = 0; t < 4; t++)
		pthread_create(&threads[t], NULL, take_and_give, &window);
	for (int t = 0; t < 4; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(rbx_window_in_flight_bytes(&window), 0);
	assert_int_equal(rbx_window_in_flight_work_requests(&window), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_without_limit_lets_all_through),
		cmocka_unit_test(window_refuses_above_bytes),
		cmocka_unit_test(window_refuses_above_work_requests),
		cmocka_unit_test(window_passes_one_that_is_larger_than_itself),
		cmocka_unit_test(window_remembers_peak),
		cmocka_unit_test(window_follows_its_policy),
		cmocka_unit_test(window_tells_its_policy_times_and_bytes),
		cmocka_unit_test(window_clamps_and_counts_what_is_out_of_range),
		cmocka_unit_test(window_needs_no_more_of_a_policy_than_init_and_window),
		cmocka_unit_test(window_many_tellers_meet_one_policy),
		cmocka_unit_test(window_many_threads_end_at_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
