/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* region_auto_test.c - the policy that costs least is followed, and the sample stays a sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/random.h"
#include "regions_small.h"

/* What a load costs with a policy. */
static uint64_t cost_of(const struct rbx_region_policy *policy, uint64_t pages_max,
			void (*load)(struct rbx_regions *regions), uint64_t *switches)
{
	struct small small;
	uint64_t ns;

	small_make(&small, policy, pages_max, (uint32_t)pages_max);
	load(&small.regions);
	ns = small.regions.counters.spent_ns;
	*switches = small.regions.counters.switches;
	small_free(&small);
	return ns;
}

static void is_near_the_best(uint64_t pages_max, void (*load)(struct rbx_regions *regions),
			     uint32_t percent, bool switches)
{
	uint64_t least = UINT64_MAX, times, ns;

	for (uint32_t i = 0; i < RBX_REGION_POLICIES; i++)
		least = RBX_MIN(least, cost_of(rbx_region_policies[i], pages_max, load, &times));
	ns = cost_of(&rbx_region_auto, pages_max, load, &times);
	assert_in_range(ns, 1, least + least * percent / 100);
	assert_int_equal(times != 0, switches);
}

/* Round and round, more than there is room for. */
static void loop(struct rbx_regions *regions)
{
	for (uint32_t i = 0; i < 60000; i++)
		rbx_regions_play(regions, i % 500 * 100 * PAGE, PAGE);
}

/* Five large ones are used in turn, and every so often another one takes the place of one of them.
 * Beside them come small ones, never twice: who prefers small ones is wrong. */
static void drift(struct rbx_regions *regions)
{
	for (uint64_t i = 0; i < 60000; i++) {
		rbx_regions_play(regions, (i / 50 + i % 5) * 100 * PAGE, 40 * PAGE);
		rbx_regions_play(regions, (1000000 + i) * PAGE, PAGE);
	}
}

static void first_policy_is_left_if_another_one_costs_less(void **state)
{
	(void)state;
	is_near_the_best(300, drift, 5, true);
}

/* The cache spends what its shadow does not: the policy that took over is in a bad state. */
static void policy_that_does_worse_than_its_shadow_is_left(void **state)
{
	const struct rbx_region_policy *first;
	const struct rbx_region_auto *automatic;
	struct small small;
	uint64_t switches;

	(void)state;
	small_make(&small, &rbx_region_auto, 300, 300);
	drift(&small.regions);
	switches = small.regions.counters.switches;
	assert_int_not_equal(switches, 0);
	first = small.regions.policy;
	for (uint32_t i = 0; i < 64; i++) { /* until the next look */
		rbx_regions_play(&small.regions, 0, PAGE);
		small.regions.counters.spent_ns += 100000;
	}
	assert_int_equal(small.regions.counters.switches, switches + 1);
	assert_true(small.regions.policy != first);
	/* The best of the others, and it begins without that debt. */
	automatic = small.regions.automatic;
	for (uint32_t i = 0; i < RBX_REGION_POLICIES; i++)
		if (rbx_region_policies[i] != first)
			assert_true(automatic->scores_ns[i] >=
				    automatic->scores_ns[automatic->followed]);
	assert_int_equal(automatic->excess_ns, 0);
	small_free(&small);
}

/* Small ones are used as often as large ones, so their size alone decides. */
static void sizes(struct rbx_regions *regions)
{
	struct rbx_random random;

	rbx_random_seed(&random, 3);
	for (uint32_t i = 0; i < 60000; i++) {
		uint32_t object = rbx_random_below(&random, 600);

		rbx_regions_play(regions, object * 200 * PAGE, (object % 10 ? 1 : 100) * PAGE);
	}
}

static void sizes_are_followed_by_what_knows_them(void **state)
{
	(void)state;
	is_near_the_best(1000, sizes, 2, false);
}

/* More regions than a shadow has places for. */
static void sample_is_halved_until_the_shadows_can_hold_it(void **state)
{
	const struct rbx_region_auto *automatic;
	struct small small;
	uint64_t spent[RBX_REGION_POLICIES];

	(void)state;
	small_make(&small, &rbx_region_auto, 80000, 80000);
	automatic = small.regions.automatic;
	for (uint64_t i = 0; i < 100000; i++)
		rbx_regions_play(&small.regions, i * 64 * PAGE, PAGE);
	assert_in_range(automatic->halvings, 3, 4); /* 80000 / 2^3 is below 16384 */
	assert_int_equal(small.regions.sample_limit, (uint64_t)1 << (32 - automatic->halvings));
	for (uint32_t i = 0; i < RBX_REGION_POLICIES; i++) {
		const struct rbx_regions *shadow = &automatic->shadows[i];

		assert_int_equal(shadow->pages_max, 80000 >> automatic->halvings);
		assert_int_equal(shadow->regions_max, 80000 >> automatic->halvings);
		for (uint32_t slot = 0; slot < shadow->slots_count; slot++)
			if (rbx_region_is_indexed(&shadow->slots[slot]))
				assert_true(rbx_region_auto_hash(shadow->slots[slot].first) <
					    small.regions.sample_limit);
		spent[i] = automatic->scores_ns[i];
	}
	/* Nothing is ever used again, so they all cost the same, but for regions that left
	 * ahead. */
	for (uint32_t i = 1; i < RBX_REGION_POLICIES; i++)
		assert_in_range(spent[i], spent[0] / 100 * 97, spent[0] / 100 * 103);
	small_free(&small);
}

static void shadows_shrink_with_the_budget(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_auto, 400, 400);
	loop(&small.regions);
	rbx_regions_set_budgets(&small.regions, 100 * PAGE, 50);
	loop(&small.regions);
	for (uint32_t i = 0; i < RBX_REGION_POLICIES; i++) {
		assert_int_equal(small.regions.automatic->shadows[i].pages_max, 100);
		assert_in_range(small.regions.automatic->shadows[i].regions_held, 1, 50);
	}
	assert_in_range(small.regions.regions_held, 1, 50);
	small_free(&small);
}

/* Each request's memory is unmapped after it. That costs the same with each policy, so nothing is a
 * reason to change it. */
static void memory_that_changes_is_no_fault_of_the_policy(void **state)
{
	struct small small;
	uint64_t switches, spent;

	(void)state;
	small_make(&small, &rbx_region_auto, 300, 300);
	drift(&small.regions);
	switches = small.regions.counters.switches;
	assert_int_not_equal(switches, 0);
	spent = small.regions.counters.spent_ns;
	for (uint64_t i = 0; i < 20000; i++) {
		rbx_regions_play(&small.regions, i % 10 * 100 * PAGE, 20 * PAGE);
		rbx_regions_invalidate(&small.regions, i % 10 * 100 * PAGE + 5 * PAGE, PAGE);
	}
	assert_true(small.regions.counters.spent_ns - spent > 20000ull * 20 * 990);
	assert_int_equal(small.regions.counters.switches, switches);
	small_free(&small);
}

/* Nor is the size of the pages that map it. */
static void regions_of_whole_mapping_pages_are_no_fault_of_the_policy(void **state)
{
	struct small small;
	uint64_t switches;

	(void)state;
	small_make(&small, &rbx_region_auto, 600, 600);
	drift(&small.regions);
	switches = small.regions.counters.switches;
	for (uint64_t i = 0; i < 20000; i++) {
		struct rbx_region_use use;
		uint64_t addr = (1000000 + i * 512) * PAGE;
		int err = rbx_regions_acquire(&small.regions, &use, addr, PAGE, 512 * PAGE);

		while (err == -EAGAIN) {
			(void)small_retire(&small);
			err = rbx_regions_again(&small.regions, &use);
		}
		assert_int_equal(err, 0);
		small_register(&small, &use);
		rbx_regions_release(&small.regions, &use);
	}
	assert_int_equal(small.regions.counters.switches, switches);
	small_free(&small);
}

/* Keys of gdsf only grow, so what they begin with does, too. */
static void inflation_never_falls_while_another_policy_is_followed(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_auto, 40, 40);
	small.regions.inflation = 1u << 30; /* its victims were worth more than the shadow's */
	for (uint64_t i = 0; i < 5; i++)
		rbx_regions_play(&small.regions, i * 100 * PAGE, 8 * PAGE);
	small.regions.automatic->followed = 0; /* lru */
	rbx_regions_follow(&small.regions, &rbx_region_lru);
	rbx_regions_play(&small.regions, 0, 8 * PAGE);
	assert_true(small.regions.inflation >= 1u << 30);
	rbx_regions_follow(&small.regions, &rbx_region_gdsf);
	for (uint64_t i = 0; i < 20; i++)
		rbx_regions_play(&small.regions, i % 7 * 100 * PAGE, 8 * PAGE);
	small_free(&small);
}

/* A few regions are chance: the policy that is followed first stays. */
static void few_requests_change_nothing(void **state)
{
	struct rbx_random random;
	struct small small;

	(void)state;
	rbx_random_seed(&random, 1);
	small_make(&small, &rbx_region_auto, 20, 20);
	for (uint32_t i = 0; i < 100; i++)
		rbx_regions_play(&small.regions, rbx_random_below(&random, 40) * 100 * PAGE, PAGE);
	assert_int_equal(small.regions.counters.switches, 0);
	small_free(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_policy_is_left_if_another_one_costs_less),
		cmocka_unit_test(policy_that_does_worse_than_its_shadow_is_left),
		cmocka_unit_test(sizes_are_followed_by_what_knows_them),
		cmocka_unit_test(sample_is_halved_until_the_shadows_can_hold_it),
		cmocka_unit_test(shadows_shrink_with_the_budget),
		cmocka_unit_test(memory_that_changes_is_no_fault_of_the_policy),
		cmocka_unit_test(regions_of_whole_mapping_pages_are_no_fault_of_the_policy),
		cmocka_unit_test(inflation_never_falls_while_another_policy_is_followed),
		cmocka_unit_test(few_requests_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
