/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* recovery_test.c - what a break, and each step after it, mean for the fragments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/recovery.h"
#include "tests/core/channel_small.h"

#define MS 1000000ull
#define TIMEOUT (1000 * MS)

static struct small s;
static struct rbx_recovery recovery;
static uint64_t at_ns;

static int setup(void **state)
{
	(void)state;
	small_setup(&s);
	memset(&recovery, 0, sizeof(recovery));
	rbx_recovery_init(&recovery, &s.channel, TIMEOUT);
	assert_false(rbx_recovery_opened(&recovery, UINT64_MAX, 0));
	return 0;
}

/* But looks for stalls, which have tests of their own. */
static enum rbx_recovery_step step_at(uint64_t now_ns)
{
	enum rbx_recovery_step step =
		rbx_recovery_next(&recovery, now_ns, &at_ns);

	if (step == RBX_RECOVERY_LOOK)
		step = rbx_recovery_next(&recovery, now_ns, &at_ns);
	return step;
}

static bool broken_at(uint64_t now_ns)
{
	bool is_new = rbx_recovery_broken(&recovery);

	if (is_new)
		rbx_recovery_begin(&recovery, now_ns, 0, false, now_ns);
	return is_new;
}

/* Posts fragments 0 to 3, whose work request fails for a broken connection. */
static void post_and_break(void)
{
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	assert_true(broken_at(1));
	small_complete(&s, s.chain.first_number + s.chain.work_count - 1,
		       -ECANCELED);
	rbx_recovery_keep(&recovery, &s.harvest);
	assert_null(s.harvest.again_first);
}

static void drain(uint64_t now_ns)
{
	assert_int_equal(step_at(now_ns), RBX_RECOVERY_DRAIN);
	assert_true(rbx_channel_seize(&s.channel));
	rbx_recovery_drained(&recovery, now_ns);
}

static void all_well_looks_for_stalls_in_half_of_the_timeout(void **state)
{
	const uint64_t interval_ns = TIMEOUT / 2 / RBX_STALL_LOOKS;
	uint64_t now_ns = 5;

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(rbx_recovery_next(&recovery, now_ns, &at_ns),
				 RBX_RECOVERY_LOOK);
		assert_int_equal(rbx_recovery_next(&recovery, now_ns, &at_ns),
				 RBX_RECOVERY_WAIT);
		assert_int_equal(at_ns, now_ns + interval_ns);
		assert_int_equal(rbx_recovery_next(&recovery, at_ns - 1, &at_ns),
				 RBX_RECOVERY_WAIT);
		/* However late it comes, it is one. */
		now_ns = at_ns + (uint64_t)i * TIMEOUT;
	}
}

static void nobody_looks_for_stalls_but_while_all_is_well(void **state)
{
	(void)state;
	assert_true(broken_at(1));
	assert_int_equal(rbx_recovery_next(&recovery, 2, &at_ns),
			 RBX_RECOVERY_DRAIN);
	assert_false(rbx_recovery_stands_still(&recovery, 1));
	setup(NULL);
	rbx_recovery_close(&recovery);
	assert_int_equal(rbx_recovery_next(&recovery, 2, &at_ns),
			 RBX_RECOVERY_WAIT);
	assert_true(at_ns == UINT64_MAX);
}

static void break_is_news_once_and_halts(void **state)
{
	(void)state;
	assert_true(broken_at(1));
	assert_false(broken_at(2));
	assert_int_equal(s.channel.state, RBX_CHANNEL_HALTED);
	assert_true(small_submit(&s, 0, 0));
	assert_false(small_combine(&s)); /* nothing is posted */
}

static void break_while_it_was_opened_is_told_then(void **state)
{
	(void)state;
	memset(&recovery, 0, sizeof(recovery));
	rbx_recovery_init(&recovery, &s.channel, TIMEOUT);
	assert_false(broken_at(1));
	assert_true(rbx_recovery_opened(&recovery, UINT64_MAX, 2));
	assert_true(broken_at(3));
}

static void drain_has_its_time_and_so_has_a_try(void **state)
{
	(void)state;
	assert_true(broken_at(100));
	assert_int_equal(step_at(100), RBX_RECOVERY_DRAIN);
	assert_int_equal(at_ns, 100 + TIMEOUT / 8);
	assert_int_equal(step_at(100 + TIMEOUT), RBX_RECOVERY_DRAIN);
	assert_int_equal(at_ns, 100 + TIMEOUT / 8);
	drain(200);
	assert_int_equal(step_at(300), RBX_RECOVERY_RESUME);
	assert_int_equal(at_ns, rbx_peer_state_try_ends_ns(&recovery.state, 300));
	assert_in_range(at_ns, 301, 300 + TIMEOUT / 4);
}

static void resumed_sends_again_what_was_kept(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	post_and_break();
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_true(rbx_recovery_resumed(&recovery, 0, 4, &ended, &again));
	assert_null(ended);
	assert_false(again);
	assert_int_equal(s.channel.counters.retries, 4);
	assert_int_equal(s.channel.state, RBX_CHANNEL_OPEN);
	assert_true(small_combine(&s));
	assert_true(s.chain.work_count > 0);
	assert_int_equal(step_at(5), RBX_RECOVERY_WAIT);
}

static void what_comes_back_later_is_kept_besides(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(small_submit(&s, i, i));
		assert_true(small_combine(&s));
		assert_false(small_combine(&s));
	}
	assert_true(broken_at(1));
	for (uint32_t number = 0; number < 2; number++) {
		small_complete(&s, number, -ECANCELED);
		rbx_recovery_keep(&recovery, &s.harvest);
	}
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_true(rbx_recovery_resumed(&recovery, 0, 4, &ended, &again));
	assert_int_equal(s.channel.counters.retries, 2);
}

static void nothing_is_kept_twice(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	post_and_break();
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_true(rbx_recovery_resumed(&recovery, 0, 4, &ended, &again));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	small_complete(&s, s.chain.first_number + s.chain.work_count - 1, 0);
	assert_int_equal(small_count(s.harvest.done_first), 4);
	assert_true(broken_at(5));
	drain(6);
	assert_int_equal(step_at(6), RBX_RECOVERY_RESUME);
	assert_true(rbx_recovery_resumed(&recovery, 0, 7, &ended, &again));
	assert_int_equal(s.channel.counters.retries, 4);
	assert_false(small_combine(&s));
	small_expect_at_rest(&s);
}

static void break_during_a_try_is_told_after_it(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	assert_true(broken_at(1));
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_false(broken_at(4)); /* of the new connection */
	assert_true(rbx_recovery_resumed(&recovery, 0, 5, &ended, &again));
	assert_true(again);
	assert_true(broken_at(6));
}

static void try_that_fails_pauses_then_tries_again(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	assert_true(broken_at(1));
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_false(rbx_recovery_resumed(&recovery, -ETIMEDOUT, 4, &ended,
					  &again));
	assert_int_equal(s.channel.state, RBX_CHANNEL_HALTED);
	assert_int_equal(step_at(5), RBX_RECOVERY_WAIT);
	assert_true(at_ns > 5 && at_ns < TIMEOUT);
	assert_int_equal(step_at(at_ns), RBX_RECOVERY_RESUME);
}

static void try_that_nobody_begins_in_time_is_its_last(void **state)
{
	uint64_t by_ns;

	(void)state;
	post_and_break();
	assert_int_equal(rbx_recovery_try_by_ns(&recovery), UINT64_MAX);
	assert_int_equal(step_at(2), RBX_RECOVERY_DRAIN);
	rbx_recovery_drained(&recovery, 2);
	by_ns = rbx_recovery_try_by_ns(&recovery);
	assert_in_range(by_ns, 1, 3 * TIMEOUT / 4 + 1);
	/* However late it is, it is made if somebody is there. */
	assert_int_equal(step_at(by_ns), RBX_RECOVERY_RESUME);
	rbx_recovery_missed(&recovery, by_ns);
	assert_int_equal(step_at(by_ns), RBX_RECOVERY_GIVE_UP);
	assert_null(rbx_recovery_given_up(&recovery));
	assert_int_equal(rbx_recovery_try_by_ns(&recovery), UINT64_MAX);
}

static void server_that_is_gone_is_given_up_and_refuses(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	post_and_break();
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_false(rbx_recovery_resumed(&recovery, -ESTALE, 4, &ended,
					  &again));
	assert_int_equal(step_at(5), RBX_RECOVERY_GIVE_UP);
	assert_null(rbx_recovery_given_up(&recovery));
	assert_int_equal(s.channel.state, RBX_CHANNEL_DEAD);
	assert_true(small_combine(&s));
	assert_int_equal(s.chain.work_count, 0);
	assert_int_equal(small_count(s.chain.refused), 4);
	assert_int_equal(step_at(6), RBX_RECOVERY_WAIT);
	assert_true(at_ns == UINT64_MAX);
}

/* ---- The owner is asked ----------------------------------------------------------*/

static bool waits_for_page_2(const struct rbx_fragment *fragment)
{
	return fragment->remote_addr == 2 * RBX_PAGE_BYTES;
}

static void owner_lets_go_what_is_elsewhere(void **state)
{
	const uint64_t half_ns = 10 * TIMEOUT;
	struct rbx_fragment *gone;
	uint64_t now_ns = 1;
	bool again;

	(void)state;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	assert_true(rbx_recovery_broken(&recovery));
	rbx_recovery_begin(&recovery, now_ns, half_ns, true, now_ns);
	small_complete(&s, s.chain.first_number + s.chain.work_count - 1,
		       -ECANCELED);
	rbx_recovery_keep(&recovery, &s.harvest);
	drain(2);
	assert_int_equal(step_at(TIMEOUT), RBX_RECOVERY_RESUME);
	assert_false(rbx_recovery_resumed(&recovery, -ETIMEDOUT, TIMEOUT, &gone,
					  &again));
	assert_int_equal(step_at(TIMEOUT), RBX_RECOVERY_ASK);
	gone = rbx_recovery_withdraw(&recovery, waits_for_page_2);
	assert_int_equal(small_count(gone), 3);
	assert_int_equal(small_count(recovery.again_first), 1);
	assert_ptr_equal(recovery.again_first, recovery.again_last);
	rbx_recovery_asked(&recovery, true, TIMEOUT);
	assert_int_equal(step_at(2 * TIMEOUT), RBX_RECOVERY_RESUME);
}

static bool all_wait(const struct rbx_fragment *fragment)
{
	(void)fragment;
	return true;
}

/* It is neither posted nor ended when the owner is asked; nor does it vanish, if its
 * key has ended. */
static void nothing_that_waits_on_vanishes(void **state)
{
	struct rbx_fragment *ended = NULL;
	bool again;

	(void)state;
	assert_true(rbx_recovery_broken(&recovery));
	rbx_recovery_begin(&recovery, 0, 100 * TIMEOUT, true, 0);
	rbx_channel_key_ended(&s.channel, 0);
	assert_true(small_submit(&s, 0, 0));
	assert_false(small_combine(&s));
	drain(1);
	assert_null(rbx_recovery_withdraw(&recovery, all_wait));
	rbx_recovery_asked(&recovery, true, 2);
	assert_true(rbx_recovery_resumed(&recovery, 0, 3, &ended, &again));
	assert_int_equal(small_count(ended), 1);
	assert_int_equal(ended->status, -EACCES);
}

/* ---- Stalls -----------------------------------------------------------------*/

static bool stands_still(void)
{
	bool is_so = false;

	for (uint32_t i = 0; i <= RBX_STALL_LOOKS && !is_so; i++)
		is_so = rbx_recovery_stands_still(&recovery, 1);
	return is_so;
}

static void posted_and_not_answered_stands_still(void **state)
{
	(void)state;
	assert_false(stands_still()); /* nothing is posted */
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_true(stands_still());
	assert_true(broken_at(1));
	assert_false(rbx_recovery_stands_still(&recovery, 1));
}

/* The session was silent, say, and the looks at its ring before that found no progress. */
static void looks_before_a_break_do_not_count_after_it(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	for (uint32_t i = 1; i < RBX_STALL_LOOKS; i++)
		assert_false(rbx_recovery_stands_still(&recovery, 1));
	assert_true(broken_at(1));
	small_complete(&s, s.chain.first_number + s.chain.work_count - 1,
		       -ECANCELED);
	rbx_recovery_keep(&recovery, &s.harvest);
	drain(2);
	assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
	assert_true(rbx_recovery_resumed(&recovery, 0, 4, &ended, &again));
	assert_true(small_combine(&s));
	assert_false(rbx_recovery_stands_still(&recovery, 1));
}

static void ring_whose_poller_has_not_looked_says_nothing(void **state)
{
	(void)state;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	for (uint32_t i = 0; i < 2 * RBX_STALL_LOOKS; i++)
		assert_false(rbx_recovery_stands_still(&recovery, 0));
}

static void who_stalls_again_on_new_queue_pairs_is_given_up(void **state)
{
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	for (int round = 0; round < 2; round++) {
		assert_true(stands_still());
		assert_true(broken_at(1));
		small_complete(&s,
			       s.chain.first_number + s.chain.work_count - 1,
			       -ECANCELED);
		rbx_recovery_keep(&recovery, &s.harvest);
		drain(2);
		if (round == 1)
			break;
		assert_int_equal(step_at(3), RBX_RECOVERY_RESUME);
		assert_true(rbx_recovery_resumed(&recovery, 0, 4, &ended,
						 &again));
		assert_true(small_combine(&s));
		assert_false(small_combine(&s));
	}
	assert_int_equal(step_at(5), RBX_RECOVERY_GIVE_UP);
}

/* What it holds is nowhere else: it is tried on, but not for longer than half of the
 * lease that it had at the first stall. */
static void who_stalls_again_keeps_last_copies_for_a_while(void **state)
{
	const uint64_t half_ns = 3 * TIMEOUT;
	uint64_t now_ns = 1, rounds = 0;
	struct rbx_fragment *ended;
	bool again;

	(void)state;
	assert_true(small_submit(&s, 0, 3));
	assert_true(small_combine(&s));
	assert_false(small_combine(&s));
	for (; rounds < 100; rounds++, now_ns += TIMEOUT / 2) {
		enum rbx_recovery_step step;

		assert_true(stands_still());
		assert_true(rbx_recovery_broken(&recovery));
		rbx_recovery_begin(&recovery, now_ns, now_ns + half_ns, true,
				   now_ns);
		small_complete(&s,
			       s.chain.first_number + s.chain.work_count - 1,
			       -ECANCELED);
		rbx_recovery_keep(&recovery, &s.harvest);
		drain(now_ns);
		step = step_at(now_ns);
		if (rounds == 0)
			assert_int_equal(step, RBX_RECOVERY_RESUME);
		if (step == RBX_RECOVERY_GIVE_UP)
			break;
		if (step == RBX_RECOVERY_ASK) {
			rbx_recovery_asked(&recovery, true, now_ns);
			step = step_at(now_ns += TIMEOUT / 8);
		}
		assert_int_equal(step, RBX_RECOVERY_RESUME);
		assert_true(rbx_recovery_resumed(&recovery, 0, now_ns, &ended,
						 &again));
		assert_true(small_combine(&s));
		assert_false(small_combine(&s));
	}
	assert_in_range(rounds, 2, 99);
	assert_in_range(now_ns, half_ns, half_ns + 2 * TIMEOUT);
}

static void who_closes_repairs_nothing(void **state)
{
	(void)state;
	rbx_recovery_close(&recovery);
	assert_false(broken_at(1));
	assert_int_equal(s.channel.state, RBX_CHANNEL_OPEN);
	assert_int_equal(step_at(2), RBX_RECOVERY_WAIT);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_well_looks_for_stalls_in_half_of_the_timeout),
		TEST(nobody_looks_for_stalls_but_while_all_is_well),
		TEST(break_is_news_once_and_halts),
		TEST(break_while_it_was_opened_is_told_then),
		TEST(drain_has_its_time_and_so_has_a_try),
		TEST(resumed_sends_again_what_was_kept),
		TEST(what_comes_back_later_is_kept_besides),
		TEST(nothing_is_kept_twice),
		TEST(break_during_a_try_is_told_after_it),
		TEST(try_that_fails_pauses_then_tries_again),
		TEST(try_that_nobody_begins_in_time_is_its_last),
		TEST(server_that_is_gone_is_given_up_and_refuses),
		TEST(owner_lets_go_what_is_elsewhere),
		TEST(nothing_that_waits_on_vanishes),
		TEST(posted_and_not_answered_stands_still),
		TEST(looks_before_a_break_do_not_count_after_it),
		TEST(ring_whose_poller_has_not_looked_says_nothing),
		TEST(who_stalls_again_on_new_queue_pairs_is_given_up),
		TEST(who_stalls_again_keeps_last_copies_for_a_while),
		TEST(who_closes_repairs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
