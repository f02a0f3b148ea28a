/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* regions_test.c - the cases of the paper, references, budgets, memory that changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "regions_small.h"

/* ---- The four cases -------------------------------------------------------------*/

static void request_for_unknown_memory_becomes_a_region(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_acquire(small, &use, 10, 4);
	assert_int_equal(use.count, 1);
	small_part_is(small, &use, 0, 10, 4, true);
	assert_int_equal(small->regions.counters.misses, 1);
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small->regions.used_count, 0);
}

static void request_that_is_known_or_a_part_of_it_is_a_hit(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 10, 4);
	for (uint64_t first = 10; first < 14; first++)
		for (uint64_t pages = 1; first + pages <= 14; pages++) {
			small_acquire(small, &use, first, pages);
			assert_int_equal(use.count, 1);
			small_part_is(small, &use, 0, 10, 4, false);
			assert_int_equal(small_part(small, &use, 0)->cookie, use.parts[0] + 100);
			rbx_regions_release(&small->regions, &use);
		}
	assert_int_equal(small->regions.counters.hits, 10);
	assert_int_equal(small->regions.counters.registrations, 1);
}

static void bytes_within_a_page_are_known_with_it(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 10 * PAGE + 100, PAGE, 0), 0);
	small_part_is(small, &use, 0, 10, 2, true);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 12 * PAGE - 1, 1, 0), 0);
	small_part_is(small, &use, 0, 10, 2, false);
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 12 * PAGE - 1, 2, 0), 0);
	assert_int_equal(use.count, 2);
	small_part_is(small, &use, 1, 12, 1, true);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
}

static void request_that_meets_a_region_registers_the_rest_only(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 10, 4);
	small_use(small, 20, 2);
	small_acquire(small, &use, 8, 16);
	assert_int_equal(use.count, 5);
	small_part_is(small, &use, 0, 8, 2, true);
	small_part_is(small, &use, 1, 10, 4, false);
	small_part_is(small, &use, 2, 14, 6, true);
	small_part_is(small, &use, 3, 20, 2, false);
	small_part_is(small, &use, 4, 22, 2, true);
	assert_int_equal(small->regions.counters.partial_hits, 1);
	assert_int_equal(small->regions.pages_held, 16);
	rbx_regions_release(&small->regions, &use);
	/* All of it is known now, though not as one region. */
	small_acquire(small, &use, 8, 16);
	assert_int_equal(use.count, 5);
	assert_int_equal(use.fresh, 0);
	assert_int_equal(small->regions.counters.hits, 1);
	rbx_regions_release(&small->regions, &use);
}

static void new_regions_are_aligned_to_the_pages_of_the_mapping(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 18, 1);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 20 * PAGE, 3 * PAGE, 8 * PAGE),
			 0);
	assert_int_equal(use.count, 1);
	small_part_is(small, &use, 0, 19, 5, true); /* 16 to 23, but for what is known */
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
	/* If there is no room for whole pages of the mapping, its own pages are enough. */
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 1030 * PAGE, PAGE, 128 * PAGE),
			 0);
	small_part_is(small, &use, 0, 1030, 1, true);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
}

/* ---- Budgets --------------------------------------------------------------------*/

static void promise_counts_before_it_is_registered(void **state)
{
	struct small *small = *state;
	struct rbx_region_use first, second;

	assert_int_equal(small_acquire_only(small, &first, 0, 60), 0);
	assert_int_equal(small->regions.pages_held, 60);
	/* The first is not registered yet; there is no room for both. */
	assert_int_equal(small_acquire_only(small, &second, 100, 41), -ENOBUFS);
	assert_int_equal(small_acquire_only(small, &second, 100, 40), 0);
	small_register(small, &first);
	small_register(small, &second);
	rbx_regions_release(&small->regions, &first);
	rbx_regions_release(&small->regions, &second);
	assert_int_equal(small->regions.pages_held_max, 100);
}

static void what_leaves_counts_until_it_is_deregistered(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;
	uint32_t batch[RBX_REGION_BATCH_MAX];

	small_use(small, 0, 60);
	small_use(small, 60, 40);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 200 * PAGE, 30 * PAGE, 0),
			 -EAGAIN);
	assert_false(small_has(small, 0));
	assert_int_equal(small->regions.pages_held, 100);
	assert_int_equal(rbx_regions_again(&small->regions, &use), -EAGAIN);
	assert_int_equal(rbx_regions_batch(&small->regions, batch, RBX_REGION_BATCH_MAX), 1);
	assert_int_equal(rbx_regions_again(&small->regions, &use), -EAGAIN);
	assert_true(small_has(small, 60)); /* nobody asked for more than the one */
	rbx_regions_retired(&small->regions, batch, 1);
	assert_int_equal(small->regions.pages_held, 40);
	assert_int_equal(rbx_regions_again(&small->regions, &use), 0);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
}

static void many_victims_are_one_batch(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	for (uint64_t page = 0; page < 100; page++)
		small_use(small, page * 2, 1);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 1000 * PAGE, 50 * PAGE, 0),
			 -EAGAIN);
	assert_int_equal(small_retire(small), 50);
	assert_int_equal(rbx_regions_again(&small->regions, &use), 0);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
}

static void number_of_regions_is_a_budget_too(void **state)
{
	struct small few;

	(void)state;
	small_make(&few, &rbx_region_lru, 1000, 3);
	for (uint64_t page = 0; page < 10; page++) {
		small_use(&few, page * 10, 1);
		assert_in_range(few.regions.regions_held, 1, 3);
	}
	assert_true(small_has(&few, 70) && small_has(&few, 80) && small_has(&few, 90));
	small_free(&few);
}

static void known_part_stays_while_room_is_made_for_the_rest(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 10, 10); /* the least recently used */
	small_use(small, 50, 90);
	small_acquire(small, &use, 10, 20);
	assert_int_equal(use.count, 2);
	small_part_is(small, &use, 0, 10, 10, false);
	assert_false(small_has(small, 50));
	rbx_regions_release(&small->regions, &use);
}

static void request_without_room_keeps_nothing_and_evicts_nothing(void **state)
{
	struct small *small = *state;
	struct rbx_region_use held, use;

	small_use(small, 0, 10);
	small_acquire(small, &held, 20, 60);
	assert_int_equal(small_acquire_only(small, &use, 0, 101), -ENOBUFS);
	assert_int_equal(small_acquire_only(small, &use, 200, 41), -ENOBUFS);
	assert_true(small_has(small, 0));
	assert_int_equal(small->regions.used_count, 1);
	assert_int_equal(small->regions.counters.staged, 2);
	rbx_regions_release(&small->regions, &held);
	assert_int_equal(small_acquire_only(small, &use, 200, 41), 0);
	small_register(small, &use);
	rbx_regions_release(&small->regions, &use);
}

static void what_was_waited_for_can_be_given_up(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 10, 10);
	small_use(small, 50, 90);
	assert_int_equal(rbx_regions_acquire(&small->regions, &use, 10 * PAGE, 20 * PAGE, 0),
			 -EAGAIN);
	assert_int_equal(small->regions.used_count, 1);
	rbx_regions_give_up(&small->regions, &use);
	assert_int_equal(small->regions.used_count, 0);
	assert_int_equal(small_retire(small), 1);
}

/* ---- Regions in use -------------------------------------------------------------*/

static void region_in_use_is_not_retired(void **state)
{
	static const struct rbx_region_policy *const policies[] = {
		&rbx_region_lru,    &rbx_region_mre,   &rbx_region_gdsf,
		&rbx_region_s3fifo, &rbx_region_sieve, &rbx_region_auto
	};

	(void)state;
	for (uint32_t p = 0; p < 6; p++) {
		struct rbx_region_use held, again;
		struct small small;

		small_make(&small, policies[p], 20, 20);
		small_acquire(&small, &held, 0, 5);
		small_acquire(&small, &again, 0, 5);
		for (uint64_t i = 0; i < 300; i++) {
			small_use(&small, 100 + i * 20, 1 + i % 15);
			assert_true(small_has(&small, 0));
			assert_int_equal(small_part(&small, &held, 0)->state, RBX_REGION_READY);
			if (i == 150)
				rbx_regions_release(&small.regions, &again);
		}
		rbx_regions_release(&small.regions, &held);
		small_use(&small, 9000, 20);
		assert_false(small_has(&small, 0));
		small_free(&small);
	}
}

static void second_request_waits_for_what_the_first_registers(void **state)
{
	struct small *small = *state;
	struct rbx_region_use first, second;

	assert_int_equal(small_acquire_only(small, &first, 0, 5), 0);
	assert_int_equal(small_acquire_only(small, &second, 0, 5), 0);
	assert_int_equal(second.parts[0], first.parts[0]);
	assert_int_equal(second.fresh, 0);
	assert_int_equal(small_part(small, &second, 0)->state, RBX_REGION_PROMISED);
	small_register(small, &first);
	assert_int_equal(small_part(small, &second, 0)->state, RBX_REGION_READY);
	rbx_regions_release(&small->regions, &first);
	assert_int_equal(small_part(small, &second, 0)->references, 1);
	rbx_regions_release(&small->regions, &second);
	assert_int_equal(small->regions.counters.registrations, 1);
}

/* ---- Memory that changes --------------------------------------------------------*/

static void changed_memory_is_not_found_any_more(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use;

	small_use(small, 10, 4);
	small_use(small, 20, 4);
	small_use(small, 30, 4);
	/* The tail of the first, all of the second, not the third. */
	rbx_regions_invalidate(&small->regions, 13 * PAGE + 5, 17 * PAGE - 5);
	assert_false(small_has(small, 10));
	assert_false(small_has(small, 20));
	assert_true(small_has(small, 30));
	assert_int_equal(small_retire(small), 2);
	/* The same address, other memory: the table of last hits knows it, and is not believed. */
	small_acquire(small, &use, 10, 4);
	small_part_is(small, &use, 0, 10, 4, true);
	rbx_regions_release(&small->regions, &use);
}

static void changed_memory_in_use_is_deregistered_after_its_last_reference(void **state)
{
	struct small *small = *state;
	struct rbx_region_use old, also_old, new;

	small_acquire(small, &old, 10, 4);
	small_acquire(small, &also_old, 11, 1);
	rbx_regions_invalidate(&small->regions, 10 * PAGE, 1);
	assert_int_equal(small_retire(small), 0);
	assert_int_equal(small->regions.pages_held, 4);
	small_acquire(small, &new, 10, 4);
	assert_int_not_equal(new.parts[0], old.parts[0]);
	assert_int_equal(small->regions.pages_held, 8);
	rbx_regions_release(&small->regions, &old);
	assert_int_equal(small_retire(small), 0);
	rbx_regions_release(&small->regions, &also_old);
	assert_int_equal(small_retire(small), 1);
	assert_int_equal(small->regions.pages_held, 4);
	assert_true(small_has(small, 10));
	rbx_regions_release(&small->regions, &new);
}

static void memory_that_changes_while_it_is_registered_is_not_found(void **state)
{
	struct small *small = *state;
	struct rbx_region_use use, next;

	assert_int_equal(small_acquire_only(small, &use, 10, 4), 0);
	rbx_regions_invalidate(&small->regions, 12 * PAGE, PAGE);
	small_register(small, &use);
	assert_int_equal(small_part(small, &use, 0)->state, RBX_REGION_GONE);
	small_acquire(small, &next, 10, 4);
	small_part_is(small, &next, 0, 10, 4, true);
	rbx_regions_release(&small->regions, &use);
	assert_int_equal(small_retire(small), 1);
	rbx_regions_release(&small->regions, &next);
}

/* A range that is too long has to reach the end, as what is not dropped would be stale. */
static void changed_memory_that_wraps_ends_with_the_address_space(void **state)
{
	struct small *small = *state;
	const uint64_t last = UINT64_MAX / PAGE;

	small_use(small, 10, 4);
	small_use(small, last, 1);
	rbx_regions_invalidate(&small->regions, 20 * PAGE, UINT64_MAX);
	assert_true(small_has(small, 10));
	assert_false(small_has(small, last));
	rbx_regions_invalidate(&small->regions, 13 * PAGE, UINT64_MAX - 13 * PAGE + 1);
	assert_false(small_has(small, 10));
	small_use(small, 10, 4);
	rbx_regions_invalidate(&small->regions, 11 * PAGE, 0);
	assert_true(small_has(small, 10));
}

static void all_regions_leave_before_the_end(void **state)
{
	struct small *small = *state;

	for (uint64_t page = 0; page < 80; page += 2)
		small_use(small, page, 1);
	rbx_regions_clear(&small->regions);
	assert_int_equal(small_retire(small), 40);
	assert_int_equal(small->regions.pages_held, 0);
	assert_int_equal(small->regions.regions_held, 0);
	assert_int_equal(small->regions.counters.registrations,
			 small->regions.counters.deregistrations);
}

static void shape_that_makes_no_sense_is_refused(void **state)
{
	struct rbx_regions regions;
	struct rbx_regions_shape shape = { .bytes_max = 4095,
					   .regions_max = 1,
					   .policy = &rbx_region_lru };

	(void)state;
	assert_int_equal(rbx_regions_size(&shape), 0);
	assert_int_equal(rbx_regions_init(&regions, &shape, NULL), -EINVAL);
	shape.bytes_max = UINT64_MAX;
	shape.regions_max = 0;
	assert_int_equal(rbx_regions_size(&shape), 0);
	assert_int_equal(rbx_regions_init(&regions, &shape, NULL), -EINVAL);
	for (uint64_t count = RBX_REGIONS_MAX + 1ull; count <= UINT32_MAX; count = count * 2 - 1) {
		shape.regions_max = (uint32_t)count;
		assert_int_equal(rbx_regions_size(&shape), 0);
		assert_int_equal(rbx_regions_init(&regions, &shape, NULL), -EINVAL);
	}
	shape.regions_max = RBX_REGIONS_MAX;
	assert_true(rbx_regions_size(&shape) > RBX_REGIONS_MAX * sizeof(*regions.slots));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_for_unknown_memory_becomes_a_region),
		TEST(request_that_is_known_or_a_part_of_it_is_a_hit),
		TEST(bytes_within_a_page_are_known_with_it),
		TEST(request_that_meets_a_region_registers_the_rest_only),
		TEST(new_regions_are_aligned_to_the_pages_of_the_mapping),
		TEST(promise_counts_before_it_is_registered),
		TEST(what_leaves_counts_until_it_is_deregistered),
		TEST(many_victims_are_one_batch),
		TEST(number_of_regions_is_a_budget_too),
		TEST(known_part_stays_while_room_is_made_for_the_rest),
		TEST(request_without_room_keeps_nothing_and_evicts_nothing),
		TEST(what_was_waited_for_can_be_given_up),
		TEST(region_in_use_is_not_retired),
		TEST(second_request_waits_for_what_the_first_registers),
		TEST(changed_memory_is_not_found_any_more),
		TEST(changed_memory_in_use_is_deregistered_after_its_last_reference),
		TEST(memory_that_changes_while_it_is_registered_is_not_found),
		TEST(changed_memory_that_wraps_ends_with_the_address_space),
		TEST(all_regions_leave_before_the_end),
		TEST(shape_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
