/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_test.c - endpoints whose operations go through the window: neighbours are
 * merged, credit goes round, and each operation ends once, and is told of. How such
 * endpoints end is in endpoint_paced_end_test.c.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/paced_endpoints.h"

/* ---- What it is for ---------------------------------------------------------------*/

/* The first few go at once; those that wait behind them have become neighbours. */
static void neighbours_are_merged_and_each_is_told_of(void **state)
{
	struct rbx_stats stats;
	struct rbx_operation operations[60];
	struct rbx_segment segments[60];
	bool is_told[60] = { 0 };
	struct endpoints e;

	(void)state;
	open_paced(&e);
	for (uint32_t i = 0; i < 60 * KIB; i++)
		e.a.memory[i] = (uint8_t)(i * 7 + i / 251);
	for (uint32_t i = 0; i < 60; i++) {
		operations[i] = at(&e.b, RBX_OPERATION_WRITE, i * KIB, i);
		segments[i] = segment_of(&e.a, i * KIB, KIB);
		operations[i].segments = &segments[i];
		operations[i].segments_count = 1;
	}
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 60), 0);
	for (uint32_t i = 0; i < 60; i++) {
		struct rbx_completion completion = next_of(&e.a);
		uintptr_t user = (uintptr_t)completion.user;

		assert_int_equal(completion.status, 0);
		assert_in_range(user, 0, 59);
		assert_false(is_told[user]);
		is_told[user] = true;
	}
	assert_memory_equal(e.b.memory, e.a.memory, 60 * KIB);
	rbx_stats_get(e.a.ctx, &stats);
	assert_in_range(stats.work_requests, 1, 20);
	endpoints_close(&e);
}

/* The program takes one at a time of what came back together. */
static void what_was_merged_is_polled_one_by_one(void **state)
{
	struct rbx_operation operations[8];
	struct rbx_segment segments[8];
	struct rbx_completion completion;
	struct endpoints e;
	uint32_t count = 0;

	(void)state;
	open_paced(&e);
	for (uint32_t i = 0; i < 8; i++) {
		operations[i] = at(&e.b, RBX_OPERATION_READ, i * KIB, i + 1);
		segments[i] = segment_of(&e.a, i * KIB, KIB);
		operations[i].segments = &segments[i];
		operations[i].segments_count = 1;
		e.b.memory[i * KIB] = (uint8_t)(i + 1);
	}
	operations[7].flags = RBX_OPERATION_SILENT | RBX_OPERATION_URGENT;
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 8), 0);
	while (count < 7) {
		completion = next_of(&e.a);
		assert_int_equal(completion.status, 0);
		assert_in_range((uintptr_t)completion.user, 1, 7);
		count++;
	}
	assert_int_equal(rbx_queue_poll(e.a.queue, &completion, 1, 50), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(e.a.memory[i * KIB], i + 1);
	endpoints_close(&e);
}

/* Also if a message comes with what was merged. */
static void no_more_is_polled_than_there_is_room_for(void **state)
{
	const struct rbx_operation send = { .kind = RBX_OPERATION_SEND };
	struct rbx_operation operations[9];
	struct rbx_segment segments[9];
	struct rbx_completion completions[9];
	struct endpoints e;

	(void)state;
	context_option = "window_work_requests=1";
	open_paced(&e);
	receive_at(&e.a, 512 * KIB, KIB, 20);
	for (uint32_t i = 0; i < 9; i++) {
		operations[i] = at(&e.b, RBX_OPERATION_WRITE, i * KIB, i + 1);
		segments[i] = segment_of(&e.a, i * KIB, KIB);
		operations[i].segments = &segments[i];
		operations[i].segments_count = 1;
	}
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 1), 0);
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, &operations[1], 8), 0);
	/* The others go as one when the first one is back. */
	expect(&e.a, RBX_COMPLETION_POSTED, 1, 0);
	assert_int_equal(post_one(&e.b, send, 0, 16), 0);
	usleep(50000);
	for (uint32_t count = 0; count < 9;) {
		int got = rbx_queue_poll(e.a.queue, completions, 2, 20000);

		assert_in_range(got, 1, 2);
		count += (uint32_t)got;
	}
	assert_int_equal(rbx_queue_poll(e.a.queue, completions, 2, 0), 0);
	endpoints_close(&e);
	context_option = "mode=hybrid";
}

/* A fence, and messages that keep their order; the data of what is inline are copied. */
static void fence_and_messages_are_in_order(void **state)
{
	struct rbx_operation operations[3];
	struct rbx_segment segments[3];
	struct endpoints e;
	uint8_t word[8];

	(void)state;
	open_paced(&e);
	for (uint32_t round = 0; round < 50; round++) {
		receive_at(&e.b, 512 * KIB, KIB, 1);
		receive_at(&e.b, 513 * KIB, KIB, 2);
		memset(word, (int)round, sizeof(word));
		memset(e.a.memory, (int)round, 64 * KIB);
		operations[0] = at(&e.b, RBX_OPERATION_WRITE, 0, 10);
		segments[0] = segment_of(&e.a, 0, 64 * KIB);
		operations[1] = (struct rbx_operation){
			.kind = RBX_OPERATION_SEND,
			.flags = RBX_OPERATION_FENCE | RBX_OPERATION_INLINE,
			.user = (void *)11,
		};
		segments[1] = (struct rbx_segment){ word, sizeof(word), NULL };
		operations[2] = (struct rbx_operation){
			.kind = RBX_OPERATION_SEND,
			.user = (void *)12,
		};
		segments[2] = segment_of(&e.a, 0, 16);
		for (uint32_t i = 0; i < 3; i++) {
			operations[i].segments = &segments[i];
			operations[i].segments_count = 1;
		}
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 3), 0);
		memset(word, 0xee, sizeof(word));
		/* The fence passes when it is polled that all before has ended. */
		expect(&e.a, RBX_COMPLETION_POSTED, 10, 0);
		expect(&e.b, RBX_COMPLETION_RECEIVED, 1, 0);
		assert_int_equal(e.b.memory[64 * KIB - 1], round);
		assert_int_equal(e.b.memory[512 * KIB], round);
		expect(&e.b, RBX_COMPLETION_RECEIVED, 2, 0);
		assert_int_equal(e.b.memory[513 * KIB], round);
		expect(&e.a, RBX_COMPLETION_POSTED, 11, 0);
		expect(&e.a, RBX_COMPLETION_POSTED, 12, 0);
	}
	endpoints_close(&e);
}

/* ---- Credit ------------------------------------------------------------------------*/

/* Two on one window that is full with the first one's. */
static void open_full_window(struct endpoints *e, struct rbx_endpoint **first,
			     struct rbx_endpoint **first_there)
{
	const struct rbx_operation send = { .kind = RBX_OPERATION_SEND };
	struct meeting meeting = {
		.endpoints = e,
		.b_options = &endpoint_options,
	};

	context_option = "window_work_requests=1";
	open_paced(e);
	meeting.a_options = endpoint_options;
	*first = e->a.endpoint;
	*first_there = e->b.endpoint;
	/* Nobody receives it: it stays under way, and has all the window there is. */
	assert_int_equal(post_one(&e->a, send, 0, 4096), 0);
	assert_int_equal(meet(&meeting), 0);
}

static void credit_of_who_is_closed_is_for_others(void **state)
{
	struct rbx_operation operation = { .kind = RBX_OPERATION_SEND };
	struct rbx_endpoint *first, *first_there;
	struct rbx_completion completion;
	struct endpoints e;

	(void)state;
	open_full_window(&e, &first, &first_there);
	receive_at(&e.b, 0, 4096, 1);
	operation.user = (void *)2;
	assert_int_equal(post_one(&e.a, operation, 0, 4096), 0);
	assert_int_equal(rbx_queue_poll(e.a.queue, &completion, 1, 50), 0);
	assert_int_equal(rbx_endpoint_close(first), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 2, 0);
	assert_int_equal(rbx_endpoint_close(first_there), 0);
	endpoints_close(&e);
	context_option = "mode=hybrid";
}

/* It is told of the end at once, and not when the first one gives its credit back. */
static void disconnect_ends_what_waits_for_credit_of_others(void **state)
{
	struct rbx_operation operation = { .kind = RBX_OPERATION_SEND };
	struct rbx_endpoint *first, *first_there;
	struct rbx_completion completion;
	struct endpoints e;

	(void)state;
	open_full_window(&e, &first, &first_there);
	operation.user = (void *)2;
	assert_int_equal(post_one(&e.a, operation, 0, 4096), 0);
	rbx_endpoint_disconnect(e.a.endpoint);
	expect(&e.a, RBX_COMPLETION_POSTED, 2, -EHOSTUNREACH);
	assert_int_equal(rbx_queue_poll(e.a.queue, &completion, 1, 0), 0);
	assert_int_equal(rbx_endpoint_close(first), 0);
	assert_int_equal(rbx_endpoint_close(first_there), 0);
	endpoints_close(&e);
	context_option = "mode=hybrid";
}

/* ---- Several threads ---------------------------------------------------------------*/

struct poster {
	struct endpoints *e;
	uint32_t number;
	uint32_t posted_count;
};

static void *post_many(void *user)
{
	struct poster *poster = user;
	struct endpoints *e = poster->e;

	while (poster->posted_count < 500) {
		size_t offset = (poster->number * 64 + poster->posted_count % 64) * KIB;

		if (post_one(&e->a, at(&e->b, RBX_OPERATION_WRITE, offset, 1),
			     offset, KIB) == 0)
			poster->posted_count++;
	}
	return NULL;
}

static void threads_post_while_another_polls(void **state)
{
	struct poster posters[4];
	pthread_t threads[4];
	struct endpoints e;

	(void)state;
	open_paced(&e);
	for (uint32_t i = 0; i < 4; i++) {
		memset(e.a.memory + i * 64 * KIB, (int)i + 1, 64 * KIB);
		posters[i] = (struct poster){ &e, i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, post_many,
						&posters[i]), 0);
	}
	for (uint32_t i = 0; i < 2000; i++)
		assert_int_equal(next_of(&e.a).status, 0);
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_memory_equal(e.b.memory, e.a.memory, 256 * KIB);
	endpoints_close(&e);
}

/* ---- What is refused ---------------------------------------------------------------*/

static void what_it_does_not_do_is_refused(void **state)
{
	struct rbx_operation write;
	struct endpoints e;

	(void)state;
	open_paced(&e);
	write = at(&e.b, RBX_OPERATION_WRITE, 0, 1);
	assert_int_equal(post_one(&e.a, write, 0, 256 * KIB + 1), -EINVAL);
	assert_int_equal(post_one(&e.a, write, 0, 256 * KIB), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 1, 0);
	endpoints_close(&e);

	endpoint_options.paced = 0;
	endpoints_open(&e);
	write = at(&e.b, RBX_OPERATION_WRITE, 0, 1);
	write.flags = RBX_OPERATION_URGENT;
	assert_int_equal(post_one(&e.a, write, 0, KIB), -EINVAL);
	endpoints_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_are_merged_and_each_is_told_of),
		cmocka_unit_test(what_was_merged_is_polled_one_by_one),
		cmocka_unit_test(no_more_is_polled_than_there_is_room_for),
		cmocka_unit_test(fence_and_messages_are_in_order),
		cmocka_unit_test(credit_of_who_is_closed_is_for_others),
		cmocka_unit_test(disconnect_ends_what_waits_for_credit_of_others),
		cmocka_unit_test(threads_post_while_another_polls),
		cmocka_unit_test(what_it_does_not_do_is_refused),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
