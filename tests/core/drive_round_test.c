/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drive_round_test.c - who makes a round comes back to what it polls itself, however
 * busy the other pollers are; and what it left is done then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/drive.h"
#include "tests/core/channel_small.h"

#define ROUNDS_MANY 1000u

static struct small s;
static uint32_t visits_count;

static uint32_t slots_used(void *host)
{
	(void)host;
	return 1;
}

static struct rbx_channel *at(void *host, uint32_t slot)
{
	(void)host;
	(void)slot;
	return &s.channel;
}

/* Posts the work request that has got credit; it parks for more. Meanwhile another
 * poller finds one completed, gives its credit back, and wants a round. */
static void combine(struct rbx_channel *channel)
{
	struct rbx_harvest harvest = { 0 };
	struct rbx_fragment *fragment;
	struct rbx_chain chain;
	struct rbx_round round;

	while (rbx_channel_combine(channel, 0, &chain))
		;
	if (++visits_count >= ROUNDS_MANY)
		return;
	rbx_channel_complete(channel, 0,
			     channel->rings[0].completed_count, 0, 1, &harvest);
	rbx_harvest_settle(&harvest, channel->window, 1);
	/* What has ended is submitted again, as by a benchmark. */
	fragment = harvest.done_first;
	assert_false(rbx_channel_submit(channel, fragment, fragment));
	assert_false(rbx_round_begin(&channel->window->turns, &round));
}

static void round_of_one_poller_ends_while_others_are_busy(void **state)
{
	static const struct rbx_drive_channels channels = { slots_used, at,
							    combine };
	struct rbx_chain chain;
	struct rbx_harvest harvest = { 0 };

	(void)state;
	small_setup(&s);
	s.planner.merge = false;
	s.planner.chain_max = 1;
	rbx_window_init(&s.window, 0, 1); /* one work request in flight */
	for (int i = 0; i < SMALL_FRAGMENTS; i++)
		s.fragments[i].flags = RBX_FRAGMENT_ALONE;
	assert_true(small_submit(&s, 0, SMALL_FRAGMENTS - 1));
	while (rbx_channel_combine(&s.channel, 0, &chain))
		;
	assert_int_equal(rbx_channel_parked(&s.channel), RBX_PARKED_CREDIT);
	rbx_channel_complete(&s.channel, 0, 0, 0, 1, &harvest);
	rbx_harvest_settle(&harvest, &s.window, 1);
	assert_true(rbx_drive_unpark(&channels, NULL, &s.window.turns));
	assert_int_equal(visits_count, RBX_ROUNDS_MAX);
	/* And so on, until nobody wants a round. */
	while (rbx_drive_unpark(&channels, NULL, &s.window.turns))
		assert_true(visits_count <= ROUNDS_MANY);
	assert_in_range(visits_count, ROUNDS_MANY, ROUNDS_MANY + 1);
	assert_int_equal(s.window.turns.wanted_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_of_one_poller_ends_while_others_are_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
