/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_busy_test.c - a poll that finds another thread with the qp leaves it the CPU.
 *
 * This program has a sched_yield() of its own, which stands in for that of the C
 * library and counts. What the other thread would hold, the test holds.
 */
#include <sched.h>

#include "endpoint.h"
#include "fabric/soft/queue_pair.h"

static _Thread_local int yield_count;

int sched_yield(void)
{
	yield_count++;
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll_of_a_qp_in_use_yields),
	};

	return test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
