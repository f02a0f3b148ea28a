/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poll_policy_test.c - algorithm 3, and the poll that the original lacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/poll_policy.h"

static void policy_arms_after_retry_empty_polls(void **state)
{
	struct rbx_poll_policy policy;

	(void)state;
	rbx_poll_policy_init(&policy, 120, 32);
	for (int i = 0; i < 120; i++)
		assert_int_equal(rbx_poll_policy_next(&policy, 0),
				 RBX_POLL_AGAIN);
	assert_int_equal(rbx_poll_policy_next(&policy, 0), RBX_POLL_ARM);
}

static void policy_polls_between_arming_and_sleeping(void **state)
{
	struct rbx_poll_policy policy;

	(void)state;
	rbx_poll_policy_init(&policy, 0, 32);
	assert_int_equal(rbx_poll_policy_next(&policy, 0), RBX_POLL_ARM);
	assert_int_equal(rbx_poll_policy_next(&policy, 0), RBX_POLL_SLEEP);
}

static void policy_completion_after_arming_prevents_sleep(void **state)
{
	struct rbx_poll_policy policy;

	(void)state;
	rbx_poll_policy_init(&policy, 0, 32);
	assert_int_equal(rbx_poll_policy_next(&policy, 0), RBX_POLL_ARM);
	assert_int_equal(rbx_poll_policy_next(&policy, 3), RBX_POLL_AGAIN);
	assert_int_equal(rbx_poll_policy_next(&policy, 0), RBX_POLL_ARM);
}

static void policy_completion_starts_retries_anew(void **state)
{
	struct rbx_poll_policy policy;

	(void)state;
	rbx_poll_policy_init(&policy, 3, 32);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(rbx_poll_policy_next(&policy, 0),
					 RBX_POLL_AGAIN);
		assert_int_equal(rbx_poll_policy_next(&policy, 1),
				 RBX_POLL_AGAIN);
	}
}

/* The original never reset its counter, and slept at the first empty poll
 * for ever after. */
static void policy_sleep_starts_retries_anew(void **state)
{
	struct rbx_poll_policy policy;

	(void)state;
	rbx_poll_policy_init(&policy, 4, 32);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(rbx_poll_policy_next(&policy, 0),
					 RBX_POLL_AGAIN);
		assert_int_equal(rbx_poll_policy_next(&policy, 0),
				 RBX_POLL_ARM);
		assert_int_equal(rbx_poll_policy_next(&policy, 0),
				 RBX_POLL_SLEEP);
	}
}

static void policy_busy_never_arms(void **state)
{
	struct rbx_poll_policy policy;

	(void)state;
	rbx_poll_policy_init(&policy, RBX_POLL_RETRY_FOREVER, 32);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(rbx_poll_policy_next(&policy, 0),
				 RBX_POLL_AGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policy_arms_after_retry_empty_polls),
		cmocka_unit_test(policy_polls_between_arming_and_sleeping),
		cmocka_unit_test(policy_completion_after_arming_prevents_sleep),
		cmocka_unit_test(policy_completion_starts_retries_anew),
		cmocka_unit_test(policy_sleep_starts_retries_anew),
		cmocka_unit_test(policy_busy_never_arms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
