/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect_test.c - programs find each other, or are told why not: private data
 * of every length, refusals, nobody there, options that cannot be, and what is in use
 * when it is closed.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "tests/lib/endpoints.h"

static void fill(uint8_t *bytes, size_t length, uint8_t seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(seed + 7 * i + 1);
}

/* What has arrived is what was given, and zeros if it is longer. */
static void assert_arrived(const uint8_t *heard, size_t heard_bytes,
			   const uint8_t *given, size_t given_bytes, size_t most)
{
	assert_in_range(heard_bytes, given_bytes, most);
	assert_memory_equal(heard, given, given_bytes);
	for (size_t i = given_bytes; i < heard_bytes; i++)
		assert_int_equal(heard[i], 0);
}

static void meets_with_data(struct endpoints *endpoints, size_t to_bytes,
			    size_t back_bytes, bool is_refused)
{
	uint8_t to[64], back[256], answer[256];
	struct meeting meeting = {
		.endpoints = endpoints,
		.a_options = endpoint_options,
		.b_options = is_refused ? NULL : &endpoint_options,
		.a_data = { to, to_bytes },
		.b_data = { back, back_bytes },
		.answer = { answer, sizeof(answer) },
	};
	int err;

	fill(to, sizeof(to), 3);
	fill(back, sizeof(back), 100);
	err = meet(&meeting);
	assert_int_equal(err, is_refused ? -EBUSY : 0);
	assert_arrived(meeting.heard, meeting.heard_bytes, to, to_bytes,
		       endpoints->a.limits.connect_data_max);
	assert_arrived(answer, meeting.answer.length_bytes, back, back_bytes,
		       is_refused ? endpoints->a.limits.reject_data_max :
				    endpoints->a.limits.accept_data_max);
	if (is_refused)
		return;
	assert_true(strlen(rbx_endpoint_name(endpoints->a.endpoint)) > 0);
	rbx_endpoint_close(endpoints->a.endpoint);
	rbx_endpoint_close(endpoints->b.endpoint);
	endpoints->a.endpoint = endpoints->b.endpoint = NULL;
}

static void private_data_arrives_as_it_was_given(void **state)
{
	struct endpoints endpoints;

	(void)state;
	sides_open(&endpoints);
	meets_with_data(&endpoints, 0, 0, false);
	meets_with_data(&endpoints, 1, 1, false);
	meets_with_data(&endpoints, 17, 99, false);
	meets_with_data(&endpoints, endpoints.a.limits.connect_data_max,
			endpoints.a.limits.accept_data_max, false);
	sides_close(&endpoints);
}

static void a_refusal_says_what_the_other_side_says(void **state)
{
	struct endpoints endpoints;

	(void)state;
	sides_open(&endpoints);
	meets_with_data(&endpoints, 5, 0, true);
	meets_with_data(&endpoints, 0, 11, true);
	meets_with_data(&endpoints, 56, endpoints.a.limits.reject_data_max, true);
	/* And then others may connect. */
	meets_with_data(&endpoints, 1, 1, false);
	sides_close(&endpoints);
}

static void data_too_long_is_refused_before_anything_is_sent(void **state)
{
	uint8_t bytes[256] = { 0 };
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_endpoint_data data = { bytes, 57 };
	struct rbx_endpoint *endpoint;
	struct endpoints endpoints;

	(void)state;
	sides_open(&endpoints);
	options.queue = endpoints.a.queue;
	assert_int_equal(rbx_endpoint_connect(
				 endpoints.a.ctx,
				 rbx_endpoint_listener_address(endpoints.listener),
				 &options, &data, NULL, &endpoint),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "56"));
	sides_close(&endpoints);
}

static void who_meets_nobody_is_told_so(void **state)
{
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_endpoint_request *request;
	struct rbx_endpoint *endpoint;
	struct endpoints endpoints;
	char address[128];

	(void)state;
	sides_open(&endpoints);
	assert_int_equal(rbx_endpoint_next_request(endpoints.listener, 0, &request),
			 -EAGAIN);
	assert_int_equal(rbx_endpoint_next_request(endpoints.listener, 20, &request),
			 -EAGAIN);
	strcpy(address, rbx_endpoint_listener_address(endpoints.listener));
	rbx_endpoint_listener_close(endpoints.listener);
	endpoints.listener = NULL;
	options.queue = endpoints.a.queue;
	assert_int_equal(rbx_endpoint_connect(endpoints.a.ctx, address, &options,
					      NULL, NULL, &endpoint),
			 -ECONNREFUSED);
	assert_int_equal(rbx_endpoint_connect(endpoints.a.ctx, "nowhere", &options,
					      NULL, NULL, &endpoint),
			 -EINVAL);
	sides_close(&endpoints);
}

struct lone {
	struct endpoints *endpoints;
	char address[128];
};

static void *connect_alone(void *user)
{
	struct lone *lone = user;
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_endpoint *endpoint;

	options.queue = lone->endpoints->a.queue;
	return (void *)(intptr_t)rbx_endpoint_connect(lone->endpoints->a.ctx,
						      lone->address, &options,
						      NULL, NULL, &endpoint);
}

static void who_asks_is_refused_when_the_listener_goes(void **state)
{
	struct endpoints endpoints;
	struct lone lone = { .endpoints = &endpoints };
	struct pollfd asked = { .events = POLLIN };
	pthread_t thread;
	void *err;

	(void)state;
	sides_open(&endpoints);
	strcpy(lone.address, rbx_endpoint_listener_address(endpoints.listener));
	assert_int_equal(pthread_create(&thread, NULL, connect_alone, &lone), 0);
	asked.fd = rbx_endpoint_listener_fd(endpoints.listener);
	assert_int_equal(poll(&asked, 1, 20000), 1);
	rbx_endpoint_listener_close(endpoints.listener);
	endpoints.listener = NULL;
	pthread_join(thread, &err);
	if ((intptr_t)err != -EBUSY && (intptr_t)err != -ECONNREFUSED &&
	    (intptr_t)err != -ECONNRESET)
		fail_msg("%d", (int)(intptr_t)err);
	sides_close(&endpoints);
}

static void options_that_cannot_be_are_refused(void **state)
{
	struct rbx_endpoint_options options;
	struct endpoints endpoints;
	struct meeting meeting = {
		.endpoints = &endpoints,
		.a_options = endpoint_options,
		.b_options = &endpoint_options,
	};

	(void)state;
	sides_open(&endpoints);
	for (int i = 0; i < 5; i++) {
		struct rbx_endpoint *endpoint;

		options = endpoint_options;
		options.queue = endpoints.a.queue;
		if (i == 0)
			options.queue = NULL;
		else if (i == 1)
			options.queue = endpoints.b.queue;
		else if (i == 2)
			options.size_bytes = 3;
		else if (i == 3)
			options.segments = endpoints.a.limits.segments_max + 1;
		else
			options.send_depth = endpoints.a.limits.send_depth_max + 1;
		assert_int_equal(
			rbx_endpoint_connect(endpoints.a.ctx,
					     rbx_endpoint_listener_address(
						     endpoints.listener),
					     &options, NULL, NULL, &endpoint),
			-EINVAL);
	}
	/* All that was taken of the queue by these was given back. */
	meeting.a_options.send_depth = 512;
	meeting.a_options.receive_depth = 512;
	if (meet(&meeting))
		fail_msg("%s", rbx_last_error());
	assert_in_range(rbx_endpoint_send_depth(endpoints.a.endpoint), 1, 512);
	options = endpoint_options;
	options.queue = endpoints.a.queue;
	assert_int_equal(rbx_endpoint_connect(
				 endpoints.a.ctx,
				 rbx_endpoint_listener_address(endpoints.listener),
				 &options, NULL, NULL, &endpoints.b.endpoint),
			 -ENOSPC);
	sides_close(&endpoints);
}

static void what_is_in_use_is_not_closed(void **state)
{
	struct endpoints endpoints;

	(void)state;
	endpoints_open(&endpoints);
	assert_int_equal(rbx_queue_destroy(endpoints.a.queue), -EBUSY);
	assert_int_equal(rbx_close(endpoints.a.ctx), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "queues"));
	endpoints_close(&endpoints);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_arrives_as_it_was_given),
		cmocka_unit_test(a_refusal_says_what_the_other_side_says),
		cmocka_unit_test(data_too_long_is_refused_before_anything_is_sent),
		cmocka_unit_test(who_meets_nobody_is_told_so),
		cmocka_unit_test(who_asks_is_refused_when_the_listener_goes),
		cmocka_unit_test(options_that_cannot_be_are_refused),
		cmocka_unit_test(what_is_in_use_is_not_closed),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
