/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_trial_test.c - the trial on loads whose gaps depend on patience.
 *
 * A load says how long it takes to the next completion with patience and without.
 * What counts is how much of the time is spent the right way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/poll_trial.h"
#include "core/random.h"

#define US 1000u
#define MS 1000000u
#define SECOND 1000000000ull

struct load {
	uint32_t patient_ns; /* from a find to the next */
	uint32_t impatient_ns;
	bool is_random; /* anything up to twice as long */
};

struct world {
	struct rbx_poll_trial trial;
	struct rbx_random random;
	uint64_t now_ns;
	uint64_t patient_ns; /* of the time since the last run() began */
	uint64_t completions_count;
};

static struct world begin(uint64_t seed)
{
	struct world world = { .now_ns = MS };

	rbx_poll_trial_init(&world.trial);
	rbx_random_seed(&world.random, seed);
	return world;
}

/* Percent of the time that was spent with patience. */
static uint32_t run(struct world *world, const struct load *load,
		    uint64_t duration_ns)
{
	uint64_t begin_ns = world->now_ns;

	world->patient_ns = world->completions_count = 0;
	while (world->now_ns - begin_ns < duration_ns) {
		bool patient = world->trial.patient;
		uint32_t gap_ns = patient ? load->patient_ns :
					    load->impatient_ns;

		if (load->is_random)
			gap_ns = rbx_random_below(&world->random, 2 * gap_ns);
		world->now_ns += gap_ns + 1;
		world->patient_ns += patient ? gap_ns + 1 : 0;
		world->completions_count++;
		rbx_poll_trial_found(&world->trial, 1, world->now_ns);
	}
	return (uint32_t)(world->patient_ns * 100 /
			  (world->now_ns - begin_ns));
}

static void trial_keeps_patience_that_pays(void **state)
{
	static const struct load load = { 18 * US, 45 * US, false };
	struct world world = begin(1);

	(void)state;
	run(&world, &load, SECOND / 10);
	assert_true(run(&world, &load, SECOND) >= 99);
}

static void trial_drops_patience_that_costs_others_their_time(void **state)
{
	static const struct load load = { 17 * US, 14 * US, false };
	struct world world = begin(1);

	(void)state;
	run(&world, &load, SECOND / 10);
	assert_true(run(&world, &load, SECOND) <= 2);
}

static void trial_is_right_most_of_the_time_when_gaps_are_random(void **state)
{
	static const struct load pays = { 20 * US, 26 * US, true };
	static const struct load costs = { 26 * US, 20 * US, true };

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct world world = begin(seed);
		uint32_t percent;

		percent = run(&world, &pays, 4 * SECOND);
		if (percent < 85)
			fail_msg("seed %d: patient for %u %%", (int)seed,
				 percent);
		world = begin(seed);
		percent = run(&world, &costs, 4 * SECOND);
		if (percent > 15)
			fail_msg("seed %d: patient for %u %%", (int)seed,
				 percent);
	}
}

/* One that was asked long ago, and seldom since. */
static void trial_asks_anew_when_the_load_is_another(void **state)
{
	static const struct load crowded = { 100 * US, 60 * US, false };
	static const struct load lone = { 5 * US, 25 * US, false };
	struct world world = begin(1);

	(void)state;
	run(&world, &crowded, 20 * SECOND);
	run(&world, &lone, SECOND / 50);
	assert_true(run(&world, &lone, SECOND) >= 95);
	run(&world, &crowded, SECOND / 50);
	assert_true(run(&world, &crowded, SECOND) <= 5);
}

/* Whatever is done, the next request comes a millisecond later. */
static void trial_takes_pauses_for_no_slowness(void **state)
{
	static const struct load burst = { 10 * US, 30 * US, false };
	struct world world = begin(1);

	(void)state;
	run(&world, &burst, SECOND / 10);
	for (int i = 0; i < 1000; i++) {
		run(&world, &burst, 500 * US);
		world.now_ns += (1 + rbx_random_below(&world.random, 9)) * MS;
	}
	assert_true(run(&world, &burst, SECOND / 10) >= 95);
}

/* A try of what is much worse ends early. */
static void trial_tries_what_is_bad_for_a_moment_only(void **state)
{
	static const struct load load = { 10 * US, 100 * US, false };
	struct world world = begin(1);

	(void)state;
	while (world.trial.patient)
		run(&world, &load, 1);
	assert_true(run(&world, &load, 20 * MS) >= 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trial_keeps_patience_that_pays),
		cmocka_unit_test(
			trial_drops_patience_that_costs_others_their_time),
		cmocka_unit_test(
			trial_is_right_most_of_the_time_when_gaps_are_random),
		cmocka_unit_test(trial_asks_anew_when_the_load_is_another),
		cmocka_unit_test(trial_takes_pauses_for_no_slowness),
		cmocka_unit_test(trial_tries_what_is_bad_for_a_moment_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
