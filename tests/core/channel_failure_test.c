/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_failure_test.c - a chain that fails: each request ends with its own
 * status, what is not at fault is sent again, and the window is empty at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "channel_small.h"

static struct small s;

static void channel_merged_failure_sends_members_again_alone(void **state)
{
	(void)state;
	small_setup(&s);
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_false(small_combine(&s));
	small_halt(&s);
	small_complete(&s, 0, -EFAULT);
	assert_null(s.harvest.done_first);
	assert_int_equal(small_count(s.harvest.again_first), 4);
	small_reopen(&s, s.harvest.again_first);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 4);

	/* The third is the one that is at fault, and only it says so. */
	small_complete(&s, 3, -EFAULT);
	assert_ptr_equal(s.harvest.done_first, &s.fragments[0]);
	assert_int_equal(s.fragments[1].status, 0);
	assert_int_equal(s.fragments[2].status, -EFAULT);
	assert_null(s.harvest.again_first);
	small_complete(&s, 4, -ECANCELED);
	assert_ptr_equal(s.harvest.again_first, &s.fragments[3]);
	small_expect_at_rest(&s);
}

/* Two neighbours, one alone, two neighbours, one alone; the lone one in the
 * middle fails. */
static void channel_failing_chain_gives_each_its_own_status(void **state)
{
	struct rbx_fragment *again;

	(void)state;
	small_setup(&s);
	for (int i = 2; i < 6; i++)
		s.fragments[i].remote_addr += (uint64_t)(i > 2) + 1;
	s.fragments[5].remote_addr++;
	assert_true(small_submit(&s, 0, 5));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 4);
	assert_false(small_combine(&s));
	small_halt(&s);

	small_complete(&s, 1, -EFAULT);
	assert_int_equal(small_count(s.harvest.done_first), 3);
	assert_int_equal(s.fragments[0].status, 0);
	assert_int_equal(s.fragments[1].status, 0);
	assert_int_equal(s.fragments[2].status, -EFAULT);
	assert_null(s.harvest.again_first);
	small_complete(&s, 2, -ECANCELED);
	assert_null(s.harvest.done_first);
	again = s.harvest.again_first;
	assert_int_equal(small_count(again), 2);
	small_complete(&s, 3, -ECANCELED);
	assert_int_equal(small_count(s.harvest.again_first), 1);
	s.fragments[4].node.next = &s.fragments[5].node;
	small_expect_at_rest(&s);

	/* Flushed is not failed: the neighbours share a work request again. */
	small_reopen(&s, again);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
	assert_int_equal(s.works[4].member_count, 2);
	small_complete(&s, 5, 0);
	assert_int_equal(small_count(s.harvest.done_first), 3);
	for (int i = 3; i < 6; i++)
		assert_int_equal(s.fragments[i].status, 0);
	small_expect_at_rest(&s);
}

/* A connection that breaks and breaks, and nobody is at fault. */
static void channel_flushed_is_sent_again_a_bounded_number_of_times(void **state)
{
	uint32_t tries = 0;

	(void)state;
	small_setup(&s);
	s.fragments[0].flags = RBX_FRAGMENT_ALONE;
	assert_true(small_submit(&s, 0, 0));
	for (;;) {
		assert_true(small_combine(&s));
		assert_false(small_combine(&s));
		small_halt(&s);
		small_complete(&s, tries++, -ECANCELED);
		if (s.harvest.done_first)
			break;
		small_reopen(&s, s.harvest.again_first);
	}
	assert_int_equal(tries, RBX_RETRIES_MAX + 1);
	assert_int_equal(s.fragments[0].status, -EHOSTUNREACH);
	small_expect_at_rest(&s);
}

/* A peer that answers to a greeting and to nothing else: all of its requests end
 * after as many tries, not one after the other. */
static void channel_timeouts_are_not_blamed_on_one(void **state)
{
	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	assert_true(small_submit(&s, 0, 1));
	for (uint32_t i = 0; i <= RBX_RETRIES_MAX; i++) {
		struct rbx_fragment *again;

		assert_true(small_combine(&s));
		assert_false(small_combine(&s));
		small_halt(&s);
		small_complete(&s, 2 * i, -ETIMEDOUT);
		again = s.harvest.again_first;
		small_complete(&s, 2 * i + 1, -ECANCELED);
		if (again) {
			again->node.next = &s.harvest.again_first->node;
			small_reopen(&s, again);
		}
	}
	assert_int_equal(s.fragments[0].status, -ETIMEDOUT);
	assert_int_equal(s.fragments[1].status, -EHOSTUNREACH);
	small_expect_at_rest(&s);
}

static void channel_not_posted_gives_everything_back(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	small_submit(&s, 0, 3);
	assert_true(small_combine(&s));
	rbx_channel_not_posted(&s.channel, &s.chain, 3, &harvest);
	assert_int_equal(harvest.work_requests, 3);
	assert_ptr_equal(harvest.again_first, &s.fragments[1]);
	assert_int_equal(rbx_send_ring_used(&s.channel.rings[0]), 1);
	rbx_window_give(&s.window, harvest.work_requests, harvest.bytes);
	small_complete(&s, 0, 0);
	small_expect_at_rest(&s);
}

/* The first has completed, without a signal; the device is silent ever after. */
static void channel_abandoned_is_sent_again_and_never_done(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	small_submit(&s, 0, 3);
	assert_true(small_combine(&s));
	small_complete(&s, 0, 0);
	small_halt(&s);
	rbx_channel_abandon(&s.channel, 0, &harvest);
	assert_null(harvest.done_first);
	assert_ptr_equal(harvest.again_first, &s.fragments[1]);
	assert_int_equal(small_count(harvest.again_first), 3);
	assert_int_equal(harvest.work_requests, 3);
	rbx_harvest_settle(&harvest, &s.window, 1);
	small_expect_at_rest(&s);
	/* Nothing is left to reap twice. */
	harvest = (struct rbx_harvest){ 0 };
	rbx_channel_abandon(&s.channel, 0, &harvest);
	assert_int_equal(harvest.work_requests, 0);
}

/* After a repair nobody is at fault: who is flushed then is sent again as often as
 * one that is alone to blame, not as often as one beside others that fail. */
static void channel_reopened_forgets_who_failed_before(void **state)
{
	uint32_t tries;

	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	assert_true(small_submit(&s, 0, 1));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	small_halt(&s);
	small_complete(&s, 0, -EFAULT);
	small_complete(&s, 1, -ECANCELED);
	assert_int_equal(s.fragments[1].flushes_count, 1);
	assert_int_equal(s.fragments[1].retries_count, 0);
	for (tries = 0; !s.harvest.done_first; tries++) {
		small_reopen(&s, s.harvest.again_first);
		assert_true(small_combine(&s));
		assert_false(small_combine(&s));
		small_halt(&s);
		small_complete(&s, 2 + tries, -ECANCELED);
	}
	assert_int_equal(tries, RBX_RETRIES_MAX + 1);
	assert_int_equal(s.fragments[1].flushes_count, 1);
	assert_int_equal(s.fragments[1].status, -EHOSTUNREACH);
	small_expect_at_rest(&s);
}

/* What a class of failure makes of a fragment that is alone. */
static void channel_lone_failure_is_tried_again_if_it_may_pass(void **state)
{
	static const struct {
		int32_t status, end;
		bool again, blames; /* others that are flushed */
	} table[] = {
		{ -EFAULT, -EFAULT, false, true },
		{ -EACCES, -EACCES, false, true },
		{ -EIO, -EIO, true, true },
		{ -EREMOTEIO, -EREMOTEIO, true, true },
		{ -ETIMEDOUT, -ETIMEDOUT, true, false },
		{ -EHOSTUNREACH, -EHOSTUNREACH, true, false },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint32_t tries;

		small_setup(&s);
		assert_true(small_submit(&s, 0, 0));
		for (tries = 1;; tries++) {
			assert_true(small_combine(&s));
			assert_false(small_combine(&s));
			small_halt(&s);
			small_complete(&s, tries - 1, table[i].status);
			assert_int_equal(s.channel.failed, table[i].blames);
			if (s.harvest.done_first)
				break;
			small_reopen(&s, s.harvest.again_first);
			assert_int_equal(s.channel.failed, 0);
		}
		assert_int_equal(tries, table[i].again ? RBX_RETRIES_MAX + 1 : 1);
		assert_int_equal(s.fragments[0].status, table[i].end);
		small_expect_at_rest(&s);
	}
}

/* Fragment 0 may be sent again, 1 may not, 2 waits. */
static void no_resend_setup(void)
{
	small_setup(&s);
	s.planner.chain_max = 2;
	for (int i = 0; i < 3; i++)
		s.fragments[i].flags = RBX_FRAGMENT_ALONE;
	s.fragments[1].flags |= RBX_FRAGMENT_NO_RESEND;
	rbx_window_init(&s.window, 0, 2);
	assert_true(small_submit(&s, 0, 2));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
}

static void channel_no_resend_ends_with_its_connection(void **state)
{
	(void)state;
	no_resend_setup();
	assert_false(small_combine(&s));
	small_halt(&s);
	small_complete(&s, 0, -ETIMEDOUT);
	assert_ptr_equal(s.harvest.again_first, &s.fragments[0]);
	small_complete(&s, 1, -ECANCELED);
	assert_null(s.harvest.again_first);
	assert_ptr_equal(s.harvest.done_first, &s.fragments[1]);
	assert_int_equal(s.fragments[1].status, -EHOSTUNREACH);
	/* What only waited is sent all the same. */
	small_reopen(&s, &s.fragments[0]);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
}

static void channel_no_resend_that_was_never_posted_is_sent(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	no_resend_setup();
	rbx_channel_not_posted(&s.channel, &s.chain, 2, &harvest);
	assert_null(harvest.done_first);
	assert_int_equal(small_count(harvest.again_first), 2);
}

/* Three messages: the device has taken none of the first two; the third waited. */
static void channel_ordered_that_is_sent_again_goes_first(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	no_resend_setup();
	for (int i = 0; i < 3; i++) {
		s.fragments[i].direction = RBX_DIRECTION_ORDERED;
		s.fragments[i].flags = RBX_FRAGMENT_ORDERED_FLAGS;
	}
	s.works[0].direction = s.works[1].direction = RBX_DIRECTION_ORDERED;
	rbx_channel_not_posted(&s.channel, &s.chain, 2, &harvest);
	rbx_window_give(&s.window, harvest.work_requests, harvest.bytes);
	small_halt(&s);
	/* The third stands in its line by now. */
	assert_false(small_combine(&s));
	small_reopen(&s, harvest.again_first);
	assert_true(small_combine(&s));
	assert_ptr_equal(s.works[s.chain.first_number].first, &s.fragments[0]);
	assert_ptr_equal(s.works[s.chain.first_number + 1].first,
			 &s.fragments[1]);
}

/* A message names no key, so its failure says nothing of one; 0 is a key too. */
static void channel_ordered_that_is_refused_ends_no_key(void **state)
{
	(void)state;
	no_resend_setup();
	s.works[0].direction = RBX_DIRECTION_ORDERED;
	s.fragments[0].flags = RBX_FRAGMENT_ORDERED_FLAGS;
	small_halt(&s);
	small_complete(&s, 0, -EACCES);
	assert_int_equal(s.fragments[0].status, -EACCES);
	assert_false(rbx_channel_key_has_ended(&s.channel, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			channel_merged_failure_sends_members_again_alone),
		cmocka_unit_test(
			channel_failing_chain_gives_each_its_own_status),
		cmocka_unit_test(
			channel_flushed_is_sent_again_a_bounded_number_of_times),
		cmocka_unit_test(channel_timeouts_are_not_blamed_on_one),
		cmocka_unit_test(channel_reopened_forgets_who_failed_before),
		cmocka_unit_test(
			channel_lone_failure_is_tried_again_if_it_may_pass),
		cmocka_unit_test(channel_not_posted_gives_everything_back),
		cmocka_unit_test(channel_no_resend_ends_with_its_connection),
		cmocka_unit_test(
			channel_no_resend_that_was_never_posted_is_sent),
		cmocka_unit_test(channel_ordered_that_is_sent_again_goes_first),
		cmocka_unit_test(channel_ordered_that_is_refused_ends_no_key),
		cmocka_unit_test(channel_abandoned_is_sent_again_and_never_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
