/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * break_even_test.c - the break-even of a curve, against the definition spelled
 * out for random curves.
 */
#include "core/break_even.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/limits.h"
#include "core/random.h"

#define POINTS_MAX 12u
#define CURVES 20000

static uint64_t of(const struct rbx_break_even_point *points, uint32_t count)
{
	return rbx_break_even(points, count);
}

static void curve_without_a_point_never_breaks_even(void **state)
{
	(void)state;
	assert_int_equal(of(NULL, 0), RBX_BREAK_EVEN_NEVER);
}

static void copying_cheaper_at_the_end_never_breaks_even(void **state)
{
	struct rbx_break_even_point points[] = { { 4096, 100, 50 },
						 { 8192, 100, 101 } };

	(void)state;
	assert_int_equal(of(points, 2), RBX_BREAK_EVEN_NEVER);
	assert_int_equal(of(points, 1), 4096);
}

static void registering_cheaper_everywhere_breaks_even_at_the_first(void **state)
{
	struct rbx_break_even_point points[] = { { 4096, 100, 100 },
						 { 8192, 200, 100 } };

	(void)state;
	assert_int_equal(of(points, 2), 4096);
}

static void crossing_between_points_is_where_the_lines_meet(void **state)
{
	/* Apart by 300 and then by 100: three quarters of the way. */
	struct rbx_break_even_point points[] = { { 1 << 20, 700, 1000 },
						 { 2 << 20, 1200, 1100 } };

	(void)state;
	assert_int_equal(of(points, 2), (1 << 20) + (3 << 18));
}

static void last_of_several_crossings_counts(void **state)
{
	struct rbx_break_even_point points[] = {
		{ 4096, 10, 5 },   { 8192, 10, 20 },   { 16384, 30, 20 },
		{ 32768, 60, 70 }, { 65536, 130, 120 },
	};

	(void)state;
	assert_int_equal(of(points, 5), 49152);
}

static void absurd_costs_do_not_overflow(void **state)
{
	struct rbx_break_even_point points[] = {
		{ 8 << 20, 0, UINT64_MAX },
		{ 16 << 20, UINT64_MAX, 0 },
		{ UINT64_MAX, UINT64_MAX, 0 },
	};

	(void)state;
	assert_int_equal(of(points, 3), 12 << 20);
	assert_int_equal(of(&points[1], 2), 16 << 20);
	points[1].direct_ns = UINT64_MAX;
	points[1].copy_ns = 0;
	assert_int_equal(of(&points[1], 2), UINT64_MAX);
}

/* What the answer promises, point by point. */
static void check(const struct rbx_break_even_point *points, uint32_t count)
{
	uint64_t at_bytes = of(points, count);
	uint32_t i;

	for (i = 0; i < count; i++)
		if (points[i].bytes >= at_bytes)
			assert_true(points[i].direct_ns <= points[i].copy_ns);
	if (at_bytes == RBX_BREAK_EVEN_NEVER) {
		assert_true(points[count - 1].direct_ns >
			    points[count - 1].copy_ns);
		return;
	}
	assert_int_equal(at_bytes % RBX_PAGE_BYTES, 0);
	/* Not later than it must: copying wins at the point before, if any. */
	for (i = 0; points[i].bytes < at_bytes; i++)
		;
	if (i > 0)
		assert_true(points[i - 1].direct_ns > points[i - 1].copy_ns);
	else
		assert_int_equal(at_bytes, points[0].bytes);
}

static void random_curves_keep_what_is_promised(void **state)
{
	struct rbx_break_even_point points[POINTS_MAX];
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 1);
	for (int curve = 0; curve < CURVES; curve++) {
		uint32_t count = 1 + rbx_random_below(&random, POINTS_MAX);

		for (uint32_t i = 0; i < count; i++)
			points[i] = (struct rbx_break_even_point){
				.bytes = (uint64_t)RBX_PAGE_BYTES << i,
				.copy_ns = rbx_random_below(&random, 100 << i),
				.direct_ns = rbx_random_below(&random, 3000),
			};
		check(points, count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curve_without_a_point_never_breaks_even),
		cmocka_unit_test(copying_cheaper_at_the_end_never_breaks_even),
		cmocka_unit_test(
			registering_cheaper_everywhere_breaks_even_at_the_first),
		cmocka_unit_test(crossing_between_points_is_where_the_lines_meet),
		cmocka_unit_test(last_of_several_crossings_counts),
		cmocka_unit_test(absurd_costs_do_not_overflow),
		cmocka_unit_test(random_curves_keep_what_is_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
