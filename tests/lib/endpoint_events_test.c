/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_events_test.c - a program hears of the end of a connection on which it has
 * nothing posted, from a descriptor of its own loop.
 */
#include <errno.h>
#include <poll.h>

#include "tests/lib/endpoints.h"

static void end_is_told_without_a_receive(void **state)
{
	struct rbx_endpoint_event event;
	struct pollfd readable;
	struct endpoints e;

	(void)state;
	endpoint_options.tells_end = 1;
	endpoints_open(&e);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 0), -EAGAIN);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 10), -EAGAIN);
	rbx_endpoint_disconnect(e.b.endpoint);
	readable = (struct pollfd){ rbx_endpoint_event_fd(e.a.ctx), POLLIN, 0 };
	assert_int_equal(poll(&readable, 1, 20000), 1);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 0), 0);
	assert_int_equal(event.kind, RBX_ENDPOINT_ENDED);
	assert_ptr_equal(event.endpoint, e.a.endpoint);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 0), -EAGAIN);
	assert_int_equal(rbx_endpoint_next_event(e.b.ctx, &event, -1), 0);
	assert_ptr_equal(event.endpoint, e.b.endpoint);
	endpoints_close(&e);
}

static void without_tells_end_nothing_is_told(void **state)
{
	struct rbx_endpoint_event event;
	struct endpoints e;

	(void)state;
	endpoint_options.tells_end = 0;
	endpoints_open(&e);
	receive_at(&e.a, 0, 64, 1);
	rbx_endpoint_disconnect(e.b.endpoint);
	expect(&e.a, RBX_COMPLETION_RECEIVED, 1, -ECANCELED);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 0), -EAGAIN);
	assert_int_equal(rbx_endpoint_next_event(e.b.ctx, &event, 0), -EAGAIN);
	assert_int_equal(rbx_endpoint_next_event(NULL, &event, 0), -EINVAL);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, NULL, 0), -EINVAL);
	endpoints_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_is_told_without_a_receive),
		cmocka_unit_test(without_tells_end_nothing_is_told),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
