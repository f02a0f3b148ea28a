/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bench_pace_test.c - the texts of --load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

static struct bench_timing timing;
static char reason[256];

static int parse(const char *text)
{
	return bench_timing_parse(text, &timing, reason, sizeof(reason));
}

static void load_takes_each_form(void **state)
{
	(void)state;
	assert_int_equal(parse("closed"), 0);
	assert_int_equal(timing.kind, BENCH_CLOSED);
	assert_int_equal(parse("open:12345"), 0);
	assert_int_equal(timing.kind, BENCH_OPEN);
	assert_int_equal(timing.rate, 12345);
	assert_int_equal(parse("burst:7:0"), 0);
	assert_int_equal(timing.kind, BENCH_BURST);
	assert_int_equal(timing.burst_size, 7);
	assert_int_equal(timing.gap_ns, 0);
}

static void load_gap_takes_each_unit(void **state)
{
	(void)state;
	assert_int_equal(parse("burst:1:0us"), 0);
	assert_int_equal(timing.gap_ns, 0);
	assert_int_equal(parse("burst:1:300ns"), 0);
	assert_int_equal(timing.gap_ns, 300);
	assert_int_equal(parse("burst:1:50us"), 0);
	assert_int_equal(timing.gap_ns, 50000);
	assert_int_equal(parse("burst:1:2ms"), 0);
	assert_int_equal(timing.gap_ns, 2000000);
	assert_int_equal(parse("burst:4096:5s"), 0);
	assert_true(timing.gap_ns == 5000000000);
}

static void load_that_is_none_is_refused_with_the_forms(void **state)
{
	static const char *const forms[] = {
		"",	     "x",	   "closed:1",	  "open",
		"open:",     "open:0",	   "open:-1",	  "open:1k",
		"open:100000001", "burst", "burst:",	  "burst:1",
		"burst:1:",  "burst:0:0",  "burst:-1:0",  "burst:4097:0",
		"burst:1:5", "burst:1:us", "burst:1:5us5", "burst:1:6s",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		reason[0] = 0;
		if (!parse(forms[i]))
			fail_msg("%s was taken", forms[i]);
		assert_non_null(strstr(reason, "burst:SIZE:GAP"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_takes_each_form),
		cmocka_unit_test(load_gap_takes_each_unit),
		cmocka_unit_test(load_that_is_none_is_refused_with_the_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
