/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_test.c - combining, the window, fences and the end, step by step. What
 * failures mean is in channel_failure_test.c, the whole way of random fragments
 * in channel_model_test.c, threads in channel_threads_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "channel_small.h"

static struct small s;

static void channel_lone_request_leaves_at_once(void **state)
{
	(void)state;
	small_setup(&s);
	assert_true(small_submit(&s, 3, 3));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_ptr_equal(s.works[0].first, &s.fragments[3]);
	assert_false(small_combine(&s));
	small_complete(&s, 0, 0);
	assert_ptr_equal(s.harvest.done_first, &s.fragments[3]);
	small_expect_at_rest(&s);
}

/* The original merged into the first work request of a chain alone. */
static void channel_every_work_request_of_a_chain_merges(void **state)
{
	(void)state;
	small_setup(&s);
	for (int i = 0; i < SMALL_FRAGMENTS; i++) {
		s.fragments[i].direction = RBX_DIRECTION_READ;
		s.fragments[i].length_bytes = (uint32_t)(i + 1) * 1000;
		s.fragments[i].remote_addr =
			i % 3 ? s.fragments[i - 1].remote_addr + i * 1000u :
				(uint64_t)i << 20;
	}
	assert_true(small_submit(&s, 0, 7));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(s.works[i].first, &s.fragments[3 * i]);
		assert_int_equal(s.works[i].member_count, i < 2 ? 3 : 2);
	}
}

/* The original took credit once for a batch and gave it for each completion. */
static void channel_credit_is_of_each_work_request(void **state)
{
	(void)state;
	small_setup(&s);
	for (int i = 0; i < 4; i++)
		s.fragments[i].flags = RBX_FRAGMENT_ALONE;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_int_equal(rbx_window_in_flight_work_requests(&s.window), 4);
	assert_int_equal(rbx_window_in_flight_bytes(&s.window),
			 4 * RBX_PAGE_BYTES);
	assert_false(small_combine(&s));
	small_complete(&s, 3, 0); /* one completion for the four of them */
	assert_int_equal(small_count(s.harvest.done_first), 4);
	small_expect_at_rest(&s);
}

/* The original lost credit where it found its queue empty. */
static void channel_empty_queue_takes_no_credit(void **state)
{
	(void)state;
	small_setup(&s);
	for (int i = 0; i < 3; i++) {
		assert_true(rbx_channel_seize(&s.channel));
		assert_false(small_combine(&s));
		small_expect_at_rest(&s);
	}
	assert_true(small_submit(&s, 0, 0));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	small_complete(&s, 0, 0);
	small_expect_at_rest(&s);
}

static void channel_closed_window_parks_and_credit_reopens(void **state)
{
	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	rbx_window_init(&s.window, 2 * RBX_PAGE_BYTES,
			0);
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
	assert_false(small_combine(&s));
	assert_false(small_submit(&s, 4, 4)); /* parked, not idle */
	small_complete(&s, 1, 0);
	assert_true(rbx_channel_unpark(&s.channel));
	assert_false(rbx_channel_unpark(&s.channel));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
}

static void channel_used_up_staging_gives_credit_back(void **state)
{
	static struct rbx_staging staging;
	static uint8_t memory[RBX_PAGE_BYTES];

	(void)state;
	small_setup(&s);
	rbx_staging_init(&staging, memory, 1);
	s.planner.has_any_lkey = false;
	s.planner.staging = &staging;
	s.fragments[0].direction = RBX_DIRECTION_READ;
	s.fragments[0].local_addr = (uintptr_t)memory;
	for (unsigned int i = 0; i < RBX_STAGING_WORDS; i++)
		rbx_staging_take(&staging, RBX_STAGING_RUN_BYTES);
	assert_true(small_submit(&s, 0, 0));
	assert_false(small_combine(&s));
	small_expect_at_rest(&s);
	rbx_staging_give(&staging, 0, RBX_STAGING_RUN_BYTES);
	assert_true(rbx_channel_unpark(&s.channel));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_int_equal(s.works[0].sges[0].lkey, 1);
	assert_int_equal(rbx_window_in_flight_work_requests(&s.window), 1);
}

static void channel_closed_window_collects_neighbours(void **state)
{
	static const int order[] = { 4, 2, 7, 1, 6, 3, 5 };

	(void)state;
	small_setup(&s);
	rbx_window_init(&s.window, 0, 1);
	assert_true(small_submit(&s, 0, 0));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	for (int i = 0; i < 7; i++)
		(void)small_submit(&s, order[i], order[i]);
	small_complete(&s, 0, 0);
	(void)rbx_channel_seize(&s.channel);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_int_equal(s.works[1].member_count, 7);
}

/* What arrives last is posted first once there is credit again. */
static void channel_reopened_window_lets_urgent_go_first(void **state)
{
	(void)state;
	small_setup(&s);
	s.planner.chain_max = 1;
	rbx_window_init(&s.window, 0, 1);
	for (int i = 0; i < 6; i++)
		s.fragments[i].flags = RBX_FRAGMENT_ALONE;
	s.fragments[6].flags = RBX_FRAGMENT_URGENT;
	assert_true(small_submit(&s, 0, 5));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	assert_false(small_submit(&s, 6, 6));
	small_complete(&s, 0, 0);
	assert_true(rbx_channel_unpark(&s.channel));
	assert_true(small_combine(&s));
	assert_ptr_equal(s.works[1].first, &s.fragments[6]);
}

static void channel_fence_waits_for_all_before(void **state)
{
	(void)state;
	small_setup(&s);
	s.fragments[1].flags = RBX_FRAGMENT_FENCE;
	assert_true(small_submit(&s, 0, 2));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_int_equal(s.works[0].member_count, 1);
	assert_false(small_combine(&s));
	small_complete(&s, 0, 0);
	assert_true(rbx_channel_unpark(&s.channel));
	assert_true(small_combine(&s));
	assert_int_equal(s.works[1].member_count, 2);
}

/* Else a window that one chain can fill leaves all queue pairs but one idle. */
static void channel_chains_share_the_window_among_the_queue_pairs(void **state)
{
	static struct rbx_work second[SMALL_DEPTH];

	(void)state;
	small_setup(&s);
	rbx_window_init(&s.window, SMALL_FRAGMENTS * RBX_PAGE_BYTES, 0);
	rbx_channel_add_ring(&s.channel, second, SMALL_DEPTH);
	for (int i = 0; i < SMALL_FRAGMENTS; i++)
		s.fragments[i].flags = RBX_FRAGMENT_ALONE;
	assert_true(small_submit(&s, 0, SMALL_FRAGMENTS - 1));
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(small_combine(&s));
		assert_int_equal(s.chain.ring_index, i);
		assert_int_equal(s.chain.work_count, SMALL_FRAGMENTS / 2);
	}
	assert_false(small_combine(&s));
}

/* In turns alone a long chain and a short one, again and again, gave one queue pair
 * all the work. */
static void channel_chain_goes_where_least_is_posted(void **state)
{
	static struct rbx_work second[SMALL_DEPTH];
	static const struct {
		int from, to;
		uint32_t ring_index;
	} chains[] = { { 0, 2, 0 }, { 3, 3, 1 }, { 4, 6, 1 }, { 7, 7, 0 } };

	(void)state;
	small_setup(&s);
	rbx_channel_add_ring(&s.channel, second, SMALL_DEPTH);
	for (int i = 0; i < SMALL_FRAGMENTS; i++)
		s.fragments[i].flags = RBX_FRAGMENT_ALONE;
	for (int i = 0; i < 4; i++) {
		assert_true(small_submit(&s, chains[i].from, chains[i].to));
		assert_true(small_combine(&s));
		assert_int_equal(s.chain.ring_index, chains[i].ring_index);
		assert_false(small_combine(&s));
	}
}

/* A window that is smaller than a work request lets one through all the same, and so
 * does a share of nothing. */
static void channel_chain_has_one_work_request_at_least(void **state)
{
	static struct rbx_work second[SMALL_DEPTH];

	(void)state;
	small_setup(&s);
	rbx_window_init(&s.window, 1, 0);
	rbx_channel_add_ring(&s.channel, second, SMALL_DEPTH);
	assert_true(small_submit(&s, 0, 0));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 1);
	assert_false(small_combine(&s));
}

/* The original ended reads of what is gone with success and without data. */
static void channel_dead_refuses_all(void **state)
{
	(void)state;
	small_setup(&s);
	rbx_channel_set_state(&s.channel, RBX_CHANNEL_DEAD);
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 0);
	assert_int_equal(small_count(s.chain.refused), 4);
	assert_false(small_combine(&s));
	small_expect_at_rest(&s);
}

/* A queue pair that was made anew came out less deep, and the next one deeper. */
static void channel_posts_no_more_than_the_queue_pair_holds(void **state)
{
	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	rbx_channel_set_depth(&s.channel, 0, 3);
	assert_true(small_submit(&s, 0, 4));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 2);
	assert_false(small_combine(&s));
	small_complete(&s, 1, 0);
	rbx_channel_set_depth(&s.channel, 0, SMALL_DEPTH);
	assert_true(rbx_channel_unpark(&s.channel));
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 3);
	assert_false(small_combine(&s));
	small_complete(&s, 4, 0);
	small_expect_at_rest(&s);
}

/* What it leaves of its turn it does not keep while others wait. */
static void channel_turn_is_over_with_its_last_request(void **state)
{
	(void)state;
	small_setup(&s);
	s.channel.turn_bytes = RBX_TURN_BYTES;
	assert_true(small_submit(&s, 0, 0));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	/* It is under way, and another one waits. */
	RBX_FETCH_ADD(&s.window.turns.waiting_count, 1);
	assert_true(small_submit(&s, 1, 1));
	assert_false(small_combine(&s));
	assert_int_equal(s.channel.parked, RBX_PARKED_TURN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel_posts_no_more_than_the_queue_pair_holds),
		cmocka_unit_test(channel_lone_request_leaves_at_once),
		cmocka_unit_test(channel_turn_is_over_with_its_last_request),
		cmocka_unit_test(channel_every_work_request_of_a_chain_merges),
		cmocka_unit_test(channel_credit_is_of_each_work_request),
		cmocka_unit_test(channel_empty_queue_takes_no_credit),
		cmocka_unit_test(channel_closed_window_parks_and_credit_reopens),
		cmocka_unit_test(channel_used_up_staging_gives_credit_back),
		cmocka_unit_test(channel_closed_window_collects_neighbours),
		cmocka_unit_test(channel_reopened_window_lets_urgent_go_first),
		cmocka_unit_test(channel_fence_waits_for_all_before),
		cmocka_unit_test(
			channel_chains_share_the_window_among_the_queue_pairs),
		cmocka_unit_test(channel_chain_goes_where_least_is_posted),
		cmocka_unit_test(channel_chain_has_one_work_request_at_least),
		cmocka_unit_test(channel_dead_refuses_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
