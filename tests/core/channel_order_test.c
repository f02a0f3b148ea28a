/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_order_test.c - what keeps its order, beside reads and writes that have none.
 *
 * Random fragments of all kinds go through a channel to a device that completes them
 * in order, takes only a part of a chain now and then, and breaks. Beside it stands a
 * list of all that was submitted. By that list: what is ordered reaches the device in
 * the order of submission, alone, and never twice; nothing that must not be sent again
 * reaches it twice; nothing passes a fence; and each ends once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/harvest.h"

#define ALL 600u
#define DEPTH 16u
#define ROUNDS_MAX 100000

struct one {
	struct rbx_fragment fragment;
	bool is_fence;
	uint32_t taken_count; /* by the device */
	uint32_t ended_count;
};

static struct world {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[DEPTH];
	struct one ones[ALL]; /* in the order of submission */
	uint32_t submitted, ended;
	uint32_t ordered_next; /* none before it may be taken any more */
	uint32_t posted[DEPTH]; /* numbers, in order */
	bool is_signaled[DEPTH];
	uint32_t posted_count;
	struct rbx_fragment *again_first, *again_last;
	unsigned int seed;
} w;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)rand_r(&w.seed) % below;
}

static struct one *one_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct one, fragment);
}

static void begin(unsigned int seed)
{
	w = (struct world){ .seed = seed };
	w.planner = (struct rbx_planner){
		.merge = draw(4) != 0,
		.chain_max = 1 + draw(RBX_CHAIN_MAX),
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&w.window, draw(2) ? 0 : 20000, draw(2) ? 0 : 1 + draw(4));
	rbx_channel_init(&w.channel, &w.planner, &w.window);
	rbx_channel_add_ring(&w.channel, w.works, DEPTH);
}

/* All that was submitted before a fence has ended before what is behind it begins. */
static void check_fences(uint32_t index)
{
	uint32_t fence = index;

	while (fence > 0 && !w.ones[fence].is_fence)
		fence--;
	for (uint32_t i = 0; i < fence; i++)
		assert_int_equal(w.ones[i].ended_count, 1);
}

static void check_taken(const struct rbx_work *work)
{
	struct rbx_fragment *fragment = work->first;

	for (; fragment; fragment = rbx_fragment_next(fragment)) {
		struct one *one = one_of(fragment);
		uint32_t index = (uint32_t)(one - w.ones);

		one->taken_count++;
		assert_int_equal(one->ended_count, 0);
		check_fences(index);
		if (fragment->flags & RBX_FRAGMENT_NO_RESEND)
			assert_int_equal(one->taken_count, 1);
		if (fragment->direction != RBX_DIRECTION_ORDERED)
			continue;
		assert_int_equal(work->member_count, 1);
		assert_true(index >= w.ordered_next);
		w.ordered_next = index + 1;
	}
}

static void take_harvest(struct rbx_harvest *harvest)
{
	struct rbx_fragment *fragment = harvest->done_first;

	rbx_window_give(&w.window, harvest->work_requests, harvest->bytes);
	for (; fragment; fragment = rbx_fragment_next(fragment)) {
		struct one *one = one_of(fragment);

		assert_int_equal(one->ended_count++, 0);
		if (fragment->status != 0)
			assert_true(fragment->flags & RBX_FRAGMENT_NO_RESEND ||
				    fragment->retries_count == RBX_RETRIES_MAX);
		w.ended++;
	}
	if (harvest->again_first)
		rbx_fragment_append(&w.again_first, &w.again_last,
				    harvest->again_first, harvest->again_last);
}

static void halt(void)
{
	if (w.channel.state == RBX_CHANNEL_OPEN)
		rbx_channel_set_state(&w.channel, RBX_CHANNEL_HALTED);
}

/* The device takes all of a chain or, now and then, only its beginning. */
static void combine(void)
{
	struct rbx_chain chain;

	while (rbx_channel_combine(&w.channel, 1, &chain)) {
		uint32_t missed = draw(30) ? 0 : 1 + draw(chain.work_count);
		struct rbx_harvest harvest = { 0 };

		for (uint32_t i = 0; i < chain.work_count - missed; i++) {
			uint32_t number = chain.first_number + i;

			check_taken(&w.works[number % DEPTH]);
			w.is_signaled[w.posted_count] =
				i + 1 == chain.work_count;
			w.posted[w.posted_count++] = number;
		}
		if (missed == 0)
			continue;
		rbx_channel_not_posted(&w.channel, &chain, missed, &harvest);
		take_harvest(&harvest);
		halt();
	}
}

static void complete(uint32_t at, int32_t status)
{
	struct rbx_harvest harvest = { 0 };

	rbx_channel_complete(&w.channel, 0, w.posted[at], status, 1, &harvest);
	take_harvest(&harvest);
}

static void complete_some(void)
{
	uint32_t at = 0;

	while (at < w.posted_count && !w.is_signaled[at])
		at++;
	if (at == w.posted_count)
		return;
	complete(at, 0);
	w.posted_count -= at + 1;
	for (uint32_t i = 0; i < w.posted_count; i++) {
		w.posted[i] = w.posted[i + at + 1];
		w.is_signaled[i] = w.is_signaled[i + at + 1];
	}
}

/* The connection ends, and all that is posted with it; then it is made anew. */
static void break_and_restore(void)
{
	halt();
	for (uint32_t at = 0; at < w.posted_count; at++)
		complete(at, at == 0 ? -ETIMEDOUT : -ECANCELED);
	w.posted_count = 0;
	assert_true(rbx_channel_seize(&w.channel));
	assert_null(rbx_channel_send_again(&w.channel, w.again_first));
	w.again_first = w.again_last = NULL;
	rbx_channel_set_state(&w.channel, RBX_CHANNEL_OPEN);
	combine();
}

static struct rbx_fragment *make(void)
{
	static const uint8_t flags[] = {
		[RBX_DIRECTION_READ] = 0,
		[RBX_DIRECTION_WRITE] = 0,
		[RBX_DIRECTION_ORDERED] = RBX_FRAGMENT_ORDERED_FLAGS,
	};
	struct one *one = &w.ones[w.submitted++];
	uint8_t direction = (uint8_t)draw(RBX_DIRECTIONS);

	one->fragment = (struct rbx_fragment){
		.direction = direction,
		.flags = flags[direction],
		.remote_addr = (uint64_t)draw(16) * 512,
		/* What opens a window has no bytes. */
		.length_bytes = direction == RBX_DIRECTION_ORDERED && draw(3) == 0 ?
					0 : 512,
	};
	if (direction != RBX_DIRECTION_ORDERED && draw(4) == 0)
		one->fragment.flags |= RBX_FRAGMENT_URGENT;
	if (draw(8) == 0)
		one->fragment.flags |= RBX_FRAGMENT_NO_RESEND |
				       RBX_FRAGMENT_ALONE;
	one->is_fence = draw(25) == 0;
	if (one->is_fence)
		one->fragment.flags |= RBX_FRAGMENT_FENCE;
	return &one->fragment;
}

static void submit_some(void)
{
	uint32_t wanted = 1 + draw(12);
	uint32_t count = RBX_MIN(wanted, ALL - w.submitted);
	struct rbx_fragment *first = NULL, *last = NULL;

	while (count-- != 0) {
		struct rbx_fragment *fragment = make();

		rbx_fragment_append(&first, &last, fragment, fragment);
	}
	if (first && rbx_channel_submit(&w.channel, first, last))
		combine();
}

static void step(bool breaks)
{
	uint32_t what = draw(10);

	if (what < 4)
		submit_some();
	else if (what < 9 || !breaks)
		complete_some();
	if ((breaks && what == 9 && draw(4) == 0) || w.channel.state == RBX_CHANNEL_HALTED)
		break_and_restore();
	if (rbx_channel_unpark(&w.channel))
		combine();
}

static void channel_ordered_keeps_its_order_whatever_breaks(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 400; seed++) {
		begin(seed);
		for (int i = 0; w.ended != ALL; i++) {
			assert_true(i < ROUNDS_MAX);
			step(i < 1000 && seed % 4 != 0);
		}
		assert_true(rbx_channel_idle(&w.channel));
		assert_int_equal(
			rbx_window_in_flight_work_requests(&w.window), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			channel_ordered_keeps_its_order_whatever_breaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
