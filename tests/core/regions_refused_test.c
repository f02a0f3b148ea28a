/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* regions_refused_test.c - what the system does not register. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "regions_small.h"

static void refusal_of_bytes_shrinks_the_budget_and_is_tried_again(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 0, 30);
	small_use(small, 30, 20);
	/* The system grants 50 pages. */
	assert_int_equal(small_acquire_only(small, &use, 200, 10), 0);
	assert_true(rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_BYTES));
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.pages_max, 50);
	assert_int_equal(small->regions.pages_held, 50);
	assert_false(small_has(small, 200));
	small_acquire(small, &use, 200, 10);
	assert_false(small_has(small, 0));
	assert_int_equal(small->regions.pages_held, 30);
	rbx_regions_release(&small->regions, &use);
}

static void refusal_of_regions_shrinks_that_budget(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	for (uint64_t page = 0; page < 8; page++)
		small_use(small, page * 2, 1);
	assert_int_equal(small_acquire_only(small, &use, 200, 1), 0);
	assert_true(
		rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_REGIONS));
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.regions_max, 8);
	assert_int_equal(small->regions.pages_max, 100);
	small_use(small, 200, 1);
	assert_int_equal(small->regions.regions_held, 8);
}

static void refusal_with_nothing_to_retire_is_final(void **state)
{
	struct small *small = *state;
	struct rbx_region_use held, use;

	small_acquire(small, &held, 0, 30);
	assert_int_equal(small_acquire_only(small, &use, 200, 10), 0);
	assert_false(rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_BYTES));
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small_acquire_only(small, &use, 200, 10), -ENOBUFS);
	rbx_regions_release(&small->regions, &held);
}

static void refusal_for_another_reason_leaves_the_budgets(void **state)
{
	struct small *small = *state;
	struct rbx_region_use first, waits;

	assert_int_equal(small_acquire_only(small, &first, 0, 10), 0);
	assert_int_equal(small_acquire_only(small, &waits, 0, 10), 0);
	assert_false(rbx_regions_refused(&small->regions, first.parts[0],
					 RBX_REGION_SHORT_OF_NOTHING));
	assert_int_equal(small->regions.pages_max, 100);
	assert_int_equal(small_part(small, &waits, 0)->state, RBX_REGION_GONE);
	assert_false(small_part(small, &waits, 0)->is_registered);
	rbx_regions_release(&small->regions, &first);
	assert_int_equal(small->regions.pages_held, 10); /* the other one still refers to it */
	rbx_regions_release(&small->regions, &waits);
	assert_int_equal(small->regions.pages_held, 0);
	assert_int_equal(small_retire(small), 0); /* it never was registered */
}

/* Regions that could leave are no help if room is not what was missing. */
static void refusal_for_another_reason_is_final(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 0, 10);
	assert_int_equal(small_acquire_only(small, &use, 50, 10), 0);
	assert_false(
		rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_NOTHING));
	rbx_regions_release(&small->regions, &use);
	/* Nor if some are due. */
	rbx_regions_invalidate(&small->regions, 0, PAGE);
	assert_int_equal(small_acquire_only(small, &use, 50, 10), 0);
	assert_false(
		rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_NOTHING));
	assert_int_equal(small->regions.due_count, 1);
	rbx_regions_release(&small->regions, &use);
}

static void refusal_with_something_due_is_tried_again(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 0, 10);
	rbx_regions_invalidate(&small->regions, 0, PAGE);
	assert_int_equal(small_acquire_only(small, &use, 50, 10), 0);
	assert_true(rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_BYTES));
	rbx_regions_release(&small->regions, &use);
	small_acquire(small, &use, 50, 10);
	rbx_regions_release(&small->regions, &use);
}

/* One request of three parts; the system grants the last. */
static void budget_becomes_what_is_registered_whatever_else_is_promised(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 10, 1);
	small_use(small, 66, 1);
	assert_int_equal(small_acquire_only(small, &use, 0, 72), 0);
	assert_int_equal(use.fresh, 1 << 0 | 1 << 2 | 1 << 4);
	small_part_is(small, &use, 2, 11, 55, true);
	(void)rbx_regions_refused(&small->regions, use.parts[2], RBX_REGION_SHORT_OF_BYTES);
	assert_int_equal(small->regions.pages_max, 2);
	rbx_regions_registered(&small->regions, use.parts[4], 0);
	(void)rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_BYTES);
	assert_int_equal(small->regions.pages_max, 2); /* never upwards */
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.registered_pages, 7);
}

static void budget_of_regions_becomes_what_is_registered_too(void **state)
{
	struct small *small = *state;
	struct rbx_region_use first, second;

	small_use(small, 10, 1);
	assert_int_equal(small_acquire_only(small, &first, 20, 1), 0);
	assert_int_equal(small_acquire_only(small, &second, 30, 1), 0);
	(void)rbx_regions_refused(&small->regions, first.parts[0], RBX_REGION_SHORT_OF_REGIONS);
	assert_int_equal(small->regions.regions_max, 1);
	(void)rbx_regions_refused(&small->regions, second.parts[0], RBX_REGION_SHORT_OF_REGIONS);
	assert_int_equal(small->regions.regions_max, 1);
	assert_int_equal(small->regions.pages_max, 100);
	rbx_regions_release(&small->regions, &first);
	rbx_regions_release(&small->regions, &second);
}

/* A budget is never nothing: that would keep all requests from asking the system again. */
static void budget_without_anything_registered_is_one(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	assert_int_equal(small_acquire_only(small, &use, 0, 10), 0);
	assert_false(rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_BYTES));
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small_acquire_only(small, &use, 0, 1), 0);
	assert_false(
		rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_REGIONS));
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.pages_max, 1);
	assert_int_equal(small->regions.regions_max, 1);
}

/* Also if no request fits the small budget, so that none asks the system. */
static void budget_grows_again_as_a_shortage_may_pass(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;
	uint64_t expected;

	assert_int_equal(small_acquire_only(small, &use, 0, 3), 0);
	(void)rbx_regions_refused(&small->regions, use.parts[0], RBX_REGION_SHORT_OF_BYTES);
	rbx_regions_release(&small->regions, &use);
	for (expected = 1; expected < 100; expected = RBX_MIN(expected + 7, 100ull))
		for (uint32_t i = 0; i < 1024; i++) {
			assert_int_equal(small->regions.pages_max, expected);
			assert_int_equal(small_acquire_only(small, &use, 0, 200), -ENOBUFS);
		}
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(small_acquire_only(small, &use, 0, 200), -ENOBUFS);
	assert_int_equal(small->regions.pages_max, 100);
	assert_int_equal(small->regions.regions_max, 100);
}

/* Each refusal is news: the count begins anew. */
static void budget_that_is_refused_again_stays(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(small_acquire_only(small, &use, 0, 1), 0);
		(void)rbx_regions_refused(&small->regions, use.parts[0],
					  RBX_REGION_SHORT_OF_REGIONS);
		rbx_regions_release(&small->regions, &use);
	}
	assert_int_equal(small->regions.regions_max, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refusal_of_bytes_shrinks_the_budget_and_is_tried_again),
		TEST(refusal_of_regions_shrinks_that_budget),
		TEST(refusal_with_nothing_to_retire_is_final),
		TEST(refusal_for_another_reason_leaves_the_budgets),
		TEST(refusal_for_another_reason_is_final),
		TEST(refusal_with_something_due_is_tried_again),
		TEST(budget_becomes_what_is_registered_whatever_else_is_promised),
		TEST(budget_of_regions_becomes_what_is_registered_too),
		TEST(budget_without_anything_registered_is_one),
		TEST(budget_grows_again_as_a_shortage_may_pass),
		TEST(budget_that_is_refused_again_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
