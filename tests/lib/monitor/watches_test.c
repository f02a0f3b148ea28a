/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watches_test.c - the table of watches, compared with a count for each page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/monitor/monitor.h"
#include "lib/monitor/watches.h"

#define PAGES 64u
#define WATCHES_MAX 24u
#define ROUNDS 20000u

static uint32_t covers[PAGES]; /* watches of each page */
static struct {
	uintptr_t start;
	uintptr_t end;
} watches[WATCHES_MAX];
static uint32_t watches_count;
static uint64_t seed = 1;

static uint32_t random_below(uint32_t bound)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % bound;
}

static void random_range(uintptr_t *start, uintptr_t *end)
{
	*start = random_below(PAGES);
	*end = *start + 1 + random_below(RBX_MIN(8u, PAGES - (uint32_t)*start));
}

static void count(uintptr_t start, uintptr_t end, uint32_t more)
{
	for (uintptr_t page = start; page < end; page++)
		covers[page] += more;
}

static void add_one(void)
{
	random_range(&watches[watches_count].start, &watches[watches_count].end);
	rbx_watches_add(watches[watches_count].start, watches[watches_count].end);
	count(watches[watches_count].start, watches[watches_count].end, 1);
	watches_count++;
}

static void remove_one(void)
{
	uint32_t i = random_below(watches_count);

	rbx_watches_remove(watches[i].start, watches[i].end);
	count(watches[i].start, watches[i].end, UINT32_MAX);
	watches[i] = watches[--watches_count];
}

/* Holes come in order, are as long as can be, and are all that is not covered. */
static void compare(uintptr_t start, uintptr_t end)
{
	struct rbx_watches_walk walk = { .at = start, .end = end };
	uintptr_t at = start, hole_start, hole_end;

	while (rbx_watches_next_hole(&walk, &hole_start, &hole_end)) {
		assert_true(hole_start >= at && hole_start < hole_end && hole_end <= end);
		for (; at < hole_start; at++)
			assert_int_not_equal(covers[at], 0);
		for (; at < hole_end; at++)
			assert_int_equal(covers[at], 0);
		assert_true(at == end || covers[at] != 0);
	}
	for (; at < end; at++)
		assert_int_not_equal(covers[at], 0);
}

static void holes_are_what_no_watch_covers(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uintptr_t start, end;

		if (watches_count == 0 || (watches_count < WATCHES_MAX && random_below(2)))
			add_one();
		else
			remove_one();
		assert_int_equal(rbx_watches_count(), watches_count);
		random_range(&start, &end);
		compare(start, end);
		compare(0, PAGES);
	}
	while (watches_count)
		remove_one();
	assert_int_equal(rbx_watches_count(), 0);
}

static void table_takes_as_many_as_it_says(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RBX_MEMORY_MONITOR_WATCHES_MAX; i++)
		rbx_watches_add(RBX_MEMORY_MONITOR_WATCHES_MAX - i,
				RBX_MEMORY_MONITOR_WATCHES_MAX - i + 1);
	assert_int_equal(rbx_watches_count(), RBX_MEMORY_MONITOR_WATCHES_MAX);
	for (uint32_t i = 0; i < RBX_MEMORY_MONITOR_WATCHES_MAX; i++)
		rbx_watches_remove(i + 1, i + 2);
	assert_int_equal(rbx_watches_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holes_are_what_no_watch_covers),
		cmocka_unit_test(table_takes_as_many_as_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
