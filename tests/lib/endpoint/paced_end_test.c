/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_end_test.c - how endpoints that are paced end: each operation is told of
 * once, whether it failed, was under way, or was posted when it was over.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/endpoint/endpoint.h"
#include "tests/lib/paced_endpoints.h"

struct sleeper {
	struct side *side;
	uint32_t told_count;
	int last_status;
};

static void *sleep_and_poll(void *user)
{
	struct sleeper *sleeper = user;
	struct rbx_completion completion;

	while (sleeper->told_count < 30 &&
	       rbx_queue_poll(sleeper->side->queue, &completion, 1, 20000) == 1) {
		sleeper->last_status = completion.status;
		sleeper->told_count++;
	}
	return NULL;
}

/* Also of what is posted when it is over, to one who sleeps. */
static void all_is_told_after_the_end(void **state)
{
	struct sleeper sleeper = { 0 };
	struct endpoints e;
	pthread_t thread;

	(void)state;
	open_paced(&e);
	for (uintptr_t i = 0; i < 20; i++)
		assert_int_equal(post_one(&e.a, at(&e.b, RBX_OPERATION_WRITE,
						   i * KIB, i), i * KIB, KIB), 0);
	rbx_endpoint_disconnect(e.b.endpoint);
	for (uintptr_t i = 0; i < 20; i++)
		(void)next_of(&e.a);
	sleeper.side = &e.a;
	assert_int_equal(pthread_create(&thread, NULL, sleep_and_poll, &sleeper), 0);
	for (uintptr_t i = 0; i < 30; i++)
		while (post_one(&e.a, at(&e.b, RBX_OPERATION_WRITE, 0, i), 0, KIB))
			usleep(1000);
	pthread_join(thread, NULL);
	assert_int_equal(sleeper.told_count, 30);
	assert_int_equal(sleeper.last_status, -EHOSTUNREACH);
	endpoints_close(&e);
}

/* The key is the program's business: what is denied to one operation says nothing of
 * others with that key. */
static void one_that_is_denied_says_nothing_of_others(void **state)
{
	struct rbx_operation operations[21];
	struct rbx_segment segments[21];
	struct endpoints e;
	int flushed_count = 0;

	(void)state;
	open_paced(&e);
	for (uint32_t i = 0; i < 21; i++) {
		operations[i] = at(&e.b, RBX_OPERATION_WRITE, 2 * i * KIB, i);
		segments[i] = segment_of(&e.a, 2 * i * KIB, KIB);
		operations[i].segments = &segments[i];
		operations[i].segments_count = 1;
	}
	operations[0].address = e.b.key.address - 4 * KIB;
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 21), 0);
	for (uint32_t i = 0; i < 21; i++) {
		struct rbx_completion completion = next_of(&e.a);

		if (completion.user == (void *)0) {
			assert_int_equal(completion.status, -EACCES);
			continue;
		}
		assert_true(completion.status == 0 ||
			    completion.status == -EHOSTUNREACH);
		flushed_count += completion.status != 0;
	}
	assert_in_range(flushed_count, 1, 20);
	endpoints_close(&e);
}

static void what_is_refused_is_told_in_order(void **state)
{
	struct endpoints e;

	(void)state;
	open_paced(&e);
	rbx_endpoint_disconnect(e.a.endpoint);
	for (uintptr_t i = 0; i < 40; i++)
		assert_int_equal(post_one(&e.a, at(&e.b, RBX_OPERATION_WRITE,
						   i * KIB, i), i * KIB, KIB), 0);
	for (uintptr_t i = 0; i < 40; i++)
		assert_ptr_equal(next_of(&e.a).user, (void *)i);
	endpoints_close(&e);
}

static void silent_one_is_told_of_if_it_fails(void **state)
{
	struct rbx_operation operation;
	struct rbx_completion completion;
	struct endpoints e;

	(void)state;
	open_paced(&e);
	operation = at(&e.b, RBX_OPERATION_WRITE, 0, 5);
	operation.flags = RBX_OPERATION_SILENT;
	rbx_endpoint_disconnect(e.a.endpoint);
	assert_int_equal(post_one(&e.a, operation, 0, KIB), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 5, -EHOSTUNREACH);
	assert_int_equal(rbx_queue_poll(e.a.queue, &completion, 1, 50), 0);
	endpoints_close(&e);
}

static const struct rbx_fabric_ops *real_ops;
static struct rbx_queue *polled;
static uint32_t destroyed_count;

/* Who polls has the lock, and completions in hand that name a queue pair. */
static void destroy_looks(struct rbx_qp *qp)
{
	destroyed_count++;
	assert_int_equal(pthread_mutex_trylock(&polled->lock), EBUSY);
	real_ops->destroy_qp(qp);
}

static void queue_pair_is_destroyed_while_nobody_polls(void **state)
{
	(void)state;
	destroyed_count = 0;
	/* No poller's thread reads the table of calls while it changes. */
	context_option = "pollers=0";
	for (uint8_t paced = 0; paced < 2; paced++) {
		struct rbx_fabric_ops ops;
		struct rbx_device *device;
		struct endpoints e;

		endpoint_options.paced = paced;
		endpoints_open(&e);
		polled = e.a.queue;
		device = e.a.ctx->device;
		real_ops = device->ops;
		ops = *real_ops;
		ops.destroy_qp = destroy_looks;
		device->ops = &ops;
		assert_int_equal(rbx_endpoint_close(e.a.endpoint), 0);
		e.a.endpoint = NULL;
		device->ops = real_ops;
		endpoints_close(&e);
	}
	context_option = "mode=hybrid";
	assert_int_equal(destroyed_count, 2);
}

static void closed_with_much_outstanding(void **state)
{
	struct endpoints e;

	(void)state;
	for (uint32_t round = 0; round < 20; round++) {
		open_paced(&e);
		for (uintptr_t i = 0; i < 60; i++)
			assert_int_equal(
				post_one(&e.a, at(&e.b, RBX_OPERATION_WRITE,
						  i * KIB, i), i * KIB, KIB), 0);
		for (uint32_t i = 0; i < round; i++)
			(void)next_of(&e.a);
		endpoints_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_told_after_the_end),
		cmocka_unit_test(one_that_is_denied_says_nothing_of_others),
		cmocka_unit_test(what_is_refused_is_told_in_order),
		cmocka_unit_test(silent_one_is_told_of_if_it_fails),
		cmocka_unit_test(queue_pair_is_destroyed_while_nobody_polls),
		cmocka_unit_test(closed_with_much_outstanding),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
