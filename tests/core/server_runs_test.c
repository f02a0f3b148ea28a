/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* server_runs_test.c - each fragment is in the run of its server, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/server_runs.h"

#define FRAGMENTS 12u

static struct rbx_fragment fragments[FRAGMENTS];
static struct rbx_server_runs runs;

static void add(uint32_t number, uint32_t server)
{
	rbx_server_runs_add(&runs, server, &fragments[number]);
}

/* A run of these fragments, which are step apart. */
static void expect(uint32_t number, uint32_t server, uint32_t first, uint32_t step,
		   uint32_t count)
{
	const struct rbx_node *node = runs.all[number].head.next;

	assert_int_equal(runs.all[number].server, server);
	runs.all[number].last->next = NULL;
	for (uint32_t i = 0; i < count; i++, node = node->next)
		assert_ptr_equal(node, &fragments[first + i * step].node);
	assert_null(node);
}

static void server_runs_keep_the_order_within_each(void **state)
{
	(void)state;
	rbx_server_runs_begin(&runs);
	assert_int_equal(runs.count, 0);
	for (uint32_t i = 0; i < FRAGMENTS; i++)
		add(i, i % 3 ? i % 3 : 1000);
	assert_int_equal(runs.count, 3);
	expect(0, 1000, 0, 3, 4);
	expect(1, 1, 1, 3, 4);
	expect(2, 2, 2, 3, 4);
}

static void server_runs_one_after_another_need_no_search(void **state)
{
	(void)state;
	rbx_server_runs_begin(&runs);
	for (uint32_t i = 0; i < FRAGMENTS; i++)
		add(i, i / 6);
	assert_int_equal(runs.count, 2);
	expect(0, 0, 0, 1, 6);
	expect(1, 1, 6, 1, 6);
}

/* A slab may add a run for each of its slots. */
static void server_runs_have_room_for_a_slab_or_say_so(void **state)
{
	uint32_t server = 0;

	(void)state;
	rbx_server_runs_begin(&runs);
	while (rbx_server_runs_have_room(&runs))
		for (uint32_t slot = 0; slot < RBX_SLOTS_MAX; slot++, server++)
			add(server % FRAGMENTS, server);
	assert_int_equal(runs.count, RBX_SERVER_RUNS_MAX);
	rbx_server_runs_begin(&runs);
	assert_true(rbx_server_runs_have_room(&runs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_runs_keep_the_order_within_each),
		cmocka_unit_test(server_runs_one_after_another_need_no_search),
		cmocka_unit_test(server_runs_have_room_for_a_slab_or_say_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
