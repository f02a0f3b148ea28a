/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * answer_test.c - ends that work when they are polled: what they acknowledge may
 * wait for their next post, but for nothing else. A sender is told of each message that
 * has come, whether it is answered or not, and whatever the other side does next.
 *
 * One thread is both sides, so that the order of all calls is known.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/endpoints.h"

#define TRIES 2000000

static void open_polled(struct endpoints *e)
{
	endpoint_options.works_when_polled = 1;
	endpoints_open(e);
	endpoint_options.works_when_polled = 0;
}

static void send_one(const struct side *side, uintptr_t user)
{
	assert_int_equal(post_one(side, (struct rbx_operation){
				 .kind = RBX_OPERATION_SEND, .user = (void *)user }, 0, 64),
			 0);
}

/* Polls one side alone until something completes; fails the test if nothing does. */
static struct rbx_completion poll_alone(const struct side *side)
{
	struct rbx_completion completion;

	for (uint32_t i = 0; i < TRIES; i++)
		if (rbx_queue_poll(side->queue, &completion, 1, 0) == 1)
			return completion;
	fail_msg("nothing completes");
	return completion;
}

static void assert_done(const struct side *side, uintptr_t user)
{
	struct rbx_completion completion = poll_alone(side);

	assert_int_equal(completion.status, 0);
	assert_int_equal((uintptr_t)completion.user, user);
}

/* The acknowledgement, which no post carries, goes with the next poll. */
static void a_message_that_is_not_answered_completes(void **state)
{
	struct rbx_completion none;
	struct endpoints e;

	(void)state;
	open_polled(&e);
	for (uintptr_t i = 1; i < 60; i++) {
		receive_at(&e.b, 0, 64, i);
		send_one(&e.a, i);
		assert_done(&e.b, i);
		assert_int_equal(rbx_queue_poll(e.b.queue, &none, 1, 0), 0);
		assert_done(&e.a, i);
	}
	endpoints_close(&e);
}

static void a_message_completes_when_the_receiver_goes_to_sleep(void **state)
{
	struct endpoints e;

	(void)state;
	open_polled(&e);
	for (uintptr_t i = 1; i < 60; i++) {
		receive_at(&e.b, 0, 64, i);
		send_one(&e.a, i);
		assert_done(&e.b, i);
		assert_int_equal(rbx_queue_arm(e.b.queue), 0);
		assert_done(&e.a, i);
	}
	endpoints_close(&e);
}

static void a_message_that_is_answered_completes_with_the_answer(void **state)
{
	struct endpoints e;

	(void)state;
	open_polled(&e);
	for (uintptr_t i = 1; i < 60; i++) {
		struct rbx_completion first, second;

		receive_at(&e.a, 0, 64, i);
		receive_at(&e.b, 0, 64, i);
		send_one(&e.a, 100 + i);
		assert_done(&e.b, i);
		send_one(&e.b, 200 + i);
		/* Both are there, and b has not polled. */
		first = poll_alone(&e.a);
		second = poll_alone(&e.a);
		assert_int_equal((uintptr_t)first.user, 100 + i);
		assert_int_equal((uintptr_t)second.user, i);
		assert_done(&e.b, 200 + i);
	}
	endpoints_close(&e);
}

static void a_message_completes_when_the_receiver_leaves(void **state)
{
	(void)state;
	for (int closes = 0; closes < 2; closes++) {
		struct endpoints e;

		open_polled(&e);
		receive_at(&e.b, 0, 64, 1);
		send_one(&e.a, 2);
		assert_done(&e.b, 1);
		if (closes) {
			rbx_endpoint_close(e.b.endpoint);
			e.b.endpoint = NULL;
		} else {
			rbx_endpoint_disconnect(e.b.endpoint);
		}
		assert_done(&e.a, 2);
		endpoints_close(&e);
	}
}

/* Of several on one queue one alone may hold something back. */
static void messages_of_many_endpoints_complete(void **state)
{
	enum { MANY = 5 };
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_endpoint *of_a[MANY], *of_b[MANY];
	struct rbx_completion none;
	struct endpoints e;

	(void)state;
	sides_open(&e);
	options.works_when_polled = 1;
	options.send_depth = options.receive_depth = 8;
	for (int i = 0; i < MANY; i++) {
		struct meeting meeting = {
			.endpoints = &e,
			.a_options = options,
			.b_options = &options,
		};

		if (meet(&meeting))
			fail_msg("%s", rbx_last_error());
		of_a[i] = e.a.endpoint;
		of_b[i] = e.b.endpoint;
	}
	for (uint32_t round = 0; round < 50; round++) {
		uint32_t done_count = 0;

		for (uintptr_t i = 0; i < MANY; i++) {
			e.b.endpoint = of_b[i];
			e.a.endpoint = of_a[i];
			receive_at(&e.b, 0, 64, i);
			send_one(&e.a, i);
		}
		for (int i = 0; i < MANY; i++)
			assert_int_equal(poll_alone(&e.b).status, 0);
		assert_int_equal(rbx_queue_poll(e.b.queue, &none, 1, 0), 0);
		for (; done_count < MANY; done_count++)
			assert_int_equal(poll_alone(&e.a).status, 0);
	}
	for (int i = 0; i < MANY; i++) {
		rbx_endpoint_close(of_a[i]);
		rbx_endpoint_close(of_b[i]);
	}
	e.a.endpoint = e.b.endpoint = NULL;
	sides_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_that_is_not_answered_completes),
		cmocka_unit_test(a_message_completes_when_the_receiver_goes_to_sleep),
		cmocka_unit_test(a_message_that_is_answered_completes_with_the_answer),
		cmocka_unit_test(a_message_completes_when_the_receiver_leaves),
		cmocka_unit_test(messages_of_many_endpoints_complete),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
