/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_busy_test.c - who waits leaves the CPU to whoever has something to do.
 *
 * That is a poll that finds another thread with the qp, and the service thread while
 * it looks for more after a request.
 *
 * This program has a sched_yield() of its own, which stands in for that of the C
 * library and counts. What the other thread would hold, the test holds.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "endpoint.h"
#include "fabric/soft/queue_pair.h"

#define PATIENCE_MS 10000u

static _Thread_local bool is_test; /* this thread is the test's */
static int yield_count; /* of that one */
static _Atomic int yield_count_of_others;

int sched_yield(void)
{
	if (is_test)
		yield_count++;
	else
		atomic_fetch_add(&yield_count_of_others, 1);
	return 0;
}

static void poll_of_a_qp_in_use_yields(void **state)
{
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	soft_qp_lock(soft_qp_of(pair.client));
	yield_count = 0;
	test_nothing(&pair, pair.client_cq);
	assert_true(yield_count > 0);
	soft_qp_unlock(soft_qp_of(pair.client));
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 64), 0);
	test_pair_close(&pair);
}

static void service_that_looks_for_more_yields(void **state)
{
	struct test_pair pair;
	uint64_t until_ms = test_now_ms() + PATIENCE_MS;

	(void)state;
	if (strcmp(test_fabric, "soft:tcp"))
		skip(); /* a mapping needs no service */
	test_pair_open(&pair, NULL);
	atomic_store(&yield_count_of_others, 0);
	while (atomic_load(&yield_count_of_others) == 0) {
		assert_true(test_now_ms() < until_ms);
		assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 64), 0);
	}
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll_of_a_qp_in_use_yields),
		cmocka_unit_test(service_that_looks_for_more_yields),
	};

	is_test = true;
	return test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
