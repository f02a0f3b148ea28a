/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_order_test.c - random lists against a sort by insertion, which is
 * stable and too simple to be wrong.
 *
 * A fragment without length is its own neighbour, so that its list is sorted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/remote_order.h"

#define FRAGMENTS (3 * RBX_OVERTAKE_MAX)

static struct rbx_fragment fragments[FRAGMENTS];

static struct rbx_fragment *link_up(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		fragments[i].node.next =
			i + 1 < count ? &fragments[i + 1].node : NULL;
	return fragments;
}

static int before(const struct rbx_fragment *a, const struct rbx_fragment *b)
{
	return a->rkey < b->rkey ||
	       (a->rkey == b->rkey && a->remote_addr < b->remote_addr);
}

/* The first `count` fragments in the order that is expected. */
static void sort_simply(const struct rbx_fragment *wanted[], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		unsigned int at = i;

		for (; at > 0 && before(&fragments[i], wanted[at - 1]); at--)
			wanted[at] = wanted[at - 1];
		wanted[at] = &fragments[i];
	}
}

static void expect_sorted(unsigned int count)
{
	static const struct rbx_fragment *wanted[FRAGMENTS];
	unsigned int taken = RBX_MIN(count, RBX_OVERTAKE_MAX);
	struct rbx_fragment *rest = link_up(count);
	struct rbx_fragment *list = rbx_remote_order_take(&rest);

	sort_simply(wanted, taken);
	for (unsigned int i = 0; i < taken; i++) {
		assert_ptr_equal(list, wanted[i]);
		list = rbx_fragment_next(list);
	}
	assert_null(list);
	assert_ptr_equal(rest, count > taken ? &fragments[taken] : NULL);
}

static bool some_are_neighbours(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int j = 0; j < count; j++) {
			if (fragments[i].rkey == fragments[j].rkey &&
			    fragments[i].remote_addr +
					    fragments[i].length_bytes ==
				    fragments[j].remote_addr)
				return true;
		}
	}
	return false;
}

static bool is_as_it_came(const struct rbx_fragment *list)
{
	for (unsigned int i = 0; list; i++, list = rbx_fragment_next(list)) {
		if (list != &fragments[i])
			return false;
	}
	return true;
}

static bool is_in_order(const struct rbx_fragment *list)
{
	const struct rbx_fragment *next;

	for (; (next = rbx_fragment_next(list)); list = next) {
		if (before(next, list))
			return false;
	}
	return true;
}

/* Neighbours are never missed, and random pages are mostly left alone. */
static void remote_order_is_made_where_there_are_neighbours(void **state)
{
	unsigned int seed = 5, left_alone = 0;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		unsigned int count = 2 + (unsigned int)rand_r(&seed) % 31;
		unsigned int pages = round % 2 ? 200 : 1u << 20;
		struct rbx_fragment *rest, *list;

		for (unsigned int i = 0; i < count; i++) {
			fragments[i].rkey = (unsigned int)rand_r(&seed) % 4;
			fragments[i].length_bytes = 4096;
			fragments[i].remote_addr =
				(uint64_t)((unsigned int)rand_r(&seed) %
					   pages) * 4096;
		}
		rest = link_up(count);
		list = rbx_remote_order_take(&rest);
		assert_null(rest);
		if (some_are_neighbours(count))
			assert_true(is_in_order(list));
		else
			assert_true(is_in_order(list) || is_as_it_came(list));
		left_alone += !is_in_order(list);
	}
	assert_true(left_alone > 500);
	for (unsigned int i = 0; i < FRAGMENTS; i++)
		fragments[i].length_bytes = 0;
}

static void remote_order_random_list_equals_insertion_sort(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		unsigned int count = 1 + (unsigned int)rand_r(&seed) % 80;
		unsigned int keys = 1 + (unsigned int)rand_r(&seed) % 3;
		unsigned int places = 1 + (unsigned int)rand_r(&seed) % 100;

		for (unsigned int i = 0; i < count; i++) {
			fragments[i].rkey = (unsigned int)rand_r(&seed) % keys;
			fragments[i].remote_addr =
				(unsigned int)rand_r(&seed) % places;
		}
		expect_sorted(count);
	}
}

static void remote_order_longest_list_is_sorted_and_the_rest_left(void **state)
{
	unsigned int seed = 7;

	(void)state;
	for (unsigned int count = RBX_OVERTAKE_MAX - 2; count <= FRAGMENTS;
	     count++) {
		for (unsigned int i = 0; i < count; i++)
			fragments[i].remote_addr =
				(unsigned int)rand_r(&seed) % 1000;
		expect_sorted(count);
	}
}

/* As many runs as there can be, and one run alone. */
static void remote_order_falling_and_rising_lists_are_sorted(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < FRAGMENTS; i++)
		fragments[i].remote_addr = FRAGMENTS - i;
	expect_sorted(FRAGMENTS);
	for (unsigned int i = 0; i < FRAGMENTS; i++)
		fragments[i].remote_addr = i;
	expect_sorted(FRAGMENTS);
	expect_sorted(RBX_OVERTAKE_MAX);
	expect_sorted(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_order_random_list_equals_insertion_sort),
		cmocka_unit_test(
			remote_order_longest_list_is_sorted_and_the_rest_left),
		cmocka_unit_test(
			remote_order_falling_and_rising_lists_are_sorted),
		cmocka_unit_test(
			remote_order_is_made_where_there_are_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
