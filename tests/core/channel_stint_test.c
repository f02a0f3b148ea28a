/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_stint_test.c - a combiner's stint ends, and its work goes on.
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

struct stint {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[RBX_SEND_DEPTH];
	struct rbx_fragment fragments[FRAGMENTS];
	uint32_t submitted;
	uint32_t completed;
};

static bool submit_next(struct stint *stint)
{
	struct rbx_fragment *fragment = &stint->fragments[stint->submitted++];

	return rbx_channel_submit(&stint->channel, fragment, fragment);
}

static int setup(void **state)
{
	struct stint *stint = calloc(1, sizeof(*stint));

	stint->planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&stint->window, 0, 0);
	rbx_channel_init(&stint->channel, &stint->planner, &stint->window);
	rbx_channel_add_ring(&stint->channel, stint->works, RBX_SEND_DEPTH);
	for (uint32_t i = 0; i < FRAGMENTS; i++) {
		stint->fragments[i].direction = RBX_DIRECTION_WRITE;
		stint->fragments[i].remote_addr = (uint64_t)i * RBX_PAGE_BYTES;
		stint->fragments[i].length_bytes = RBX_PAGE_BYTES;
	}
	*state = stint;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void complete_all(struct stint *stint)
{
	struct rbx_send_ring *ring = &stint->channel.rings[0];
	struct rbx_harvest harvest = { 0 };

	if (rbx_channel_idle(&stint->channel))
		return;
	rbx_channel_complete(&stint->channel, 0, ring->posted_count - 1, 0, 1,
			     &harvest);
	rbx_window_give(&stint->window, harvest.work_requests, harvest.bytes);
	stint->completed += harvest.work_requests;
}

/* A stint of posts, each followed by what `meanwhile` does. */
static bool combine_for_a_stint(struct stint *stint,
				void (*meanwhile)(struct stint *stint))
{
	struct rbx_chain chain;

	for (uint32_t i = 0; i < RBX_COMBINE_MAX; i++) {
		if (!rbx_channel_combine(&stint->channel, 1, &chain))
			return false;
		meanwhile(stint);
	}
	return true;
}

static void another_submits(struct stint *stint)
{
	assert_false(submit_next(stint));
}

/* As on a device that is done before the post returns. */
static void it_completes_and_another_submits(struct stint *stint)
{
	complete_all(stint);
	assert_false(submit_next(stint));
}

static void stint_over_with_work_outstanding_leaves_rest_to_completion(void **state)
{
	struct stint *stint = *state;
	struct rbx_chain chain;

	assert_true(submit_next(stint));
	assert_true(combine_for_a_stint(stint, another_submits));
	assert_false(rbx_channel_yield(&stint->channel));
	/* Nobody else becomes the combiner by a submit. */
	assert_false(submit_next(stint));
	complete_all(stint);
	assert_int_equal(stint->completed, RBX_COMBINE_MAX);
	assert_true(rbx_channel_unpark(&stint->channel));
	assert_true(rbx_channel_combine(&stint->channel, 1, &chain));
	assert_false(rbx_channel_combine(&stint->channel, 1, &chain));
	complete_all(stint);
	assert_int_equal(rbx_window_in_flight_bytes(&stint->window), 0);
}

static void stint_over_with_nothing_outstanding_says_so(void **state)
{
	struct stint *stint = *state;
	struct rbx_chain chain;

	assert_true(submit_next(stint));
	assert_true(
		combine_for_a_stint(stint, it_completes_and_another_submits));
	assert_true(rbx_channel_yield(&stint->channel));
	assert_true(rbx_channel_unpark(&stint->channel));
	assert_true(rbx_channel_combine(&stint->channel, 1, &chain));
	complete_all(stint);
	assert_false(rbx_channel_combine(&stint->channel, 1, &chain));
	assert_int_equal(stint->completed, stint->submitted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			stint_over_with_work_outstanding_leaves_rest_to_completion,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			stint_over_with_nothing_outstanding_says_so, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
