/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* region_list_test.c - lists are sorted, and what is equal stays in its order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/region_list.h"

#define REGIONS 300u

static struct rbx_cached_region slots[REGIONS];

/* Numbers rise from the oldest to the newest. */
static void make(struct rbx_region_list *list, uint32_t first, uint32_t count, uint32_t keys)
{
	struct rbx_random random;

	rbx_random_seed(&random, count);
	rbx_region_list_init(list);
	for (uint32_t i = first; i < first + count; i++) {
		slots[i] =
			(struct rbx_cached_region){ .key = rbx_random_below(&random, keys),
						    .pages = i };
		rbx_region_list_push(list, slots, i);
	}
}

static void is_whole(const struct rbx_region_list *list)
{
	uint32_t count = 0, newer = RBX_REGION_NONE;
	uint64_t pages = 0;

	for (uint32_t i = list->newest; i != RBX_REGION_NONE; i = slots[i].next) {
		assert_int_equal(slots[i].prev, newer);
		newer = i;
		pages += slots[i].pages;
		count++;
	}
	assert_int_equal(list->oldest, newer);
	assert_int_equal(list->count, count);
	assert_int_equal(list->pages, pages);
}

static void lists_of_each_length_are_sorted_and_stable(void **state)
{
	struct rbx_region_list list;

	(void)state;
	for (uint32_t count = 0; count <= REGIONS; count++) {
		make(&list, 0, count, 1 + count / 3);
		rbx_region_list_sort(&list, slots, RBX_REGION_BY(key));
		is_whole(&list);
		for (uint32_t i = list.oldest; i != RBX_REGION_NONE; i = slots[i].prev) {
			uint32_t newer = slots[i].prev;

			if (newer == RBX_REGION_NONE)
				break;
			assert_true(slots[i].key <= slots[newer].key);
			assert_true(slots[i].key < slots[newer].key || i < newer);
		}
	}
}

static void joined_lists_are_one(void **state)
{
	struct rbx_region_list older, newer;

	(void)state;
	make(&older, 0, 10, 3);
	make(&newer, 10, 5, 3);
	rbx_region_list_join(&older, slots, &newer);
	is_whole(&older);
	assert_int_equal(older.count, 15);
	assert_int_equal(older.oldest, 0);
	assert_int_equal(older.newest, 14);
	rbx_region_list_init(&newer);
	rbx_region_list_join(&older, slots, &newer);
	is_whole(&older);
	rbx_region_list_join(&newer, slots, &older);
	is_whole(&newer);
	assert_int_equal(newer.count, 15);
}

static void any_region_can_be_removed(void **state)
{
	struct rbx_region_list list;

	(void)state;
	make(&list, 0, 7, 3);
	for (uint32_t i = 0; i < 7; i++) {
		rbx_region_list_remove(&list, slots, (i * 3 + 6) % 7);
		is_whole(&list);
	}
	assert_int_equal(list.newest, RBX_REGION_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_each_length_are_sorted_and_stable),
		cmocka_unit_test(joined_lists_are_one),
		cmocka_unit_test(any_region_can_be_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
