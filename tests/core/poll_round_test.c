/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_round_test.c - what a round has to be seen to: completions, what ended without
 * one, and parked combiners; each once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/poll_round.h"

static struct rbx_window window;
static uint32_t looks_count; /* at the clock */

static uint64_t now_ns(void)
{
	looks_count++;
	return 700;
}

static int start(void **state)
{
	(void)state;
	looks_count = 0;
	rbx_window_init(&window, 0, 0);
	return 0;
}

static uint32_t settle(struct rbx_poll_round *round, uint32_t count,
		       struct rbx_poll_found *found)
{
	return rbx_poll_round_settle(round, &window, count, now_ns, found);
}

static void round_that_finds_nothing_is_counted_and_reads_no_clock(void **state)
{
	struct rbx_poll_round round = { .found_ns = 5 };
	struct rbx_poll_found found;

	(void)state;
	assert_int_equal(settle(&round, 0, &found), 0);
	assert_int_equal(round.counters.polls, 1);
	assert_int_equal(round.counters.empty_polls, 1);
	assert_int_equal(round.found_ns, 5);
	assert_int_equal(looks_count, 0);
}

static void what_was_harvested_is_given_once_and_its_credit_too(void **state)
{
	struct rbx_fragment fragment = { 0 };
	struct rbx_poll_round round = { .found_ns = 5 };
	struct rbx_poll_found found;

	(void)state;
	assert_true(rbx_window_take(&window, 4096));
	round.harvest = (struct rbx_harvest){
		.done_first = &fragment,
		.done_last = &fragment,
		.work_requests = 1,
		.bytes = 4096,
	};
	assert_int_equal(settle(&round, 1, &found), 1);
	assert_ptr_equal(found.done, &fragment);
	assert_null(found.ended);
	assert_int_equal(rbx_window_in_flight_bytes(&window), 0);
	assert_int_equal(round.counters.completions, 1);
	assert_int_equal(round.counters.empty_polls, 0);
	assert_int_equal(round.found_ns, 5); /* who took them has looked */
	assert_int_equal(settle(&round, 1, &found), 1);
	assert_null(found.done);
	assert_int_equal(rbx_window_in_flight_bytes(&window), 0);
}

static void what_ended_without_a_completion_is_given_once(void **state)
{
	static struct rbx_fragment fragments[2];
	struct rbx_poll_round round = { 0 };
	struct rbx_poll_found found;

	(void)state;
	rbx_poll_round_end(&round, &fragments[0]);
	rbx_poll_round_end(&round, &fragments[1]);
	assert_int_equal(settle(&round, 0, &found), 1);
	assert_ptr_equal(found.ended, &fragments[1]);
	assert_ptr_equal(rbx_fragment_next(found.ended), &fragments[0]);
	assert_int_equal(round.found_ns, 700); /* it is the time at which they are given */
	assert_int_equal(settle(&round, 0, &found), 0);
	assert_null(found.ended);
}

static void round_that_was_asked_to_unpark_is_one(void **state)
{
	struct rbx_poll_round round = { 0 };
	struct rbx_poll_found found;

	(void)state;
	rbx_poll_round_unpark(&round);
	rbx_poll_round_unpark(&round);
	assert_int_equal(settle(&round, 0, &found), 1);
	assert_int_equal(settle(&round, 0, &found), 0);
}

/* A round that found something knows the time of that. */
static void time_is_read_if_the_policy_wants_it_after_an_empty_round(void **state)
{
	static const struct rbx_poll_rule rule = RBX_POLL_RULE_ADAPTIVE;
	struct rbx_poll_round round = { 0 };

	(void)state;
	rbx_poll_policy_init(&round.policy, &rule);
	assert_int_equal(rbx_poll_round_next(&round, 1, now_ns), RBX_POLL_AGAIN);
	assert_int_equal(looks_count, 0);
	assert_true(rbx_poll_policy_wants_time(&round.policy));
	(void)rbx_poll_round_next(&round, 0, now_ns);
	assert_int_equal(looks_count, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(round_that_finds_nothing_is_counted_and_reads_no_clock),
		TEST(what_was_harvested_is_given_once_and_its_credit_too),
		TEST(what_ended_without_a_completion_is_given_once),
		TEST(round_that_was_asked_to_unpark_is_one),
		TEST(time_is_read_if_the_policy_wants_it_after_an_empty_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
