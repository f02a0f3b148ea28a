/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doubts_test.c - what a page was before writes that some replicas have missed: whichever
 * of them becomes the truth, its checksum is of what it has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/doubts.h"

#define PAGE 7u
#define A 0u
#define B 1u
#define C 2u
#define ONLY(slot) ((uint8_t)(1u << (slot)))

static struct rbx_doubts doubts;
static uint32_t sums[PAGE + RBX_DOUBTS_MAX + 1];

static int begin(void **state)
{
	(void)state;
	doubts = (struct rbx_doubts){ 0 };
	for (uint32_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		sums[i] = 100 + i;
	sums[PAGE] = 1;
	return 0;
}

/* A write that is the truth, and that these have missed. */
static void is_written(uint32_t sum, uint8_t missed)
{
	rbx_doubts_missed(&doubts, sums, PAGE, 1, missed);
	sums[PAGE] = sum;
}

static void who_missed_it_has_the_page_before(void **state)
{
	(void)state;
	is_written(2, ONLY(B));
	rbx_doubts_resolve(&doubts, sums, C, 0);
	assert_int_equal(sums[PAGE], 2);
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
}

static void who_missed_more_writes_has_the_page_before_the_first(void **state)
{
	(void)state;
	is_written(2, ONLY(B));
	is_written(3, ONLY(B) | ONLY(C));
	rbx_doubts_resolve(&doubts, sums, B, ONLY(C));
	assert_int_equal(sums[PAGE], 1);
	rbx_doubts_resolve(&doubts, sums, C, 0);
	assert_int_equal(sums[PAGE], 2);
}

static void others_have_what_was_the_truth_before(void **state)
{
	(void)state;
	is_written(2, ONLY(B));
	rbx_doubts_resolve(&doubts, sums, B, ONLY(C));
	assert_int_equal(sums[PAGE], 1);
	rbx_doubts_resolve(&doubts, sums, C, 0);
	assert_int_equal(sums[PAGE], 2);
}

static void who_has_a_write_that_is_not_the_truth_has_that(void **state)
{
	(void)state;
	rbx_doubts_have(&doubts, (uint32_t[]){ 2 }, PAGE, 1, ONLY(B));
	assert_int_equal(sums[PAGE], 1);
	rbx_doubts_have(&doubts, (uint32_t[]){ 3 }, PAGE, 1, ONLY(B));
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 3);
}

static void who_gets_a_later_write_is_in_no_doubt(void **state)
{
	(void)state;
	is_written(2, ONLY(B) | ONLY(C));
	is_written(3, ONLY(C));
	rbx_doubts_resolve(&doubts, sums, B, ONLY(C));
	assert_int_equal(sums[PAGE], 3);
	is_written(4, 0);
	assert_int_equal(doubts.count, 0);
}

static void only_pages_that_were_written_are_dropped(void **state)
{
	(void)state;
	rbx_doubts_missed(&doubts, sums, PAGE, 3, ONLY(B));
	rbx_doubts_drop(&doubts, PAGE + 1, 1);
	sums[PAGE] = sums[PAGE + 1] = sums[PAGE + 2] = 2;
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
	assert_int_equal(sums[PAGE + 1], 2);
	assert_int_equal(sums[PAGE + 2], 100 + PAGE + 2);
}

static void a_copy_decides_when_it_ends(void **state)
{
	(void)state;
	is_written(2, ONLY(A) | ONLY(B));
	rbx_doubts_copy_begin(&doubts, PAGE, 1);
	rbx_doubts_resolve(&doubts, sums, B, ONLY(A));
	assert_int_equal(sums[PAGE], 2);
	rbx_doubts_copy_end(&doubts, PAGE, 1, ONLY(A), false);
	rbx_doubts_resolve(&doubts, sums, B, ONLY(A));
	assert_int_equal(sums[PAGE], 1);
	rbx_doubts_resolve(&doubts, sums, A, 0);
	assert_int_equal(sums[PAGE], 2);
}

static void a_slot_with_another_replica_is_forgotten(void **state)
{
	(void)state;
	is_written(2, ONLY(B) | ONLY(C));
	rbx_doubts_forget(&doubts, B);
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 2);
}

/* When nobody has the page from before. */
static void page_from_before_yields_to_a_write_that_was_not_the_truth(void **state)
{
	(void)state;
	rbx_doubts_have(&doubts, (uint32_t[]){ 2 }, PAGE, 1, ONLY(B));
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE + 1, 1, 0, ONLY(B) | ONLY(C)));
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, ONLY(B) | ONLY(C)));
	assert_int_equal(sums[PAGE], 2);
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, ONLY(B) | ONLY(C)));
	rbx_doubts_resolve(&doubts, sums, B, ONLY(C));
	assert_int_equal(sums[PAGE], 2);
	rbx_doubts_resolve(&doubts, sums, C, 0);
	assert_int_equal(sums[PAGE], 1);
}

/* Others may have it, too, as an attempt before that failed may have been carried out. */
static void page_yields_though_the_slot_has_another_replica(void **state)
{
	(void)state;
	rbx_doubts_have(&doubts, (uint32_t[]){ 2 }, PAGE, 1, ONLY(B));
	rbx_doubts_forget(&doubts, B);
	rbx_doubts_have(&doubts, (uint32_t[]){ 3 }, PAGE + 1, 1, 0);
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 2, 0, ONLY(B)));
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 2, 0, ONLY(B)));
	assert_int_equal(sums[PAGE], 2);
	assert_int_equal(sums[PAGE + 1], 3);
}

/* Neither has anybody heard of. */
static void each_of_two_writes_that_failed_may_be_what_is_there(void **state)
{
	(void)state;
	rbx_doubts_have(&doubts, (uint32_t[]){ 2 }, PAGE, 1, 0);
	rbx_doubts_have(&doubts, (uint32_t[]){ 3 }, PAGE, 1, 0);
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, 0));
	assert_int_equal(sums[PAGE], 2);
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, 0));
	assert_int_equal(sums[PAGE], 3);
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, 0));
}

static void page_that_is_good_somewhere_yields_to_nothing(void **state)
{
	(void)state;
	rbx_doubts_have(&doubts, (uint32_t[]){ 2, 3 }, PAGE, 2, 0);
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 2, 1u << 1, 0));
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE, 2, 1u << 1, 0));
	assert_int_equal(sums[PAGE], 2);
	assert_int_equal(sums[PAGE + 1], 100 + PAGE + 1);
}

/* But who missed that write may have another one. */
static void page_that_all_have_yields_to_nothing(void **state)
{
	(void)state;
	rbx_doubts_have(&doubts, (uint32_t[]){ 2 }, PAGE, 1, ONLY(B));
	is_written(3, 0);
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, ONLY(B)));
	rbx_doubts_have(&doubts, (uint32_t[]){ 4 }, PAGE, 1, ONLY(B));
	is_written(5, ONLY(B));
	rbx_doubts_copy_begin(&doubts, PAGE, 1);
	rbx_doubts_copy_end(&doubts, PAGE, 1, 0, false);
	assert_true(rbx_doubts_are_later(&doubts));
	rbx_doubts_copy_begin(&doubts, PAGE, 1);
	rbx_doubts_copy_end(&doubts, PAGE, 1, ONLY(B), true);
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, ONLY(B)));
	assert_int_equal(sums[PAGE], 5);
}

/* An attempt that reached it was carried out, but the next one failed here. */
static void who_missed_a_write_may_have_it_all_the_same(void **state)
{
	(void)state;
	is_written(2, ONLY(B));
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, 0));
	assert_int_equal(sums[PAGE], 2);
	assert_false(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, 0));
	/* The next who looks begins anew. */
	rbx_doubts_look_end(&doubts, PAGE, 1);
	assert_true(rbx_doubts_yield(&doubts, sums, PAGE, 1, 0, 0));
	assert_int_equal(sums[PAGE], 1);
}

static void what_was_acknowledged_has_room_before_what_was_not(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * RBX_DOUBTS_MAX; i++)
		rbx_doubts_have(&doubts, (uint32_t[]){ 2 }, PAGE + 1, 1, 0);
	assert_int_equal(doubts.count, 1);
	for (uint32_t i = 0; i < RBX_DOUBTS_MAX; i++)
		rbx_doubts_have(&doubts, (uint32_t[]){ 3 + i }, PAGE + 1, 1, 0);
	assert_int_equal(doubts.count, RBX_DOUBTS_MAX);
	is_written(2, ONLY(B));
	rbx_doubts_have(&doubts, (uint32_t[]){ 999 }, PAGE + 1, 1, ONLY(C));
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
	rbx_doubts_resolve(&doubts, sums, C, 0);
	assert_int_equal(sums[PAGE + 1], 999);
}

/* Though somebody is known to have what was not. */
static void what_was_acknowledged_has_room_before_all(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RBX_DOUBTS_MAX; i++)
		rbx_doubts_have(&doubts, (uint32_t[]){ 3 }, PAGE + 1 + i, 1, ONLY(C));
	is_written(2, ONLY(B));
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
}

/* The first ones are kept. */
static void pages_beyond_the_bound_are_not_kept(void **state)
{
	uint32_t i;

	(void)state;
	rbx_doubts_missed(&doubts, sums, PAGE, RBX_DOUBTS_MAX + 1, ONLY(B));
	for (i = 0; i <= RBX_DOUBTS_MAX; i++)
		sums[PAGE + i] = 2;
	rbx_doubts_resolve(&doubts, sums, B, 0);
	assert_int_equal(sums[PAGE], 1);
	for (i = 1; i < RBX_DOUBTS_MAX; i++)
		assert_int_equal(sums[PAGE + i], 100 + PAGE + i);
	assert_int_equal(sums[PAGE + RBX_DOUBTS_MAX], 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_missed_it_has_the_page_before, begin),
		cmocka_unit_test_setup(
			who_missed_more_writes_has_the_page_before_the_first, begin),
		cmocka_unit_test_setup(others_have_what_was_the_truth_before, begin),
		cmocka_unit_test_setup(
			who_has_a_write_that_is_not_the_truth_has_that, begin),
		cmocka_unit_test_setup(who_gets_a_later_write_is_in_no_doubt, begin),
		cmocka_unit_test_setup(only_pages_that_were_written_are_dropped,
				       begin),
		cmocka_unit_test_setup(a_copy_decides_when_it_ends, begin),
		cmocka_unit_test_setup(a_slot_with_another_replica_is_forgotten,
				       begin),
		cmocka_unit_test_setup(
			page_from_before_yields_to_a_write_that_was_not_the_truth, begin),
		cmocka_unit_test_setup(page_yields_though_the_slot_has_another_replica,
				       begin),
		cmocka_unit_test_setup(
			each_of_two_writes_that_failed_may_be_what_is_there, begin),
		cmocka_unit_test_setup(
			page_that_is_good_somewhere_yields_to_nothing, begin),
		cmocka_unit_test_setup(
			page_that_all_have_yields_to_nothing, begin),
		cmocka_unit_test_setup(
			who_missed_a_write_may_have_it_all_the_same, begin),
		cmocka_unit_test_setup(
			what_was_acknowledged_has_room_before_what_was_not, begin),
		cmocka_unit_test_setup(what_was_acknowledged_has_room_before_all, begin),
		cmocka_unit_test_setup(pages_beyond_the_bound_are_not_kept, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
