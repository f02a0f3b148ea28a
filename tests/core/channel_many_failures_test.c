/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_many_failures_test.c - many requests at fault, in any place, each of which
 * breaks the connection: each ends with its own status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/harvest.h"

#define MANY 250 /* more than retries; fewer than a ring */

struct many {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[RBX_SEND_DEPTH];
	struct rbx_fragment fragments[MANY];
	bool at_fault[MANY];
	uint32_t posted_count;
	uint32_t completed_count;
	int ended_count;
	struct rbx_fragment *again;
};

static void many_combine(struct many *many)
{
	struct rbx_chain chain;

	while (rbx_channel_combine(&many->channel, 0, &chain))
		many->posted_count = chain.first_number + chain.work_count;
}

static bool work_fails(const struct many *many, const struct rbx_work *work)
{
	for (const struct rbx_fragment *fragment = work->first; fragment;
	     fragment = rbx_fragment_next(fragment)) {
		if (many->at_fault[fragment - many->fragments])
			return true;
	}
	return false;
}

static void many_complete(struct many *many, int32_t status)
{
	struct rbx_harvest harvest = { 0 };

	rbx_channel_complete(&many->channel, 0, many->completed_count++, status,
			     1, &harvest);
	rbx_window_give(&many->window, harvest.work_requests, harvest.bytes);
	if (harvest.again_first) {
		harvest.again_last->node.next =
			many->again ? &many->again->node : NULL;
		many->again = harvest.again_first;
	}
	for (const struct rbx_fragment *fragment = harvest.done_first; fragment;
	     fragment = rbx_fragment_next(fragment)) {
		bool at_fault = many->at_fault[fragment - many->fragments];

		assert_int_equal(fragment->status, at_fault ? -EFAULT : 0);
		many->ended_count++;
	}
}

/* The first that is at fault fails, what was posted behind it is flushed. */
static void many_carry_out(struct many *many)
{
	bool failed = false;

	while (many->completed_count != many->posted_count) {
		struct rbx_work *work = rbx_send_ring_slot(
			&many->channel.rings[0], many->completed_count);

		if (!failed && work_fails(many, work)) {
			failed = true;
			rbx_channel_set_state(&many->channel,
					      RBX_CHANNEL_HALTED);
			many_complete(many, -EFAULT);
		} else {
			many_complete(many, failed ? -ECANCELED : 0);
		}
	}
	if (!failed)
		return;
	assert_true(rbx_channel_seize(&many->channel));
	assert_null(rbx_channel_send_again(&many->channel, many->again));
	many->again = NULL;
	rbx_channel_set_state(&many->channel, RBX_CHANNEL_OPEN);
	many_combine(many);
}

static void expect_own_status(unsigned int seed)
{
	static struct many many;
	unsigned int fault_percent = seed % 5 * 25;

	memset(&many, 0, sizeof(many));
	many.planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&many.window, 0, 0);
	rbx_channel_init(&many.channel, &many.planner, &many.window);
	rbx_channel_add_ring(&many.channel, many.works, RBX_SEND_DEPTH);
	for (int i = 0; i < MANY; i++) {
		many.fragments[i].direction = RBX_DIRECTION_WRITE;
		many.fragments[i].length_bytes = RBX_PAGE_BYTES;
		many.fragments[i].local_addr = (uint64_t)i * 2 * RBX_PAGE_BYTES;
		many.fragments[i].remote_addr =
			(uint64_t)(rand_r(&seed) % 1000) * RBX_PAGE_BYTES;
		many.at_fault[i] =
			(unsigned int)rand_r(&seed) % 100 < fault_percent;
		if (rbx_channel_submit(&many.channel, &many.fragments[i],
				       &many.fragments[i]))
			many_combine(&many);
	}
	for (int round = 0; round < 2 * MANY; round++)
		many_carry_out(&many);
	assert_int_equal(many.ended_count, MANY);
	assert_int_equal(rbx_window_in_flight_bytes(&many.window), 0);
	assert_int_equal(rbx_window_in_flight_work_requests(&many.window), 0);
}

/* However many others fail, and break the connection each time. */
static void channel_many_failures_leave_each_its_own_status(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 40; seed++)
		expect_own_status(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			channel_many_failures_leave_each_its_own_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
