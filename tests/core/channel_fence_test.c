/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_fence_test.c - a fence does not pass what has failed and is to be sent again,
 * also where it fails at the moment at which the combiner looks.
 *
 * The sources are compiled here once more, with an ordered load before which the
 * poller may run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/port.h"

static void (*poller_runs)(void);

static void poller_may_run(void)
{
	void (*run)(void) = poller_runs;

	poller_runs = NULL;
	if (run)
		run();
}

#undef RBX_LOAD_ORDERED
#define RBX_LOAD_ORDERED(p) \
	(poller_may_run(), __atomic_load_n(p, __ATOMIC_SEQ_CST))

#include "core/channel.c"
#include "core/harvest.c"

#include "core/drive.h"
#include "tests/core/channel_small.h"

static struct small s;
static struct rbx_work more_works[SMALL_DEPTH];
static uint32_t posted[2]; /* work requests, by ring */
static struct rbx_fragment *kept;

static uint64_t now_ns(void)
{
	return 1;
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	(void)channel;
	posted[chain->ring_index] += chain->work_count;
	return 0;
}

/* As rbx_recovery_begin(). */
static void broken(struct rbx_channel *channel)
{
	if (channel->state == RBX_CHANNEL_OPEN)
		rbx_channel_set_state(channel, RBX_CHANNEL_HALTED);
}

static void keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	(void)channel;
	kept = harvest->again_first;
	harvest->again_first = NULL;
}

static void end(struct rbx_channel *channel, struct rbx_fragment *list)
{
	(void)channel;
	(void)list;
	fail();
}

static void wake(struct rbx_channel *channel)
{
	(void)channel;
}

static const struct rbx_drive drive = {
	.now_ns = now_ns,
	.post = post,
	.broken = broken,
	.keep = keep,
	.end = end,
	.wake = wake,
};

/* The work request on the first ring fails: a queue pair of two. */
static void first_fails(void)
{
	struct rbx_harvest harvest = { 0 };

	rbx_drive_completed(&drive, &s.channel, 0, 0, -ETIMEDOUT, 2, &harvest);
	rbx_harvest_settle(&harvest, &s.window, 2);
}

static void fence_does_not_pass_what_fails_at_this_moment(void **state)
{
	(void)state;
	small_setup(&s);
	rbx_channel_add_ring(&s.channel, more_works, SMALL_DEPTH);
	assert_true(small_submit(&s, 0, 0));
	rbx_drive_combine(&drive, &s.channel);
	assert_int_equal(posted[0], 1);

	s.fragments[1].flags = RBX_FRAGMENT_FENCE;
	assert_true(small_submit(&s, 1, 1));
	poller_runs = first_fails;
	rbx_drive_combine(&drive, &s.channel);
	assert_ptr_equal(kept, &s.fragments[0]);
	/* What the fence waits for has not been carried out, and waits to be sent again:
	 * nothing may be posted on the queue pair that still works. */
	assert_int_equal(posted[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fence_does_not_pass_what_fails_at_this_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
