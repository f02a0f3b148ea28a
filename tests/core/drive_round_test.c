/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drive_round_test.c - who makes a round comes back to what it polls itself, however
 * busy the other pollers are; and what it left is done then. And it looks at those who
 * are parked, however many others there are.
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

/* ---- Many slots ------------------------------------------------------------------*/

static struct small few[3];
static const uint32_t few_slots[] = { 0, 70, RBX_CHANNELS_MAX - 1 };
static uint32_t looks_count;

static uint32_t all_slots_used(void *host)
{
	(void)host;
	return RBX_CHANNELS_MAX;
}

static struct rbx_channel *few_at(void *host, uint32_t slot)
{
	(void)host;
	looks_count++;
	for (uint32_t i = 0; i < 3; i++)
		if (few_slots[i] == slot)
			return &few[i].channel;
	return NULL;
}

static void few_combine(struct rbx_channel *channel)
{
	struct rbx_chain chain;

	while (rbx_channel_combine(channel, 0, &chain))
		;
}

/* One work request in flight, of whoever posted it: the others wait. */
static void round_looks_at_those_who_are_parked(void **state)
{
	static const struct rbx_drive_channels channels = { all_slots_used,
							    few_at, few_combine };
	struct rbx_turns *turns = &few[0].window.turns;
	struct rbx_chain chain;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		small_setup(&few[i]);
		few[i].channel.window = &few[0].window;
		few[i].channel.slot = few_slots[i];
	}
	rbx_window_init(&few[0].window, 0, 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(small_submit(&few[i], 0, 0));
		while (rbx_channel_combine(&few[i].channel, 0, &chain))
			;
	}
	assert_int_equal(turns->parked_count, 2);
	for (uint32_t done = 0; done < 3; done++) {
		struct rbx_harvest harvest = { 0 };

		for (uint32_t i = 0; i < 3; i++) {
			struct rbx_send_ring *ring = &few[i].channel.rings[0];

			if (ring->posted_count == ring->completed_count)
				continue;
			rbx_channel_complete(&few[i].channel, 0,
					     ring->completed_count, 0, 1,
					     &harvest);
			break;
		}
		assert_non_null(harvest.done_first);
		rbx_harvest_settle(&harvest, &few[0].window, 1);
		looks_count = 0;
		assert_false(rbx_drive_unpark(&channels, NULL, turns));
		assert_in_range(looks_count, done < 2, 8);
	}
	assert_int_equal(turns->parked_count, 0);
	for (uint32_t i = 0; i < RBX_CHANNELS_MAX / 64; i++)
		assert_int_equal(turns->parked_slots[i], 0);
}

/* It lies there for whoever unparks next, who never comes: its peer is closed. */
static void who_leaves_while_parked_leaves_nothing(void **state)
{
	struct rbx_turns *turns = &few[0].window.turns;

	(void)state;
	small_setup(&few[0]);
	few[0].channel.slot = 70;
	assert_true(rbx_channel_seize(&few[0].channel));
	assert_true(rbx_channel_yield(&few[0].channel));
	assert_int_equal(turns->parked_count, 1);
	rbx_channel_leave(&few[0].channel);
	assert_int_equal(turns->parked_count, 0);
	assert_int_equal(turns->parked_slots[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_of_one_poller_ends_while_others_are_busy),
		cmocka_unit_test(round_looks_at_those_who_are_parked),
		cmocka_unit_test(who_leaves_while_parked_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
