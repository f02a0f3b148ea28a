/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* region_policy_test.c - which region each policy retires; mre has a test of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "regions_small.h"

static void policies_are_found_by_their_names(void **state)
{
	static const char *const names[] = { "lru", "mre", "gdsf", "s3fifo", "sieve", "auto" };

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		assert_string_equal(rbx_region_policy_find(names[i])->name, names[i]);
	assert_null(rbx_region_policy_find("lr"));
	assert_null(rbx_region_policy_find("lruu"));
	assert_null(rbx_region_policy_find(""));
}

#define REGIONS 20u
#define PAGES 60u

/* Beside a list in which a region moves to the end at each use. */
static void lru_retires_exactly_in_the_order_of_last_uses(void **state)
{
	uint64_t list[REGIONS + 1];
	uint32_t count = 0;
	struct rbx_random random;
	struct small small;

	(void)state;
	rbx_random_seed(&random, 1);
	small_make(&small, &rbx_region_lru, REGIONS, REGIONS);
	for (uint32_t step = 0; step < 20000; step++) {
		uint64_t page = rbx_random_below(&random, PAGES);
		uint32_t at = 0;

		while (at < count && list[at] != page)
			at++;
		if (at == count)
			at = count == REGIONS ? 0 : count++;
		memmove(&list[at], &list[at + 1], (count - at - 1) * sizeof(*list));
		list[count - 1] = page;
		small_use(&small, page, 1);
		for (uint32_t i = 0; i < count; i++)
			assert_true(small_has(&small, list[i]));
		assert_int_equal(small.regions.indexed_count, count);
	}
	small_free(&small);
}

/* ---- gdsf -----------------------------------------------------------------------*/

static void gdsf_keeps_small_regions_and_those_used_often(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_gdsf, 40, 40);
	small_use(&small, 100, 2); /* (0.99 + 8.52 / 2) a page */
	small_use(&small, 200,
		  20); /* (0.99 + 8.52 / 20) a page, twice the cheapest if used again */
	small_use(&small, 300, 16);
	small_use(&small, 200, 20);
	small_use(&small, 400, 2);
	small_use(&small, 500, 4);
	assert_false(small_has(&small, 300));
	assert_true(small_has(&small, 100));
	assert_true(small_has(&small, 200));
	small_free(&small);
}

static void gdsf_lets_go_of_what_was_used_often_long_ago(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_gdsf, 40, 40);
	for (uint32_t i = 0; i < 20; i++)
		small_use(&small, 100, 4);
	for (uint64_t i = 0; i < 2000 && small_has(&small, 100); i++)
		small_use(&small, 1000 + i * 10, 4);
	assert_false(small_has(&small, 100));
	small_free(&small);
}

/* If calls cost nothing, a page saves the same in each region: then uses and time decide. */
static void gdsf_goes_by_what_the_device_takes(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_gdsf, 40, 40);
	small.regions.cost.register_call_ns = 0;
	small.regions.cost.deregister_call_ns = 0;
	small_use(&small, 100, 2);
	small_use(&small, 200, 38);
	small_use(&small, 200, 38);
	small_use(&small, 400, 2);
	assert_false(small_has(&small, 100));
	assert_true(small_has(&small, 200));
	small_free(&small);
}

/* Uses are counted without an end: the hottest region stays the hottest. */
static void gdsf_keeps_what_was_used_more_often_than_32_bits_can_say(void **state)
{
	struct rbx_region_use use;
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_gdsf, 40, 40);
	small_acquire(&small, &use, 100, 4);
	small.regions.slots[use.parts[0]].uses = UINT32_MAX;
	rbx_regions_release(&small.regions, &use);
	small_use(&small, 200, 36);
	small_use(&small, 300, 36); /* its key is that of so many uses from now on */
	small_use(&small, 100, 4);
	for (uint64_t i = 0; i < 20; i++)
		small_use(&small, 1000 + i * 100, 36);
	assert_true(small_has(&small, 100));
	small_free(&small);
}

/* ---- s3fifo ---------------------------------------------------------------------*/

static void s3fifo_keeps_what_is_used_often_from_a_scan(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_s3fifo, 40, 40);
	for (uint32_t round = 0; round < 3; round++)
		for (uint64_t i = 0; i < 20; i++)
			small_use(&small, 100 + i * 10, 1);
	for (uint64_t i = 0; i < 60; i++)
		small_use(&small, 1000 + i * 10, 1);
	for (uint64_t i = 0; i < 20; i++)
		assert_true(small_has(&small, 100 + i * 10));
	small_free(&small);
}

static void s3fifo_takes_what_comes_back_into_the_main_queue(void **state)
{
	struct rbx_region_use use;
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_s3fifo, 40, 40);
	/* So that the main queue has regions: as many ghosts are remembered. */
	for (uint32_t round = 0; round < 3; round++)
		for (uint64_t i = 0; i < 20; i++)
			small_use(&small, 100 + i * 10, 1);
	for (uint64_t i = 0; i < 21; i++)
		small_use(&small, 1000 + i * 10, 1);
	assert_false(small_has(&small, 1000));
	small_acquire(&small, &use, 1000, 1);
	assert_int_equal(small_part(&small, &use, 0)->section, 1);
	rbx_regions_release(&small.regions, &use);
	small_acquire(&small, &use, 5000, 1);
	assert_int_equal(small_part(&small, &use, 0)->section, 0);
	rbx_regions_release(&small.regions, &use);
	small_free(&small);
}

/* All of the main queue is in use. The small one, of less than a tenth, passes its only region on
 * to the main queue, and that is the victim. */
static void s3fifo_finds_a_victim_that_it_has_just_passed_on(void **state)
{
	struct rbx_region_use held;
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_s3fifo, 100, 100);
	small_acquire(&small, &held, 0, 90);
	for (uint32_t i = 0; i < 3; i++)
		small_use(&small, 0, 90);
	small_use(&small, 1000, 10);
	small_use(&small, 3000, 1); /* the first goes to the main queue, the second leaves */
	small_use(&small, 2000, 5);
	for (uint32_t i = 0; i < 3; i++)
		small_use(&small, 2000, 5);
	assert_true(small_has(&small, 0));
	small_use(&small, 4000, 10);
	assert_false(small_has(&small, 2000));
	assert_true(small_has(&small, 0));
	rbx_regions_release(&small.regions, &held);
	small_free(&small);
}

/* The same in one request: what is known of it is in use. */
static void s3fifo_makes_room_beside_the_known_part_of_a_request(void **state)
{
	static const struct rbx_region_policy *const policies[] = { &rbx_region_s3fifo,
								    &rbx_region_auto };

	(void)state;
	for (uint32_t p = 0; p < 2; p++) {
		struct small small;

		small_make(&small, policies[p], 100, 100);
		for (uint32_t i = 0; i < 4; i++)
			rbx_regions_play(&small.regions, 0, 90 * PAGE);
		rbx_regions_play(&small.regions, 1000 * PAGE, 10 * PAGE);
		for (uint32_t i = 0; i < 4; i++)
			rbx_regions_play(&small.regions, 2000 * PAGE, 5 * PAGE);
		rbx_regions_play(&small.regions, 0, 100 * PAGE);
		assert_true(small_has(&small, 0));
		assert_true(small_has(&small, 99));
		assert_false(small_has(&small, 2000));
		small_free(&small);
	}
}

/* ---- sieve ----------------------------------------------------------------------*/

static void sieve_passes_over_what_was_used_and_leaves_it_where_it_is(void **state)
{
	struct small small;

	(void)state;
	small_make(&small, &rbx_region_sieve, 4, 4);
	for (uint64_t page = 10; page <= 40; page += 10)
		small_use(&small, page, 1);
	small_use(&small, 10, 1);
	small_use(&small, 30, 1);
	small_use(&small, 50, 1); /* the hand passes over 10 */
	assert_false(small_has(&small, 20));
	small_use(&small, 60, 1); /* and over 30 */
	assert_false(small_has(&small, 40));
	small_use(&small, 70, 1); /* it goes on to the newer ones */
	assert_false(small_has(&small, 50));
	small_use(&small, 80, 1);
	assert_false(small_has(&small, 60));
	assert_true(small_has(&small, 10) && small_has(&small, 30));
	small_free(&small);
}

/* ---- Taking over ----------------------------------------------------------------*/

static void policy_that_takes_over_knows_uses_and_times(void **state)
{
	struct small small;

	(void)state;
	for (uint32_t from = 0; from < RBX_REGION_POLICIES; from++) {
		small_make(&small, &rbx_region_auto, 10, 10);
		rbx_regions_follow(&small.regions, rbx_region_policies[from]);
		for (uint64_t page = 0; page < 100; page += 10)
			small_use(&small, page, 1);
		small_use(&small, 0, 1);
		small_use(&small, 10, 1);
		rbx_regions_follow(&small.regions, &rbx_region_lru);
		assert_int_equal(small.regions.indexed_count, 10);
		small_use(&small, 500, 1);
		assert_false(small_has(&small, 20));
		small_use(&small, 510, 1);
		assert_false(small_has(&small, 30));
		assert_true(small_has(&small, 0) && small_has(&small, 10));
		rbx_regions_follow(&small.regions, &rbx_region_sieve);
		small_use(&small, 520, 1);
		assert_false(small_has(&small, 40));
		assert_true(small_has(&small, 0) && small_has(&small, 10));
		small_free(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_are_found_by_their_names),
		cmocka_unit_test(lru_retires_exactly_in_the_order_of_last_uses),
		cmocka_unit_test(gdsf_keeps_small_regions_and_those_used_often),
		cmocka_unit_test(gdsf_lets_go_of_what_was_used_often_long_ago),
		cmocka_unit_test(gdsf_goes_by_what_the_device_takes),
		cmocka_unit_test(gdsf_keeps_what_was_used_more_often_than_32_bits_can_say),
		cmocka_unit_test(s3fifo_keeps_what_is_used_often_from_a_scan),
		cmocka_unit_test(s3fifo_takes_what_comes_back_into_the_main_queue),
		cmocka_unit_test(s3fifo_finds_a_victim_that_it_has_just_passed_on),
		cmocka_unit_test(s3fifo_makes_room_beside_the_known_part_of_a_request),
		cmocka_unit_test(sieve_passes_over_what_was_used_and_leaves_it_where_it_is),
		cmocka_unit_test(policy_that_takes_over_knows_uses_and_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
