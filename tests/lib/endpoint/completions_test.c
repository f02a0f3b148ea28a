/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * completions_test.c - how a program hears of what it posted: not at all, by a
 * descriptor, by a call, and on one thread while others post.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "tests/lib/endpoints.h"

#define KIB 1024u

/* Calls of silent operations alone never fill the queue for good. */
static void silent_operations_make_room_for_others(void **state)
{
	struct rbx_operation write;
	struct rbx_completion none;
	struct endpoints e;
	uint32_t refused_count = 0;

	(void)state;
	endpoints_open(&e);
	write = operation_at(&e.b, RBX_OPERATION_WRITE, 0);
	write.flags = RBX_OPERATION_SILENT;
	for (uint32_t i = 0; i < 1000; i++) {
		int err;

		e.a.memory[0] = (uint8_t)i;
		while ((err = post_one(&e.a, write, 0, 1)) == -EAGAIN) {
			refused_count++;
			assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 10), 0);
		}
		assert_int_equal(err, 0);
	}
	assert_true(refused_count > 0);
	write.flags = 0;
	write.user = (void *)5;
	while (post_one(&e.a, write, 0, 1) == -EAGAIN)
		assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 10), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 5, 0);
	endpoints_close(&e);
}

/* ---- Waiting ----------------------------------------------------------------------*/

static void descriptor_tells_of_a_completion(void **state)
{
	struct pollfd event = { .events = POLLIN };
	struct rbx_completion completion;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	event.fd = rbx_queue_fd(e.b.queue);
	for (uintptr_t i = 1; i <= 50; i++) {
		receive_at(&e.b, 0, 64, i);
		assert_int_equal(rbx_queue_arm(e.b.queue), 0);
		assert_int_equal(rbx_queue_poll(e.b.queue, &completion, 1, 0), 0);
		assert_int_equal(rbx_queue_arm(e.b.queue), 0);
		assert_int_equal(post_one(&e.a, (struct rbx_operation){
					 .kind = RBX_OPERATION_SEND }, 0, 64), 0);
		assert_int_equal(poll(&event, 1, 20000), 1);
		while (rbx_queue_poll(e.b.queue, &completion, 1, 0) == 0)
			; /* it is on its way */
		assert_int_equal((uintptr_t)completion.user, i);
		expect(&e.a, RBX_COMPLETION_POSTED, 0, 0);
	}
	endpoints_close(&e);
}

static uint32_t told_count;

/* Answers each message, until it has been ten. */
static void told(const struct rbx_completion *completion)
{
	struct endpoints *e = rbx_endpoint_user(completion->endpoint);

	assert_int_equal(completion->status, 0);
	if (completion->kind != RBX_COMPLETION_RECEIVED)
		return;
	assert_ptr_equal(completion->endpoint, e->b.endpoint);
	assert_int_equal(rbx_endpoint_close(completion->endpoint), -EDEADLK);
	if (++told_count < 10)
		receive_at(&e->b, 0, 64, told_count);
	assert_int_equal(post_one(&e->b, (struct rbx_operation){
				 .kind = RBX_OPERATION_SEND,
				 .flags = RBX_OPERATION_SILENT }, 0, 64), 0);
}

static void completions_are_called_back(void **state)
{
	struct rbx_endpoint_options options = endpoint_options;
	struct endpoints e;
	struct meeting meeting = {
		.endpoints = &e,
		.a_options = endpoint_options,
		.b_options = &options,
	};

	(void)state;
	told_count = 0;
	sides_open(&e);
	options.completed = told;
	options.user = &e;
	if (meet(&meeting))
		fail_msg("%s", rbx_last_error());
	receive_at(&e.b, 0, 64, 0);
	assert_int_equal(rbx_queue_run(e.b.queue, 0), 0);
	for (uintptr_t i = 1; i <= 10; i++) {
		receive_at(&e.a, 64, 64, i);
		e.a.memory[0] = (uint8_t)i;
		assert_int_equal(post_one(&e.a, (struct rbx_operation){
					 .kind = RBX_OPERATION_SEND,
					 .flags = RBX_OPERATION_SILENT }, 0, 64), 0);
		while (told_count < i)
			assert_true(rbx_queue_run(e.b.queue, 20000) >= 0);
		expect(&e.a, RBX_COMPLETION_RECEIVED, i, 0);
		assert_int_equal(e.a.memory[64], i);
	}
	endpoints_close(&e);
}

/* ---- Threads ----------------------------------------------------------------------*/

#define THREADS 4
#define EACH 200u

static void *post_many(void *user)
{
	const struct endpoints *e = user;
	struct rbx_operation add = operation_at(&e->b, RBX_OPERATION_FETCH_ADD, 0);

	add.compare_add = 1;
	for (uint32_t i = 0; i < EACH; i++)
		while (post_one(&e->a, add, 64 * KIB, 8) == -EAGAIN)
			sched_yield();
	return NULL;
}

/* While another one polls. */
static void threads_post_on_one_endpoint(void **state)
{
	struct rbx_completion completions[8];
	pthread_t threads[THREADS];
	struct endpoints e;
	uint32_t count = 0;

	(void)state;
	endpoints_open(&e);
	if (!e.a.limits.has_atomics) {
		endpoints_close(&e);
		skip();
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, &e), 0);
	while (count < THREADS * EACH) {
		int found = rbx_queue_poll(e.a.queue, completions, 8, 20000);

		assert_true(found > 0);
		for (int i = 0; i < found; i++)
			assert_int_equal(completions[i].status, 0);
		count += (uint32_t)found;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Read as the other side would: by the device. */
	assert_int_equal(post_one(&e.a, operation_at(&e.b, RBX_OPERATION_READ, 0),
				  0, 8), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_READ + 1, 0);
	assert_int_equal(*(uint64_t *)(void *)e.a.memory, THREADS * EACH);
	endpoints_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_operations_make_room_for_others),
		cmocka_unit_test(descriptor_tells_of_a_completion),
		cmocka_unit_test(completions_are_called_back),
		cmocka_unit_test(threads_post_on_one_endpoint),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
