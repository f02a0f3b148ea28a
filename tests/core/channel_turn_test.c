/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_turn_test.c - a combiner's turn ends, and its work goes on.
 *
 * The host of these tests does what lib/peer/send.c does, and somebody else
 * submits during each of its posts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/harvest.h"

#define FRAGMENTS (2 * RBX_COMBINE_MAX)

struct turn {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[RBX_SEND_DEPTH];
	struct rbx_fragment fragments[FRAGMENTS];
	uint32_t submitted;
	uint32_t completed;
};

static bool submit_next(struct turn *turn)
{
	struct rbx_fragment *fragment = &turn->fragments[turn->submitted++];

	return rbx_channel_submit(&turn->channel, fragment, fragment);
}

static int setup(void **state)
{
	struct turn *turn = calloc(1, sizeof(*turn));

	turn->planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&turn->window, 0, 0);
	rbx_channel_init(&turn->channel, &turn->planner, &turn->window);
	rbx_channel_add_ring(&turn->channel, turn->works, RBX_SEND_DEPTH);
	for (uint32_t i = 0; i < FRAGMENTS; i++) {
		turn->fragments[i].direction = RBX_DIRECTION_WRITE;
		turn->fragments[i].remote_addr = (uint64_t)i * RBX_PAGE_BYTES;
		turn->fragments[i].length_bytes = RBX_PAGE_BYTES;
	}
	*state = turn;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void complete_all(struct turn *turn)
{
	struct rbx_send_ring *ring = &turn->channel.rings[0];
	struct rbx_harvest harvest = { 0 };

	if (rbx_channel_idle(&turn->channel))
		return;
	rbx_channel_complete(&turn->channel, 0, ring->posted_count - 1, 0, 1,
			     &harvest);
	rbx_window_give(&turn->window, harvest.work_requests, harvest.bytes);
	turn->completed += harvest.work_requests;
}

/* A turn of posts, each followed by what `meanwhile` does. */
static bool combine_for_a_turn(struct turn *turn,
			       void (*meanwhile)(struct turn *turn))
{
	struct rbx_chain chain;

	for (uint32_t i = 0; i < RBX_COMBINE_MAX; i++) {
		if (!rbx_channel_combine(&turn->channel, 1, &chain))
			return false;
		meanwhile(turn);
	}
	return true;
}

static void another_submits(struct turn *turn)
{
	assert_false(submit_next(turn));
}

/* As on a device that is done before the post returns. */
static void it_completes_and_another_submits(struct turn *turn)
{
	complete_all(turn);
	assert_false(submit_next(turn));
}

static void turn_over_with_work_outstanding_leaves_rest_to_completion(void **state)
{
	struct turn *turn = *state;
	struct rbx_chain chain;

	assert_true(submit_next(turn));
	assert_true(combine_for_a_turn(turn, another_submits));
	assert_false(rbx_channel_yield(&turn->channel));
	/* Nobody else becomes the combiner by a submit. */
	assert_false(submit_next(turn));
	complete_all(turn);
	assert_int_equal(turn->completed, RBX_COMBINE_MAX);
	assert_true(rbx_channel_unpark(&turn->channel));
	assert_true(rbx_channel_combine(&turn->channel, 1, &chain));
	assert_false(rbx_channel_combine(&turn->channel, 1, &chain));
	complete_all(turn);
	assert_int_equal(rbx_window_in_flight_bytes(&turn->window), 0);
}

static void turn_over_with_nothing_outstanding_says_so(void **state)
{
	struct turn *turn = *state;
	struct rbx_chain chain;

	assert_true(submit_next(turn));
	assert_true(combine_for_a_turn(turn, it_completes_and_another_submits));
	assert_true(rbx_channel_yield(&turn->channel));
	assert_true(rbx_channel_unpark(&turn->channel));
	assert_true(rbx_channel_combine(&turn->channel, 1, &chain));
	complete_all(turn);
	assert_false(rbx_channel_combine(&turn->channel, 1, &chain));
	assert_int_equal(turn->completed, turn->submitted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			turn_over_with_work_outstanding_leaves_rest_to_completion,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			turn_over_with_nothing_outstanding_says_so, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
