/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* histogram_test.c - quantiles against a sorted array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/histogram.h"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void check_quantile(const struct rbx_histogram *histogram,
			   const uint64_t *sorted, size_t count, uint32_t part)
{
	size_t rank = (count * part + 999) / 1000;
	uint64_t exact = sorted[rank ? rank - 1 : 0];
	uint64_t got = rbx_histogram_quantile(histogram, part);

	assert_true(got >= exact);
	assert_true(got <= exact + exact / 25 + 1);
}

static void histogram_quantiles_are_within_4_percent(void **state)
{
	static struct rbx_histogram histogram;
	static uint64_t values[100000];

	(void)state;
	srand(7);
	rbx_histogram_clear(&histogram);
	for (size_t i = 0; i < 100000; i++) {
		values[i] = ((uint64_t)rand() << (rand() % 30)) % (1ull << 50);
		rbx_histogram_add(&histogram, values[i]);
	}
	qsort(values, 100000, sizeof(values[0]), by_value);
	for (uint32_t part = 1; part <= 1000; part++)
		check_quantile(&histogram, values, 100000, part);
	assert_int_equal(histogram.max, values[99999]);
}

static void histogram_buckets_grow_with_values(void **state)
{
	size_t before = 0;

	(void)state;
	for (uint64_t value = 1; value != 0 && value < 1ull << 62;
	     value += value / 40 + 1) {
		size_t bucket = rbx_histogram_bucket(value);

		assert_true(bucket >= before);
		before = bucket;
	}
	assert_true(rbx_histogram_bucket(UINT64_MAX) < RBX_HISTOGRAM_BUCKETS);
}

static void histogram_empty_says_zero(void **state)
{
	static struct rbx_histogram histogram;

	(void)state;
	rbx_histogram_clear(&histogram);
	assert_int_equal(rbx_histogram_quantile(&histogram, 500), 0);
}

static void histogram_merge_adds_counts(void **state)
{
	static struct rbx_histogram a, b;

	(void)state;
	rbx_histogram_clear(&a);
	rbx_histogram_clear(&b);
	for (int i = 0; i < 10; i++)
		rbx_histogram_add(&a, 10);
	for (int i = 0; i < 30; i++)
		rbx_histogram_add(&b, 20);
	rbx_histogram_merge(&a, &b);
	assert_int_equal(rbx_histogram_quantile(&a, 250), 10);
	assert_int_equal(rbx_histogram_quantile(&a, 251), 20);
	assert_int_equal(a.max, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histogram_quantiles_are_within_4_percent),
		cmocka_unit_test(histogram_buckets_grow_with_values),
		cmocka_unit_test(histogram_empty_says_zero),
		cmocka_unit_test(histogram_merge_adds_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
