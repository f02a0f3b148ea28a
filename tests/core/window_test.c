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
	rbx_window_init(&window, &rbx_congestion_static, 0, 0);
	for (int i = 0; i < 1000; i++)
		assert_true(rbx_window_take(&window, 1 << 20));
	assert_int_equal(rbx_window_in_flight_bytes(&window), 1000ull << 20);
	assert_int_equal(rbx_window_in_flight_work_requests(&window), 1000);
}

static void window_refuses_above_bytes(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, &rbx_congestion_static, 10000, 0);
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
	rbx_window_init(&window, &rbx_congestion_static, 0, 2);
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
	rbx_window_init(&window, &rbx_congestion_static, 4096, 0);
	assert_true(rbx_window_take(&window, 1 << 20));
	assert_false(rbx_window_take(&window, 1));
	rbx_window_give(&window, 1, 1 << 20);
	assert_int_equal(rbx_window_in_flight_bytes(&window), 0);
}

static void window_remembers_peak(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, &rbx_congestion_static, 0, 0);
	rbx_window_take(&window, 5000);
	rbx_window_take(&window, 3000);
	rbx_window_give(&window, 2, 8000);
	rbx_window_take(&window, 100);
	assert_int_equal(window.in_flight_bytes_peak, 8000);
}

/* A policy that halves its window at an error and doubles it at success. */
static void halving_init(void *state, uint64_t window_bytes)
{
	*(uint64_t *)state = window_bytes;
}

static void halving_on_post(void *state, uint64_t now_ns, uint32_t bytes)
{
	(void)state;
	(void)now_ns;
	(void)bytes;
}

static void halving_on_complete(void *state, uint64_t rtt_ns, uint32_t bytes)
{
	(void)rtt_ns;
	(void)bytes;
	*(uint64_t *)state *= 2;
}

static void halving_on_error(void *state)
{
	*(uint64_t *)state /= 2;
}

static uint64_t halving_window(const void *state)
{
	return *(const uint64_t *)state;
}

static const struct rbx_congestion_ops halving = {
	"halving",	 halving_init,	   halving_on_post,
	halving_on_complete, halving_on_error, halving_window,
};

static void window_follows_its_policy(void **state)
{
	struct rbx_window window;

	(void)state;
	rbx_window_init(&window, &halving, 8192, 0);
	assert_true(rbx_window_take(&window, 4096));
	assert_true(rbx_window_has_room(&window, 4096));
	rbx_window_on_error(&window);
	assert_false(rbx_window_has_room(&window, 4096));
	rbx_window_on_complete(&window, 1000, 4096);
	rbx_window_on_complete(&window, 1000, 4096);
	assert_true(rbx_window_has_room(&window, 12288));
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
	rbx_window_init(&window, &rbx_congestion_static, 8192, 3);
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
		cmocka_unit_test(window_many_threads_end_at_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
