/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_end_test.c - the orders in which a session can end: each of a handful of steps
 * in each order. Every call that waits returns, once; each connection is ended, once; the
 * owner is told at most once that one was lost; and nothing is told after the close.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/client/scene.h"

#define STEPS_MAX 8u

static uint32_t orders_count;

static void play_each_way(const char *order)
{
	uint32_t way;

	for (way = 0; way < 4; way++)
		scene_play(order, way & 1, way & 2);
	orders_count++;
}

/* All orders that begin with the first so many steps of word, and go on with its others;
 * of steps that are the same, each order once. */
static void orders_play(char *word, size_t first_count, size_t count)
{
	bool was_here[128] = { false };
	size_t i;

	if (first_count == count) {
		play_each_way(word);
		return;
	}
	for (i = first_count; i < count; i++) {
		char step = word[i];

		if (was_here[(unsigned char)step])
			continue;
		was_here[(unsigned char)step] = true;
		word[i] = word[first_count];
		word[first_count] = step;
		orders_play(word, first_count + 1, count);
		word[first_count] = word[i];
		word[i] = step;
	}
}

static void all_orders(const char *steps)
{
	char word[STEPS_MAX + 1];

	assert_true(strlen(steps) <= STEPS_MAX);
	strcpy(word, steps);
	orders_count = 0;
	orders_play(word, 0, strlen(steps));
	print_message("%u orders of \"%s\"\n", orders_count, steps);
}

/* The session is closed when all steps are over. */
static void end_is_told_though_it_comes_twice(void **state)
{
	(void)state;
	all_orders("maxee");
}

static void end_and_reason_while_call_waits(void **state)
{
	(void)state;
	all_orders("maxeec");
}

static void end_and_reason_while_messages_wait(void **state)
{
	(void)state;
	all_orders("laxeec");
}

static void end_while_resumed(void **state)
{
	(void)state;
	all_orders("rkaxec");
	all_orders("rkaaec");
	all_orders("rrkaec"); /* one waits for its turn, and a close may be before it */
}

static void end_while_resumed_and_call_waits(void **state)
{
	(void)state;
	all_orders("mrkaec");
	all_orders("mrkkaa");
	all_orders("lrkec");
}

static void end_while_given_up(void **state)
{
	(void)state;
	all_orders("lxegc");
}

/* Of a slow server: until it has read BYE it lends what went back to nobody. */
static void close_waits_while_server_does_not_count_as_lost(void **state)
{
	(void)state;
	assert_true(scene_close_waits(3000, 2999));
	assert_false(scene_close_waits(3000, 3001));
	/* Within bounds: whoever closes waits. */
	assert_true(scene_close_waits(50, 999));
	assert_false(scene_close_waits(50, 1001));
	assert_true(scene_close_waits(1800000, 4999));
	assert_false(scene_close_waits(1800000, 5001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_is_told_though_it_comes_twice),
		cmocka_unit_test(end_and_reason_while_call_waits),
		cmocka_unit_test(end_and_reason_while_messages_wait),
		cmocka_unit_test(end_while_resumed),
		cmocka_unit_test(end_while_resumed_and_call_waits),
		cmocka_unit_test(end_while_given_up),
		cmocka_unit_test(close_waits_while_server_does_not_count_as_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
