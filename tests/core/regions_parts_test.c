/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* regions_parts_test.c - requests of very many parts, and very long ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "regions_small.h"

/* Regions of one page with gaps between them would make more parts than there may be. */
static void request_of_too_many_parts_gets_its_rest_as_one_region(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	for (uint64_t page = 0; page < 80; page += 2)
		small_use(small, page, 1);
	small_acquire(small, &use, 0, 79);
	assert_int_equal(use.count, RBX_REGION_PARTS_MAX);
	small_part_is(small, &use, 30, 30, 1, false);
	small_part_is(small, &use, 31, 31, 48, true);
	rbx_regions_release(&small->regions, &use);
	small_acquire(small, &use, 0, 79);
	assert_int_equal(use.count, RBX_REGION_PARTS_MAX);
	assert_int_equal(use.fresh, 0);
	rbx_regions_release(&small->regions, &use);
}

/* What is asked first changes nothing: the 40 regions stay until the rest of the request fits. */
static void request_of_too_many_parts_without_room_evicts_nothing(void **state)
{
	struct small *small = *state;
	struct rbx_region_use held, use;

	small_acquire(small, &held, 1000, 20);
	for (uint64_t page = 0; page < 80; page += 2)
		small_use(small, page, 1);
	assert_int_equal(small_acquire_only(small, &use, 0, 90), -ENOBUFS);
	assert_int_equal(use.count, 0);
	assert_int_equal(small->regions.indexed_count, 41);
	assert_int_equal(small->regions.used_count, 1);
	assert_int_equal(small_retire(small), 0);
	rbx_regions_release(&small->regions, &held);
	/* Now it fits, in place of what was there. */
	small_acquire(small, &use, 0, 90);
	assert_int_equal(use.count, RBX_REGION_PARTS_MAX);
	small_part_is(small, &use, 31, 31, 59, true);
	rbx_regions_release(&small->regions, &use);
}

/* 31 parts are used as they are. What is behind them is known, too, but cannot all be parts. */
static void request_known_in_too_many_parts_gets_its_rest_anew(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	for (uint64_t page = 0; page < 40; page++)
		small_use(small, page, 1);
	small_acquire(small, &use, 0, 32);
	assert_int_equal(use.count, 32);
	assert_int_equal(use.fresh, 0);
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.counters.hits, 1);
	small_acquire(small, &use, 0, 40);
	assert_int_equal(use.count, 32);
	assert_int_equal(use.fresh, (uint64_t)1 << 31);
	small_part_is(small, &use, 31, 31, 9, true);
	assert_int_equal(small->regions.counters.partial_hits, 1);
	assert_int_equal(small->regions.counters.registrations, 41);
	rbx_regions_release(&small->regions, &use);
}

/* While a request waits, another one makes so many regions of its memory that some of what it has
 * references of is in the rest. */
static void part_that_comes_to_be_in_the_rest_is_released(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 79, 1);
	small_use(small, 200, 60);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 0, 80 * PAGE, 0), -EAGAIN);
	assert_int_equal(use.count, 1);
	assert_int_equal(small_retire(small), 1);
	for (uint64_t page = 0; page < 32; page += 2)
		small_use(small, page, 1);
	assert_int_equal(rbx_regions_again(&small->regions, &use), 0);
	assert_int_equal(use.count, RBX_REGION_PARTS_MAX);
	small_part_is(small, &use, 31, 31, 49, true);
	small_register(small, &use);
	assert_int_equal(small->regions.used_count, RBX_REGION_PARTS_MAX);
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.used_count, 0);
}

/* A region's pages are 32 bits. */
static void rest_that_is_too_long_for_a_region_is_refused(void **state)
{
	struct rbx_region_use use;
	struct small large;
	uint64_t page;

	(void)state;
	small_make(&large, &rbx_region_gdsf, (uint64_t)1 << 40, 100);
	for (page = 0; page < 62; page += 2)
		small_use(&large, page, 1);
	assert_int_equal(small_acquire_only(&large, &use, 0, (1ull << 32) + 36), -ENOBUFS);
	assert_int_equal(small_acquire_only(&large, &use, 0, (1ull << 32) + 31), -ENOBUFS);
	small_acquire(&large, &use, 0, (1ull << 32) + 30);
	assert_int_equal(use.count, RBX_REGION_PARTS_MAX);
	small_part_is(&large, &use, 31, 31, UINT32_MAX, true);
	rbx_regions_release(&large.regions, &use);
	small_free(&large);
}

/* Without other regions there it is cut in two. */
static void gap_that_is_too_long_for_a_region_is_cut(void **state)
{
	struct rbx_region_use use;
	struct small large;

	(void)state;
	small_make(&large, &rbx_region_gdsf, (uint64_t)1 << 40, 100);
	small_acquire(&large, &use, 7, (1ull << 32) + 5);
	assert_int_equal(use.count, 2);
	small_part_is(&large, &use, 0, 7, UINT32_MAX, true);
	small_part_is(&large, &use, 1, 7 + (uint64_t)UINT32_MAX, 6, true);
	rbx_regions_release(&large.regions, &use);
	small_free(&large);
}

/* What is known, and in use by nobody, is not counted as room that others can give up. */
static void known_part_is_no_room_for_the_rest(void **state)
{
	struct small *small = *state;
	struct rbx_region_use held, use;

	small_use(small, 10, 30);
	small_acquire(small, &held, 200, 60);
	assert_int_equal(small_acquire_only(small, &use, 10, 41), -ENOBUFS);
	assert_true(small_has(small, 10));
	assert_int_equal(small_acquire_only(small, &use, 10, 40), 0);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
	rbx_regions_release(&small->regions, &held);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_of_too_many_parts_gets_its_rest_as_one_region),
		TEST(request_of_too_many_parts_without_room_evicts_nothing),
		TEST(request_known_in_too_many_parts_gets_its_rest_anew),
		TEST(part_that_comes_to_be_in_the_rest_is_released),
		TEST(rest_that_is_too_long_for_a_region_is_refused),
		TEST(gap_that_is_too_long_for_a_region_is_cut),
		TEST(known_part_is_no_room_for_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
