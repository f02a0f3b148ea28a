/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_test.c - a program that polls for itself and sleeps on rbx_event_fd() is woken
 * whenever rbx_poll() has left something to be looked at.
 */
#include "tests/lib/tenant.h"

#include <poll.h>

#include "lib/context.h"
#include "lib/poller/poller.h"

static bool is_readable(struct rbx_context *ctx)
{
	struct pollfd fd = { .fd = rbx_event_fd(ctx), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void poll_that_makes_way_leaves_the_descriptor_readable(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=0");
	struct rbx_poller *poller = ctx->pollers[0];

	(void)state;
	while (rbx_poll(ctx) > 0)
		;
	/* As after a poll that found something: all was read, nothing is armed. */
	pthread_mutex_lock(&poller->lock);
	rbx_poller_disarm(poller);
	pthread_mutex_unlock(&poller->lock);
	assert_false(is_readable(ctx));
	RBX_FETCH_ADD(&poller->lock_waiters, 1);
	assert_int_equal(rbx_poll(ctx), 0);
	assert_true(is_readable(ctx));
	RBX_FETCH_ADD(&poller->lock_waiters, (uint32_t)-1);
	/* It looks now and arms, and takes the wake with the next look. */
	assert_int_equal(rbx_poll(ctx), 0);
	assert_int_equal(rbx_poll(ctx), 0);
	assert_false(is_readable(ctx));
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll_that_makes_way_leaves_the_descriptor_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
