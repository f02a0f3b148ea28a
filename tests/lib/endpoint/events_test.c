/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events_test.c - a program hears of the end of a connection on which it has
 * nothing posted, from a descriptor of its own loop.
 */
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* ---- Closed meanwhile -------------------------------------------------------------*/

static const struct rbx_fabric_ops *true_ops;
static struct rbx_endpoint *closing;
static void *no_memory; /* whoever looks at it is ended by a signal */

/* As if another thread had closed it just after its event was taken. */
static int take_and_close(struct rbx_device *device, struct rbx_device_event *event)
{
	int err = true_ops->get_event(device, event);

	if (err)
		return err;
	assert_int_equal(rbx_endpoint_close(closing), 0);
	event->qp = no_memory;
	return 0;
}

static void event_of_what_is_closed_meanwhile_names_it_unseen(void **state)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct rbx_endpoint_event event;
	struct rbx_fabric_ops ops;
	struct endpoints e;

	(void)state;
	no_memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(no_memory != MAP_FAILED);
	endpoint_options.tells_end = 1;
	endpoints_open(&e);
	true_ops = e.a.ctx->device->ops;
	ops = *true_ops;
	ops.get_event = take_and_close;
	device_play(e.a.ctx, &ops);
	closing = e.a.endpoint;
	e.a.endpoint = NULL;
	rbx_endpoint_disconnect(e.b.endpoint);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 20000), 0);
	assert_int_equal(event.kind, RBX_ENDPOINT_ENDED);
	assert_ptr_equal(event.endpoint, closing);
	assert_null(event.receives);
	assert_int_equal(rbx_endpoint_next_event(e.a.ctx, &event, 0), -EAGAIN);
	device_play(e.a.ctx, true_ops);
	endpoints_close(&e);
	munmap(no_memory, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_is_told_without_a_receive),
		cmocka_unit_test(without_tells_end_nothing_is_told),
		cmocka_unit_test(event_of_what_is_closed_meanwhile_names_it_unseen),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
