/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_ended_key_test.c - a key of remote memory that was taken back: all that is
 * sent with it ends, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/core/channel_small.h"

static struct small s;

/* Two of a key that is taken back are merged, one is behind them, one waits, and one
 * is of another key: the connection breaks once. */
static void channel_key_that_ended_ends_all_that_is_sent_with_it(void **state)
{
	struct rbx_fragment *again;

	(void)state;
	small_setup(&s);
	for (int i = 0; i < 6; i++)
		s.fragments[i].rkey = i == 3 || i == 5 ? 8 : 7;
	s.fragments[2].remote_addr += 1;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 3);
	assert_false(small_combine(&s));
	small_halt(&s);
	small_complete(&s, 0, -EACCES);
	assert_int_equal(small_count(s.harvest.done_first), 2);
	assert_int_equal(s.fragments[0].status, -EACCES);
	assert_int_equal(s.fragments[1].status, -EACCES);
	assert_null(s.harvest.again_first);
	small_complete(&s, 1, -ECANCELED);
	assert_ptr_equal(s.harvest.done_first, &s.fragments[2]);
	assert_int_equal(s.fragments[2].status, -EACCES);
	small_complete(&s, 2, -ECANCELED);
	again = s.harvest.again_first;
	assert_ptr_equal(again, &s.fragments[3]);
	assert_true(rbx_channel_seize(&s.channel));
	(void)small_submit(&s, 4, 5);
	again = rbx_channel_send_again(&s.channel, again);
	assert_ptr_equal(again, &s.fragments[4]);
	assert_int_equal(again->status, -EACCES);
	assert_null(rbx_fragment_next(again));
	rbx_channel_set_state(&s.channel, RBX_CHANNEL_OPEN);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
	small_complete(&s, 4, 0);
	assert_int_equal(small_count(s.harvest.done_first), 2);
	small_expect_at_rest(&s);
	/* The key may be lent anew. */
	assert_false(rbx_channel_key_has_ended(&s.channel, 7));
}

/* What was flushed before it was known, on another queue pair, does not go out. */
static void channel_flushed_before_its_key_is_known_to_have_ended(void **state)
{
	struct rbx_fragment *again;

	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	assert_true(small_submit(&s, 0, 1));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	small_halt(&s);
	small_complete(&s, 0, -ECANCELED);
	again = s.harvest.again_first;
	assert_ptr_equal(again, &s.fragments[0]);
	small_complete(&s, 1, -EACCES);
	assert_true(rbx_channel_seize(&s.channel));
	assert_ptr_equal(rbx_channel_send_again(&s.channel, again), again);
	assert_int_equal(again->status, -EACCES);
	rbx_channel_set_state(&s.channel, RBX_CHANNEL_OPEN);
	assert_false(small_combine(&s));
	small_expect_at_rest(&s);
}

/* Page 0 is under way, then a fence whose fragment goes, then page 2, which has to wait. */
static struct rbx_fragment *fence_waits_behind_page_0(void)
{
	small_setup(&s);
	s.fragments[1].flags = RBX_FRAGMENT_FENCE;
	s.fragments[1].rkey = 7;
	assert_true(small_submit(&s, 0, 2));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_false(small_combine(&s));
	small_halt(&s);
	small_complete(&s, 0, -ECANCELED);
	assert_ptr_equal(s.harvest.again_first, &s.fragments[0]);
	assert_true(rbx_channel_seize(&s.channel));
	return s.harvest.again_first;
}

static void page_2_goes_after_page_0(void)
{
	rbx_channel_set_state(&s.channel, RBX_CHANNEL_OPEN);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_false(small_combine(&s));
	small_complete(&s, 1, 0);
	assert_ptr_equal(s.harvest.done_first, &s.fragments[0]);
	assert_true(small_combine(&s));
	small_complete(&s, 2, 0);
	assert_ptr_equal(s.harvest.done_first, &s.fragments[2]);
	assert_false(small_combine(&s));
	small_expect_at_rest(&s);
}

static void channel_fence_whose_key_ended_holds_back_what_follows(void **state)
{
	struct rbx_fragment *ended, *again = fence_waits_behind_page_0();

	(void)state;
	rbx_channel_key_ended(&s.channel, 7);
	ended = rbx_channel_send_again(&s.channel, again);
	assert_ptr_equal(ended, &s.fragments[1]);
	assert_null(rbx_fragment_next(ended));
	page_2_goes_after_page_0();
}

static bool waits_without_fence(const struct rbx_fragment *fragment)
{
	return fragment != &s.fragments[1];
}

static void channel_fence_that_is_withdrawn_holds_back_what_follows(void **state)
{
	struct rbx_fragment *gone, *again = fence_waits_behind_page_0();

	(void)state;
	gone = rbx_channel_withdraw(&s.channel, &again, waits_without_fence);
	assert_ptr_equal(gone, &s.fragments[1]);
	assert_null(rbx_fragment_next(gone));
	assert_null(rbx_channel_send_again(&s.channel, again));
	page_2_goes_after_page_0();
}

/* More than there is room for: each of these costs a repair, and none is lost. */
static void channel_keys_that_ended_are_bounded(void **state)
{
	uint32_t key;

	(void)state;
	small_setup(&s);
	for (key = 0; key < 2 * RBX_ENDED_KEYS_MAX; key++) {
		rbx_channel_key_ended(&s.channel, key / 2);
		assert_true(rbx_channel_key_has_ended(&s.channel, key / 2));
	}
	rbx_channel_key_ended(&s.channel, 99);
	assert_false(rbx_channel_key_has_ended(&s.channel, 99));
	assert_false(rbx_channel_key_has_ended(&s.channel, RBX_ENDED_KEYS_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			channel_key_that_ended_ends_all_that_is_sent_with_it),
		cmocka_unit_test(
			channel_flushed_before_its_key_is_known_to_have_ended),
		cmocka_unit_test(channel_keys_that_ended_are_bounded),
		cmocka_unit_test(
			channel_fence_whose_key_ended_holds_back_what_follows),
		cmocka_unit_test(
			channel_fence_that_is_withdrawn_holds_back_what_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
