/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* base_rtt_test.c - when the base is measured, and of what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base_rtt.h"

static struct rbx_base_rtt base;
static uint64_t now_ns;

/* The first measurement, of round trips of 50 us. */
static int measured(void **state)
{
	(void)state;
	rbx_base_rtt_init(&base);
	now_ns = 1000000;
	for (uint32_t i = 1; i < RBX_BASE_RTT_SAMPLES; i++) {
		assert_true(rbx_base_rtt_sample(&base, now_ns, 50000 + i));
		now_ns += 1000;
	}
	assert_false(rbx_base_rtt_sample(&base, now_ns, 50000));
	return 0;
}

static void base_is_the_shortest_of_the_first_round_trips(void **state)
{
	(void)state;
	assert_int_equal(base.shortest_ns, 50000);
	assert_int_equal(base.samples_left, 0);
}

static void base_follows_a_shorter_round_trip_at_once(void **state)
{
	(void)state;
	assert_false(rbx_base_rtt_sample(&base, now_ns, 20000));
	assert_int_equal(base.shortest_ns, 20000);
	assert_false(rbx_base_rtt_sample(&base, now_ns, 90000));
	assert_int_equal(base.shortest_ns, 20000);
}

static void base_is_measured_anew_when_it_is_old(void **state)
{
	(void)state;
	now_ns += RBX_BASE_RTT_AGE_NS + 1;
	assert_true(rbx_base_rtt_sample(&base, now_ns, 400000));
	/* Posted before, into the queue: says nothing. */
	for (int i = 0; i < 100; i++)
		assert_true(rbx_base_rtt_sample(&base, now_ns + 1000, 400000));
	assert_int_equal(base.shortest_ns, 50000);
	now_ns += 200000;
	for (uint32_t i = 1; i < RBX_BASE_RTT_SAMPLES; i++)
		assert_true(rbx_base_rtt_sample(&base, now_ns, 120000 - i));
	assert_false(rbx_base_rtt_sample(&base, now_ns, 120000));
	assert_int_equal(base.shortest_ns, 120001 - RBX_BASE_RTT_SAMPLES);
}

static void base_is_never_zero(void **state)
{
	(void)state;
	assert_false(rbx_base_rtt_sample(&base, now_ns, 0));
	assert_int_equal(base.shortest_ns, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			base_is_the_shortest_of_the_first_round_trips, measured),
		cmocka_unit_test_setup(base_follows_a_shorter_round_trip_at_once,
				       measured),
		cmocka_unit_test_setup(base_is_measured_anew_when_it_is_old,
				       measured),
		cmocka_unit_test_setup(base_is_never_zero, measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
