/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * due_test.c - which clock is due first, beside a search through all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/random.h"
#include "lib/session/set.h"

#define CLOCKS_COUNT RBX_BANK_SESSIONS
#define STEPS_COUNT 20000

static struct rbx_due due;
static struct rbx_clock clocks[CLOCKS_COUNT];

static uint64_t first_ns(void)
{
	uint64_t ns = UINT64_MAX;

	for (uint32_t i = 0; i < CLOCKS_COUNT; i++)
		ns = RBX_MIN(ns, clocks[i].due_ns);
	return ns;
}

static void check(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CLOCKS_COUNT; i++) {
		if (clocks[i].due_ns == UINT64_MAX) {
			assert_int_equal(clocks[i].due_place, 0);
			continue;
		}
		count++;
		assert_ptr_equal(due.clocks[clocks[i].due_place - 1],
				 &clocks[i]);
	}
	assert_int_equal(due.count, count);
	if (count)
		assert_int_equal(due.clocks[0]->due_ns, first_ns());
}

/* Few times, so that many are the same; and one in four is not due any more. */
static void first_is_the_first_of_all(void **state)
{
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 1);
	for (uint32_t i = 0; i < CLOCKS_COUNT; i++)
		clocks[i].due_ns = UINT64_MAX;
	for (uint32_t step = 0; step < STEPS_COUNT; step++) {
		struct rbx_clock *clock =
			&clocks[rbx_random_below(&random, CLOCKS_COUNT)];
		uint64_t at_ns = rbx_random_below(&random, 100);

		rbx_due_set(&due, clock,
			    rbx_random_below(&random, 4) ? at_ns : UINT64_MAX);
		check();
	}
	while (due.count) {
		rbx_due_set(&due, due.clocks[0], UINT64_MAX);
		check();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_is_the_first_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
