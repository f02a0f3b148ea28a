/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_mre_test.c - the paper's policy on an example that was worked out by hand.
 *
 * The cache has 32 pages. So the resorting section has at least 16, and the eviction segment 2.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "regions_small.h"

#define ONE ((uint64_t)1 << 32)

/* Each region has a page number of its own, a hundred apart. */
enum {
	A = 100,
	B = 200,
	C = 300,
	D = 400,
	E = 500,
	F = 600,
	G = 700,
	H = 800,
	I = 900,
	J = 1000,
	K = 1100
};

static struct small small;

static int setup(void **state)
{
	(void)state;
	small_make(&small, &rbx_region_mre, 32, 32);
	small_use(&small, A, 8);
	small_use(&small, B, 4);
	small_use(&small, C, 2);
	small_use(&small, D, 2);
	small_use(&small, E, 8);
	small_use(&small, F, 8);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	small_free(&small);
	return 0;
}

static uint64_t factor(uint64_t page)
{
	assert_true(small_has(&small, page));
	return small.regions.slots[rbx_region_index_at(&small.regions.index, page)].key;
}

/* The bottom of the stack, upwards. */
static void stack_is(const uint64_t *pages, uint32_t count)
{
	uint32_t slot = small.regions.state.mre.stack.oldest;

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(small.regions.slots[slot].first, pages[i]);
		slot = small.regions.slots[slot].prev;
	}
	assert_int_equal(slot, RBX_REGION_NONE);
}

/* r is 0. A, B, C and D are the resorting section: 8 + 4 + 2 + 2 pages. */
static void first_resorting_gives_factors_by_size(void **state)
{
	(void)state;
	small_use(&small, G, 2);
	assert_false(small_has(&small, A)); /* 1/8 is the smallest factor, and 8 pages are enough */
	assert_int_equal(factor(B), ONE / 4);
	assert_int_equal(factor(C), ONE / 2);
	assert_int_equal(factor(D), ONE / 2);
	assert_int_equal(factor(E), 0);
	stack_is((const uint64_t[]){ B, C, D, E, F, G }, 6);
}

/* r is B's factor, 1/4. The section is B, C, D and E, and E gets 1/4 + 1/8, which is below C's. */
static void large_region_leaves_before_smaller_ones_that_are_older(void **state)
{
	(void)state;
	small_use(&small, G, 2);
	small_use(&small, H, 6);
	small_use(&small, I, 2);
	assert_false(small_has(&small, B));
	assert_int_equal(small.regions.state.mre.recency, ONE / 4);
	assert_int_equal(factor(E), ONE / 4 + ONE / 8);
	assert_int_equal(factor(C), ONE / 2); /* kept */
	stack_is((const uint64_t[]){ E, C, D, F, G, H, I }, 7);
}

/* C is used: its factor is 0 again, and it is at the top. r is E's factor, 3/8. The section is E, D
 * and F; F gets 3/8 + 1/8, as much as D, which stays below it. */
static void region_that_is_used_goes_to_the_top_without_factor(void **state)
{
	(void)state;
	small_use(&small, G, 2);
	small_use(&small, H, 6);
	small_use(&small, I, 2);
	small_use(&small, J, 2);
	small_use(&small, C, 2);
	small_use(&small, K, 4);
	assert_false(small_has(&small, E));
	assert_int_equal(small.regions.state.mre.recency, ONE * 3 / 8);
	assert_int_equal(factor(F), ONE / 2);
	assert_int_equal(factor(D), ONE / 2);
	assert_int_equal(factor(C), 0);
	stack_is((const uint64_t[]){ D, F, G, H, I, J, C, K }, 8);
}

/* A sixteenth of the pages leaves in one operation, although one page is wanted. */
static void whole_eviction_segment_is_one_batch(void **state)
{
	struct rbx_region_use use;
	struct small many;

	(void)state;
	small_make(&many, &rbx_region_mre, 320, 320);
	for (uint64_t page = 0; page < 320; page++)
		small_use(&many, page * 10, 1);
	assert_int_equal(rbx_regions_acquire(&many.regions, &use, 9999 * PAGE, 1, 0), -EAGAIN);
	assert_int_equal(small_retire(&many), 320 / 16);
	assert_int_equal(rbx_regions_again(&many.regions, &use), 0);
	small_register(&many, &use);
	rbx_regions_release(&many.regions, &use);
	small_free(&many);
}

/* All that had a factor is used, and the others never had one. */
static void recency_is_0_again_if_the_bottom_has_no_factor(void **state)
{
	(void)state;
	small_use(&small, G, 2);
	small_use(&small, H, 6);
	small_use(&small, I, 2); /* r is 1/4 */
	assert_int_equal(small.regions.state.mre.recency, ONE / 4);
	small_use(&small, E, 8);
	small_use(&small, C, 2);
	small_use(&small, D, 2);
	small_use(&small, J, 4);
	assert_int_equal(small.regions.state.mre.recency, 0);
	assert_false(small_has(&small, F));
}

/* A region that is new counts as used when it was registered. */
static void stack_is_by_the_last_use_of_new_regions_too(void **state)
{
	(void)state;
	small_free(&small);
	small_make(&small, &rbx_region_mre, 32, 32);
	small_use(&small, A, 8);
	small_use(&small, B, 4);
	small_use(&small, C, 2);
	small_use(&small, D, 2);
	small_use(&small, E, 8);
	small_use(&small, A, 8);
	small_use(&small, F, 8);
	small_use(&small, G, 2);
	assert_false(small_has(&small, E));
	stack_is((const uint64_t[]){ B, C, D, A, F, G }, 6);
}

static void policy_that_takes_over_begins_without_factors(void **state)
{
	(void)state;
	small_free(&small);
	small_make(&small, &rbx_region_auto, 32, 32);
	rbx_regions_follow(&small.regions, &rbx_region_gdsf);
	small_use(&small, A, 8);
	small_use(&small, B, 4);
	small_use(&small, C, 20);
	rbx_regions_follow(&small.regions, &rbx_region_mre);
	assert_int_equal(factor(B), 0);
	small_use(&small, D, 2);
	assert_int_equal(small.regions.state.mre.recency, 0);
	assert_false(small_has(&small, C));
	assert_int_equal(factor(B), ONE / 4);
}

/* Only one region can leave, so a part of the segment is left. That is forgotten: the next time
 * that the cache is full, all is resorted. */
static void rest_of_a_segment_is_not_kept(void **state)
{
	struct rbx_region_use held[31], use;
	struct small many;

	(void)state;
	small_make(&many, &rbx_region_mre, 32, 32);
	for (uint64_t i = 0; i < 31; i++)
		small_acquire(&many, &held[i], i * 10, 1);
	small_use(&many, 310, 1);
	small_acquire(&many, &use, 320, 1);
	assert_false(small_has(&many, 310));
	rbx_regions_release(&many.regions, &use);
	for (uint32_t i = 0; i < 31; i++)
		rbx_regions_release(&many.regions, &held[i]);
	small_use(&many, 0, 1);
	small_use(&many, 330, 1);
	assert_true(small_has(&many, 0));
	assert_false(small_has(&many, 10));
	assert_false(small_has(&many, 20));
	assert_true(small_has(&many, 30));
	small_free(&many);
}

/* Region A of 8 pages is in use, so it counts as used just now: the resorting section is above it,
 * and the largest of that leaves, not the oldest of the frequent section. */
static void region_in_use_is_at_the_top(void **state)
{
	struct rbx_region_use held;

	(void)state;
	small_acquire(&small, &held, A, 8);
	small_use(&small, B, 4);
	small_use(&small, C, 2);
	small_use(&small, D, 2);
	small_use(&small, E, 8);
	small_use(&small, F, 8);
	small_use(&small, G, 2);
	assert_false(small_has(&small, E)); /* B, C, D and E are the section; E has 1/8 */
	assert_int_equal(factor(B), ONE / 4);
	assert_int_equal(factor(A), 0);
	stack_is((const uint64_t[]){ B, C, D, F, A, G }, 6);
	rbx_regions_release(&small.regions, &held);
	/* It stays there. B leaves, the least factor. */
	small_use(&small, H, 8);
	assert_true(small_has(&small, A));
	assert_false(small_has(&small, B));
}

/* More than half of the pages is in use: the section is what is left. */
static void resorting_section_ends_where_regions_are_in_use(void **state)
{
	struct rbx_region_use held[3];

	(void)state;
	small_acquire(&small, &held[0], E, 8);
	small_acquire(&small, &held[1], A, 8);
	small_acquire(&small, &held[2], B, 4);
	small_use(&small, G, 2);
	assert_false(small_has(&small, F));
	assert_int_equal(factor(E), 0);
	assert_int_equal(factor(A), 0);
	stack_is((const uint64_t[]){ C, D, E, A, B, G }, 6);
	for (uint32_t i = 0; i < 3; i++)
		rbx_regions_release(&small.regions, &held[i]);
}

/* Pages are enough, so the segment is a sixteenth of the regions. */
static void segment_is_counted_in_regions_if_only_they_are_short(void **state)
{
	struct rbx_region_use use;
	struct small many;

	(void)state;
	small_make(&many, &rbx_region_mre, 100000, 64);
	for (uint64_t i = 0; i < 64; i++)
		small_use(&many, i * 1000, i % 2 ? 100 : 1);
	assert_int_equal(rbx_regions_acquire(&many.regions, &use, 999999 * PAGE, 1, 0), -EAGAIN);
	assert_int_equal(small_retire(&many), 64 / 16);
	rbx_regions_give_up(&many.regions, &use);
	small_free(&many);
}

/* The operation of this fabric takes 64 regions. The whole segment leaves the index at once, and is
 * deregistered as room is needed. */
static void segment_beyond_a_batch_is_deregistered_by_several(void **state)
{
	struct rbx_region_use use;
	struct small many;

	(void)state;
	small_make(&many, &rbx_region_mre, 3200, 3200);
	for (uint64_t i = 0; i < 3200; i++)
		small_use(&many, i * 10, 1);
	assert_int_equal(rbx_regions_acquire(&many.regions, &use, 99999 * PAGE, 1, 0), -EAGAIN);
	assert_int_equal(many.regions.indexed_count, 3000);
	assert_int_equal(small_retire(&many), 64);
	assert_int_equal(rbx_regions_again(&many.regions, &use), 0);
	small_register(&many, &use);
	rbx_regions_release(&many.regions, &use);
	assert_int_equal(small_retire(&many), 64);
	assert_int_equal(small_retire(&many), 64);
	assert_int_equal(small_retire(&many), 8);
	small_free(&many);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_resorting_gives_factors_by_size),
		TEST(large_region_leaves_before_smaller_ones_that_are_older),
		TEST(region_that_is_used_goes_to_the_top_without_factor),
		TEST(whole_eviction_segment_is_one_batch),
		TEST(recency_is_0_again_if_the_bottom_has_no_factor),
		TEST(stack_is_by_the_last_use_of_new_regions_too),
		TEST(policy_that_takes_over_begins_without_factors),
		TEST(rest_of_a_segment_is_not_kept),
		TEST(region_in_use_is_at_the_top),
		TEST(resorting_section_ends_where_regions_are_in_use),
		TEST(segment_is_counted_in_regions_if_only_they_are_short),
		TEST(segment_beyond_a_batch_is_deregistered_by_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
