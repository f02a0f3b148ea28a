/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Latencies as bars: few lines, and nobody is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

static struct bench_latency latency;

static int setup(void **state)
{
	(void)state;
	bench_latency_clear(&latency);
	return 0;
}

/* What bench_histogram_print() prints. */
static char *printed(void)
{
	static char text[4096];
	char path[] = "/tmp/rdmabox-histogram.XXXXXX";
	int file = mkstemp(path), copy = dup(STDOUT_FILENO);
	ssize_t len;

	unlink(path);
	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	bench_histogram_print(&latency);
	fflush(stdout);
	dup2(copy, STDOUT_FILENO);
	close(copy);
	len = pread(file, text, sizeof(text) - 1, 0);
	close(file);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

/* Counts lines, each of longer latencies, and adds up their shares. */
static uint32_t count_lines(char *text, double *percent)
{
	uint32_t count = 0;
	double before_us = -1;
	char *line;

	*percent = 0;
	while ((line = strsep(&text, "\n")) && *line) {
		double below_us, share;

		assert_int_equal(sscanf(line, " < %lf us %lf %%", &below_us, &share), 2);
		assert_true(below_us > before_us);
		before_us = below_us;
		*percent += share;
		count++;
	}
	return count;
}

static void no_latency_prints_nothing(void **state)
{
	json_t *json = bench_histogram_json(&latency);

	(void)state;
	assert_string_equal(printed(), "");
	assert_int_equal(json_array_size(json), 0);
	json_decref(json);
}

static void the_widest_range_is_twelve_lines_and_all_requests(void **state)
{
	double percent;

	(void)state;
	bench_latency_add(&latency, 0);
	for (uint32_t power = 0; power < 64; power++)
		bench_latency_add(&latency, 1ull << power);
	bench_latency_add(&latency, UINT64_MAX);
	assert_in_range(count_lines(printed(), &percent), 2, 12);
	assert_true(percent > 99.9 && percent < 100.1);
}

static void twelve_powers_have_a_line_each(void **state)
{
	double percent;

	(void)state;
	bench_latency_add(&latency, 1500);
	bench_latency_add(&latency, 1500 << 11);
	assert_int_equal(count_lines(printed(), &percent), 12);
}

/* Both of a line of two powers are below what it says. */
static void line_of_several_powers_says_the_longest(void **state)
{
	double percent;

	(void)state;
	bench_latency_add(&latency, 1500);
	bench_latency_add(&latency, 3000);
	bench_latency_add(&latency, 1500 << 12);
	assert_int_equal(strncmp(printed(), "  <          4.1 us  66.67 %  #", 31), 0);
	assert_int_equal(count_lines(printed(), &percent), 7);
}

static void bars_are_as_long_as_their_shares(void **state)
{
	(void)state;
	for (int i = 0; i < 90; i++)
		bench_latency_add(&latency, 1500); /* below 2.048 us */
	for (int i = 0; i < 9; i++)
		bench_latency_add(&latency, 3000); /* below 4.096 us */
	bench_latency_add(&latency, 10000); /* below 16.384 us */
	assert_string_equal(printed(),
		"  <          2.0 us  90.00 %  ########################################\n"
		"  <          4.1 us   9.00 %  ####\n"
		"  <          8.2 us   0.00 %  \n"
		"  <         16.4 us   1.00 %  #\n");
}

static void json_has_the_same_counts(void **state)
{
	json_t *json, *bucket;

	(void)state;
	bench_latency_add(&latency, 1500);
	bench_latency_add(&latency, 1600);
	bench_latency_add(&latency, 3000);
	json = bench_histogram_json(&latency);
	assert_int_equal(json_array_size(json), 2);
	bucket = json_array_get(json, 0);
	assert_true(json_real_value(json_object_get(bucket, "below_us")) == 2.048);
	assert_int_equal(json_integer_value(json_object_get(bucket, "requests")), 2);
	bucket = json_array_get(json, 1);
	assert_int_equal(json_integer_value(json_object_get(bucket, "requests")), 1);
	json_decref(json);
}

static void json_has_the_longest_latency(void **state)
{
	json_t *json, *bucket;

	(void)state;
	bench_latency_add(&latency, UINT64_MAX);
	json = bench_histogram_json(&latency);
	assert_int_equal(json_array_size(json), 1);
	bucket = json_array_get(json, 0);
	assert_true(json_real_value(json_object_get(bucket, "below_us")) == 0x1p63 / 1e3);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_latency_prints_nothing, setup),
		cmocka_unit_test_setup(the_widest_range_is_twelve_lines_and_all_requests, setup),
		cmocka_unit_test_setup(twelve_powers_have_a_line_each, setup),
		cmocka_unit_test_setup(line_of_several_powers_says_the_longest, setup),
		cmocka_unit_test_setup(bars_are_as_long_as_their_shares, setup),
		cmocka_unit_test_setup(json_has_the_same_counts, setup),
		cmocka_unit_test_setup(json_has_the_longest_latency, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
