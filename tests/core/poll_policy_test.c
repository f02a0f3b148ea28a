/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_policy_test.c - what each rule does, and that none of them ever sleeps on
 * a completion: against a model of a completion queue that, like that of a NIC,
 * announces only what completes after it was armed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/poll_policy.h"
#include "core/random.h"

#define UNBOUNDED RBX_POLL_EVENT_UNBOUNDED

static struct rbx_poll_policy with(uint32_t retry_max, uint32_t batch_max,
				   uint32_t event_max)
{
	struct rbx_poll_rule rule = { retry_max, batch_max, event_max, false,
				      100 };
	struct rbx_poll_policy policy;

	rbx_poll_policy_init(&policy, &rule);
	return policy;
}

static void expect(struct rbx_poll_policy *policy, uint32_t completion_count,
		   enum rbx_poll_step step)
{
	assert_int_equal(rbx_poll_policy_next(policy, completion_count, 0),
			 step);
}

static void policy_arms_after_retry_empty_polls(void **state)
{
	struct rbx_poll_policy policy = with(120, 32, UNBOUNDED);

	(void)state;
	for (int i = 0; i < 120; i++)
		expect(&policy, 0, RBX_POLL_AGAIN);
	expect(&policy, 0, RBX_POLL_ARM);
}

static void policy_polls_between_arming_and_sleeping(void **state)
{
	struct rbx_poll_policy policy = with(0, 32, UNBOUNDED);

	(void)state;
	expect(&policy, 0, RBX_POLL_ARM);
	expect(&policy, 0, RBX_POLL_SLEEP);
}

static void policy_completion_after_arming_prevents_sleep(void **state)
{
	struct rbx_poll_policy policy = with(0, 32, UNBOUNDED);

	(void)state;
	expect(&policy, 0, RBX_POLL_ARM);
	expect(&policy, 3, RBX_POLL_AGAIN);
	expect(&policy, 0, RBX_POLL_ARM);
}

static void policy_completion_starts_retries_anew(void **state)
{
	struct rbx_poll_policy policy = with(3, 32, UNBOUNDED);

	(void)state;
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 3; i++)
			expect(&policy, 0, RBX_POLL_AGAIN);
		expect(&policy, 1, RBX_POLL_AGAIN);
	}
}

/* The original never reset its counter, and slept at the first empty poll
 * for ever after. */
static void policy_sleep_starts_retries_anew(void **state)
{
	struct rbx_poll_policy policy = with(4, 32, UNBOUNDED);

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 4; i++)
			expect(&policy, 0, RBX_POLL_AGAIN);
		expect(&policy, 0, RBX_POLL_ARM);
		expect(&policy, 0, RBX_POLL_SLEEP);
	}
}

static void policy_busy_never_arms(void **state)
{
	struct rbx_poll_policy policy =
		with(RBX_POLL_RETRY_FOREVER, 32, UNBOUNDED);

	(void)state;
	for (int i = 0; i < 100000; i++)
		expect(&policy, 0, RBX_POLL_AGAIN);
}

static void policy_event_takes_one_and_arms(void **state)
{
	struct rbx_poll_policy policy = with(0, 1, 1);

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(rbx_poll_policy_ask(&policy), 1);
		expect(&policy, 1, RBX_POLL_ARM);
	}
	expect(&policy, 0, RBX_POLL_SLEEP);
}

static void policy_event_batch_takes_n_and_arms(void **state)
{
	struct rbx_poll_policy policy = with(0, 32, 40);

	(void)state;
	assert_int_equal(rbx_poll_policy_ask(&policy), 32);
	expect(&policy, 32, RBX_POLL_AGAIN);
	assert_int_equal(rbx_poll_policy_ask(&policy), 8);
	expect(&policy, 8, RBX_POLL_ARM);
	assert_int_equal(rbx_poll_policy_ask(&policy), 32);
	expect(&policy, 5, RBX_POLL_AGAIN);
	expect(&policy, 0, RBX_POLL_ARM);
	expect(&policy, 0, RBX_POLL_SLEEP);
}

/* ---- Against a queue -------------------------------------------------------*/

/* A completion queue with the least that a fabric promises. */
struct queue {
	uint32_t waiting_count;
	bool armed;
	bool event; /* the descriptor is readable */
};

static void complete(struct queue *queue, uint32_t count)
{
	queue->waiting_count += count;
	if (count != 0 && queue->armed) {
		queue->event = true;
		queue->armed = false;
	}
}

static uint32_t take(struct queue *queue, uint32_t max)
{
	uint32_t count = RBX_MIN(queue->waiting_count, max);

	queue->waiting_count -= count;
	return count;
}

static uint32_t arrivals(struct rbx_random *random)
{
	return rbx_random_below(random, 4) ? 0 : rbx_random_below(random, 50);
}

/* Completions may come between any two steps. */
static void run(const struct rbx_poll_rule *rule, uint64_t seed)
{
	struct rbx_poll_policy policy;
	struct rbx_random random;
	struct queue queue = { 0 };
	uint32_t since_arm = 0;
	uint64_t now_ns = 1000;

	rbx_random_seed(&random, seed);
	rbx_poll_policy_init(&policy, rule);
	for (int i = 0; i < 20000; i++) {
		uint32_t count = take(&queue, rbx_poll_policy_ask(&policy));

		now_ns += rbx_random_below(&random, 2000);
		since_arm += count;
		complete(&queue, arrivals(&random));
		switch (rbx_poll_policy_next(&policy, count, now_ns)) {
		case RBX_POLL_AGAIN:
			break;
		case RBX_POLL_ARM:
			assert_true(since_arm <= rule->event_max);
			since_arm = 0;
			queue.armed = true;
			complete(&queue, arrivals(&random));
			break;
		case RBX_POLL_SLEEP:
			/* What lies there was announced, or nothing does. */
			assert_true(queue.event || queue.waiting_count == 0);
			assert_true(queue.event || queue.armed);
			while (!queue.event)
				complete(&queue, arrivals(&random));
			queue.event = false;
			break;
		}
	}
}

static void policy_never_sleeps_on_a_completion(void **state)
{
	static const struct rbx_poll_rule rules[] = {
		{ 0, 1, 1, false, 100 },
		{ 0, 32, 8, false, 100 },
		{ 0, 32, 100, false, 100 },
		{ 0, 32, UNBOUNDED, false, 100 },
		{ 3, 4, UNBOUNDED, false, 100 },
		{ 0, 32, UNBOUNDED, true, 100 },
		{ 0, 32, UNBOUNDED, true, 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		for (uint64_t seed = 0; seed < 20; seed++)
			run(&rules[i], seed);
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
		cmocka_unit_test(policy_event_takes_one_and_arms),
		cmocka_unit_test(policy_event_batch_takes_n_and_arms),
		cmocka_unit_test(policy_never_sleeps_on_a_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
