/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tune_qps_test.c - which number of queue pairs is the best. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/tune/tune.h"

static void fewest_within_the_tolerance_is_the_best(void **state)
{
	struct tune_qps_point points[] = {
		{ 1, 1000, 0 }, { 2, 1100, 0 }, { 4, 1130, 0 }, { 8, 900, 0 },
	};

	(void)state;
	assert_int_equal(tune_qps_best(points, 4), 2);
	assert_int_equal(tune_qps_best(points, 1), 1);
	points[0].iops = 1097;
	assert_int_equal(tune_qps_best(points, 4), 1);
	points[2].iops = 1200;
	assert_int_equal(tune_qps_best(points, 4), 4);
	points[3].iops = 5000;
	assert_int_equal(tune_qps_best(points, 4), 8);
}

static void what_noise_can_explain_is_no_gain(void **state)
{
	struct tune_qps_point points[] = { { 1, 1000, 80 }, { 2, 1100, 80 } };

	(void)state;
	assert_int_equal(tune_qps_best(points, 2), 1);
	points[0].spread_iops = 20;
	assert_int_equal(tune_qps_best(points, 2), 2);
}

static void nothing_measured_has_no_best(void **state)
{
	(void)state;
	assert_int_equal(tune_qps_best(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewest_within_the_tolerance_is_the_best),
		cmocka_unit_test(what_noise_can_explain_is_no_gain),
		cmocka_unit_test(nothing_measured_has_no_best),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
