/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_tuner_test.c - a poller in virtual time: what it spends on sequences of
 * gaps, against what the best patience in hindsight would have spent.
 *
 * A gap is the time until the next completion, counted from the first poll that
 * found nothing. A poll takes poll_ns, a sleep wakes wake_ns after its event. Where
 * others want the processor, a look makes them late by crowd_percent of its time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/poll_policy.h"
#include "core/random.h"

#define WAKE_NS 20000u
#define US 1000u

struct poller {
	struct rbx_poll_policy policy;
	uint64_t now_ns;
	uint64_t poll_ns;
	uint64_t wake_ns;
	uint32_t crowd_percent;
	/* Since the last reset: */
	uint64_t looked_ns; /* in polls that found nothing */
	uint64_t sleeps;
	uint64_t gaps;
};

static struct poller begin(uint64_t poll_ns, uint32_t cpu_percent)
{
	struct rbx_poll_rule rule = { 0, 32, RBX_POLL_EVENT_UNBOUNDED, true,
				      cpu_percent };
	struct poller poller = { .now_ns = 1000000,
				 .poll_ns = poll_ns,
				 .wake_ns = WAKE_NS };

	rbx_poll_policy_init(&poller.policy, &rule);
	return poller;
}

static void reset(struct poller *poller)
{
	poller->looked_ns = 0;
	poller->sleeps = 0;
	poller->gaps = 0;
}

/* Polls once; the time is given where it is wanted, else junk. */
static enum rbx_poll_step poll_once(struct poller *poller, uint32_t count)
{
	bool timed = count || rbx_poll_policy_wants_time(&poller->policy);

	poller->now_ns += poller->poll_ns;
	return rbx_poll_policy_next(&poller->policy, count,
				    timed ? poller->now_ns : 0);
}

/* From one find to the next. */
static void pass(struct poller *poller, uint64_t gap_ns)
{
	uint64_t end_ns = poller->now_ns + gap_ns;

	poller->gaps++;
	while (poller->now_ns < end_ns) {
		uint64_t before_ns = poller->now_ns;

		if (poll_once(poller, 0) != RBX_POLL_SLEEP) {
			uint64_t looked_ns = poller->now_ns - before_ns;

			poller->looked_ns += looked_ns;
			end_ns += looked_ns * poller->crowd_percent / 100;
			continue;
		}
		poller->sleeps++;
		poller->now_ns = RBX_MAX(poller->now_ns, end_ns) +
				 poller->wake_ns;
	}
	(void)poll_once(poller, 1);
}

static void pass_many(struct poller *poller, uint32_t count, uint64_t gap_ns)
{
	while (count-- > 0)
		pass(poller, gap_ns);
}

static void tuner_looks_through_short_gaps_whatever_a_poll_takes(void **state)
{
	static const uint64_t poll_ns[] = { 15, 100, 800, 3000 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct poller poller = begin(poll_ns[i], 100);

		pass_many(&poller, 500, 8 * US);
		reset(&poller);
		pass_many(&poller, 5000, 8 * US);
		/* But for a trial of sleeping. */
		assert_true(poller.sleeps * 100 < poller.gaps);
	}
}

static void tuner_sleeps_through_long_gaps(void **state)
{
	static const uint64_t poll_ns[] = { 15, 100, 800 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct poller poller = begin(poll_ns[i], 100);

		pass_many(&poller, 200, 1000 * US);
		reset(&poller);
		pass_many(&poller, 20000, 1000 * US);
		assert_true(poller.sleeps >= poller.gaps);
		assert_true(poller.looked_ns / poller.gaps < 5 * US);
	}
}

static void tuner_follows_when_gaps_get_short(void **state)
{
	struct poller poller = begin(500, 100);

	(void)state;
	pass_many(&poller, 5000, 500 * US);
	pass_many(&poller, 600, 10 * US);
	reset(&poller);
	pass_many(&poller, 1000, 10 * US);
	assert_true(poller.sleeps * 20 < poller.gaps);
}

static void tuner_follows_at_once_when_gaps_get_long(void **state)
{
	struct poller poller = begin(500, 100);

	(void)state;
	pass_many(&poller, 5000, 10 * US);
	pass_many(&poller, 40, 500 * US);
	reset(&poller);
	pass_many(&poller, 200, 500 * US);
	assert_true(poller.looked_ns / poller.gaps < 12 * US);
}

/* A look through 14 us takes 28 where others need the processor for half of it, and
 * a sleep through them takes 18. */
static void tuner_sleeps_where_a_look_makes_others_late(void **state)
{
	struct poller poller = begin(60, 100);
	uint64_t begin_ns;

	(void)state;
	poller.wake_ns = 4 * US;
	poller.crowd_percent = 50;
	pass_many(&poller, 500, 14 * US);
	begin_ns = poller.now_ns;
	pass_many(&poller, 10000, 14 * US);
	assert_true(poller.now_ns - begin_ns < 10000 * 19 * US);
}

/* Threads that want its lock and stale events wake a poller; its gap goes on. */
static void tuner_counts_a_gap_once_whatever_wakes_it(void **state)
{
	struct poller poller = begin(500, 100);

	(void)state;
	for (int i = 0; i < 3000; i++) {
		for (int wakes = 0; wakes < 3; wakes++)
			while (poll_once(&poller, 0) != RBX_POLL_SLEEP)
				;
		poller.now_ns += 500 * US;
		for (int wakes = 0; wakes < 3; wakes++)
			while (poll_once(&poller, 0) != RBX_POLL_SLEEP)
				;
		/* Found just after a needless wake-up: no short gap. */
		(void)poll_once(&poller, 0);
		(void)poll_once(&poller, 1);
	}
	reset(&poller);
	pass_many(&poller, 100, 500 * US);
	assert_true(poller.looked_ns / poller.gaps < 12 * US);
}

/* ---- Against hindsight -----------------------------------------------------*/

#define GAPS 20000

/* Some gaps short and some long, in a share that differs with the seed. */
static void draw_gaps(uint64_t *gaps_ns, uint64_t seed)
{
	struct rbx_random random;
	uint32_t short_percent, short_us, long_us;

	rbx_random_seed(&random, seed);
	short_percent = rbx_random_below(&random, 101);
	short_us = 1 + rbx_random_below(&random, 30);
	long_us = 20 + rbx_random_below(&random, 400);
	for (int i = 0; i < GAPS; i++) {
		uint32_t about_us =
			rbx_random_below(&random, 100) < short_percent ?
				short_us :
				long_us;

		gaps_ns[i] = US / 2 * about_us +
			     rbx_random_below(&random, US * about_us);
	}
}

static uint64_t hindsight_ns(const uint64_t *gaps_ns)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint64_t patience_ns = 0; patience_ns <= RBX_POLL_SLEEP_NS;
	     patience_ns += US) {
		uint64_t sum_ns = 0;

		for (int i = 0; i < GAPS; i++)
			sum_ns += gaps_ns[i] < patience_ns ?
					  gaps_ns[i] :
					  patience_ns + RBX_POLL_SLEEP_NS;
		least_ns = RBX_MIN(least_ns, sum_ns);
	}
	return least_ns;
}

static void tuner_costs_little_more_than_hindsight(void **state)
{
	static uint64_t gaps_ns[GAPS];

	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct poller poller = begin(300, 100);
		uint64_t cost_ns;

		poller.wake_ns = RBX_POLL_SLEEP_NS;
		draw_gaps(gaps_ns, seed);
		for (int i = 0; i < GAPS; i++)
			pass(&poller, gaps_ns[i]);
		cost_ns = poller.looked_ns + poller.sleeps * RBX_POLL_SLEEP_NS;
		if (cost_ns > hindsight_ns(gaps_ns) / 100 * 130)
			fail_msg("seed %d: %llu ns, in hindsight %llu",
				 (int)seed, (unsigned long long)cost_ns,
				 (unsigned long long)hindsight_ns(gaps_ns));
	}
}

static void tuner_keeps_to_its_budget(void **state)
{
	static const uint64_t gaps_ns[] = { 5 * US, 20 * US, 40 * US, 60 * US,
					    300 * US };
	static const uint32_t percent[] = { 1, 10, 50 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < 3; j++) {
			struct poller poller = begin(300, percent[j]);
			uint64_t begin_ns = poller.now_ns, passed_ns;

			pass_many(&poller, 50000, gaps_ns[i]);
			passed_ns = poller.now_ns - begin_ns;
			/* The one poll before an arm is not bought: it is there
			 * under every policy that sleeps. */
			assert_true(poller.looked_ns <=
				    passed_ns / 100 * percent[j] +
					    RBX_POLL_BUDGET_NS +
					    poller.sleeps * poller.poll_ns);
		}
	}
}

static void tuner_spends_its_budget_on_short_gaps(void **state)
{
	struct poller poller = begin(300, 20);

	(void)state;
	pass_many(&poller, 2000, 10 * US);
	reset(&poller);
	pass_many(&poller, 20000, 10 * US);
	assert_true(poller.sleeps < poller.gaps);
	assert_true(poller.sleeps > poller.gaps / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			tuner_looks_through_short_gaps_whatever_a_poll_takes),
		cmocka_unit_test(tuner_sleeps_through_long_gaps),
		cmocka_unit_test(tuner_follows_when_gaps_get_short),
		cmocka_unit_test(tuner_follows_at_once_when_gaps_get_long),
		cmocka_unit_test(tuner_sleeps_where_a_look_makes_others_late),
		cmocka_unit_test(tuner_counts_a_gap_once_whatever_wakes_it),
		cmocka_unit_test(tuner_costs_little_more_than_hindsight),
		cmocka_unit_test(tuner_keeps_to_its_budget),
		cmocka_unit_test(tuner_spends_its_budget_on_short_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
