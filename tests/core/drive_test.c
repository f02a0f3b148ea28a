/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* drive_test.c - a host's loops: what it is asked for, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/drive.h"
#include "tests/core/channel_small.h"

static struct small s;
static uint32_t missed_count; /* of the next chain */
static uint32_t posted_count; /* chains */
static uint32_t broken_count, used_when_broken;
static uint32_t wake_count;
static struct rbx_fragment *kept_first, *kept_last;
static struct rbx_node *ended;

static uint64_t now_ns(void)
{
	return 7;
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	uint32_t missed = missed_count;

	assert_ptr_equal(channel, &s.channel);
	assert_true(missed <= chain->work_count);
	posted_count++;
	missed_count = 0;
	return missed;
}

static void broken(struct rbx_channel *channel)
{
	broken_count++;
	used_when_broken = rbx_send_ring_used(&channel->rings[0]);
	if (channel->state == RBX_CHANNEL_OPEN)
		rbx_channel_set_state(channel, RBX_CHANNEL_HALTED);
}

static void keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	(void)channel;
	rbx_fragment_append(&kept_first, &kept_last, harvest->again_first,
			    harvest->again_last);
	harvest->again_first = NULL;
}

static void end(struct rbx_channel *channel, struct rbx_fragment *list)
{
	(void)channel;
	rbx_drive_push_ended(&ended, list);
}

static void wake(struct rbx_channel *channel)
{
	(void)channel;
	wake_count++;
}

static const struct rbx_drive drive = {
	.now_ns = now_ns,
	.post = post,
	.broken = broken,
	.keep = keep,
	.end = end,
	.wake = wake,
};

static int setup(void **state)
{
	(void)state;
	small_setup(&s);
	missed_count = posted_count = broken_count = wake_count = 0;
	kept_first = kept_last = NULL;
	ended = NULL;
	return 0;
}

static void submit(int from, int to)
{
	if (small_submit(&s, from, to))
		rbx_drive_combine(&drive, &s.channel);
}

/* ---- There ------------------------------------------------------------------*/

static void combine_posts_until_nothing_is_left(void **state)
{
	(void)state;
	submit(0, 3);
	assert_int_equal(posted_count, 1);
	assert_false(rbx_channel_idle(&s.channel));
	submit(4, 5); /* it is the combiner again */
	assert_int_equal(posted_count, 2);
	assert_int_equal(wake_count, 0);
}

static void not_posted_is_kept_and_gives_its_credit_back(void **state)
{
	(void)state;
	missed_count = 1;
	submit(0, 3);
	assert_int_equal(broken_count, 1);
	assert_int_equal(small_count(kept_first), 4);
	small_expect_at_rest(&s);
}

static void dead_channel_refuses(void **state)
{
	struct rbx_fragment *list;

	(void)state;
	small_halt(&s);
	rbx_channel_set_state(&s.channel, RBX_CHANNEL_DEAD);
	submit(0, 3);
	assert_int_equal(posted_count, 0);
	list = rbx_drive_take_ended(&ended);
	assert_int_equal(small_count(list), 4);
	assert_int_equal(list->status, -EHOSTUNREACH);
	assert_null(rbx_drive_take_ended(&ended));
}

/* ---- And back ------------------------------------------------------------*/

static void failure_is_noted_before_its_ring_looks_idle(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	submit(0, 0);
	rbx_drive_completed(&drive, &s.channel, 0, 0, -ECANCELED, 8, &harvest);
	assert_int_equal(broken_count, 1);
	assert_int_equal(used_when_broken, 1);
	assert_true(rbx_channel_idle(&s.channel));
	assert_int_equal(small_count(kept_first), 1);
	assert_null(harvest.again_first);
}

static void success_notes_nothing(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	submit(0, 0);
	rbx_drive_completed(&drive, &s.channel, 0, 0, 0, 8, &harvest);
	assert_int_equal(broken_count, 0);
	assert_int_equal(small_count(harvest.done_first), 1);
}

static void rest_of_a_queue_pair_gives_its_credit_back_and_wakes(void **state)
{
	struct rbx_harvest harvest = { 0 };

	(void)state;
	submit(0, 3);
	small_halt(&s);
	rbx_channel_abandon(&s.channel, 0, &harvest);
	rbx_drive_settle_rest(&drive, &s.channel, &harvest);
	assert_int_equal(small_count(kept_first), 4);
	assert_int_equal(wake_count, 1);
	small_expect_at_rest(&s);
}

static void ended_keeps_all_that_was_pushed(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		rbx_drive_push_ended(&ended, &s.fragments[i]);
	assert_int_equal(small_count(rbx_drive_take_ended(&ended)), 4);
}

/* ---- Giving back --------------------------------------------------------------*/

static uint32_t mine_count, others_count, mine_calls;

static struct rbx_fragment *mine(struct rbx_fragment *list)
{
	mine_calls++;
	for (; list && list->done == mine; list = rbx_fragment_next(list))
		mine_count++;
	return list;
}

static struct rbx_fragment *others(struct rbx_fragment *list)
{
	for (; list && list->done == others; list = rbx_fragment_next(list))
		others_count++;
	return list;
}

static void each_takes_its_own_from_a_list(void **state)
{
	(void)state;
	mine_count = others_count = mine_calls = 0;
	for (int i = 0; i < 6; i++) {
		s.fragments[i].done = i == 2 ? others : mine;
		s.fragments[i].node.next =
			i < 5 ? &s.fragments[i + 1].node : NULL;
	}
	rbx_drive_done(&s.fragments[0]);
	assert_int_equal(mine_count, 5);
	assert_int_equal(others_count, 1);
	assert_int_equal(mine_calls, 2);
	rbx_drive_done(NULL);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(combine_posts_until_nothing_is_left),
		TEST(not_posted_is_kept_and_gives_its_credit_back),
		TEST(dead_channel_refuses),
		TEST(failure_is_noted_before_its_ring_looks_idle),
		TEST(success_notes_nothing),
		TEST(rest_of_a_queue_pair_gives_its_credit_back_and_wakes),
		TEST(ended_keeps_all_that_was_pushed),
		TEST(each_takes_its_own_from_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
