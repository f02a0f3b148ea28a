/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bench_latency_test.c - quantiles against a sorted list. */
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

#define COUNT 5000

static struct bench_latency latency;

static int clear(void **state)
{
	(void)state;
	bench_latency_clear(&latency);
	return 0;
}

static int less_first(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
}

static void latency_of_nothing_is_zero(void **state)
{
	(void)state;
	assert_int_equal(bench_latency_quantile_ns(&latency, 500), 0);
}

static void latency_of_one_is_exact(void **state)
{
	(void)state;
	bench_latency_add(&latency, 123456);
	assert_int_equal(bench_latency_quantile_ns(&latency, 1), 123456);
	assert_int_equal(bench_latency_quantile_ns(&latency, 999), 123456);
}

static void latency_takes_the_whole_range(void **state)
{
	(void)state;
	bench_latency_add(&latency, 0);
	assert_int_equal(bench_latency_quantile_ns(&latency, 500), 0);
	bench_latency_add(&latency, UINT64_MAX);
	assert_true(bench_latency_quantile_ns(&latency, 999) == UINT64_MAX);
}

static void latency_quantiles_are_within_a_sixteenth(void **state)
{
	static const uint32_t per_mille[] = { 1, 100, 500, 900, 990, 999 };
	static uint64_t sorted_ns[COUNT];
	uint64_t random = 7;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		sorted_ns[i] = bench_random(&random) >>
			       (24 + bench_random(&random) % 40);
		bench_latency_add(&latency, sorted_ns[i]);
	}
	qsort(sorted_ns, COUNT, sizeof(*sorted_ns), less_first);
	for (int i = 0; i < 6; i++) {
		uint64_t exact = sorted_ns[(COUNT * per_mille[i] + 999) / 1000 -
					   1];
		uint64_t seen = bench_latency_quantile_ns(&latency,
							  per_mille[i]);

		assert_true(seen >= exact);
		assert_true(seen <= exact + exact / 16);
	}
}

static void latency_of_two_has_the_highest_of_both(void **state)
{
	static struct bench_latency other;

	(void)state;
	bench_latency_clear(&other);
	bench_latency_add(&latency, 1000);
	bench_latency_add(&other, 123456);
	bench_latency_merge(&latency, &other);
	assert_int_equal(bench_latency_quantile_ns(&latency, 999), 123456);
	bench_latency_clear(&other);
	bench_latency_add(&other, 2000);
	bench_latency_merge(&latency, &other);
	assert_int_equal(bench_latency_quantile_ns(&latency, 999), 123456);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(latency_of_nothing_is_zero, clear),
		cmocka_unit_test_setup(latency_of_one_is_exact, clear),
		cmocka_unit_test_setup(latency_takes_the_whole_range, clear),
		cmocka_unit_test_setup(latency_of_two_has_the_highest_of_both,
				       clear),
		cmocka_unit_test_setup(latency_quantiles_are_within_a_sixteenth,
				       clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
