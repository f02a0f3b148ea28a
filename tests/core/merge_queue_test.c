/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * merge_queue_test.c - who is planned when: remote order, urgency, fences, and
 * that none of them starves anybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/planner.h"

#define PAGE RBX_PAGE_BYTES
#define FRAGMENTS 4096

struct fixture {
	struct rbx_merge_queue queue;
	struct rbx_fragment fragments[FRAGMENTS];
	int count;
};

static struct fixture f;

static void setup(bool in_order)
{
	memset(&f, 0, sizeof(f));
	rbx_merge_queue_init(&f.queue, in_order);
}

static struct rbx_fragment *add(int direction, uint8_t flags,
				uint64_t remote_addr)
{
	struct rbx_fragment *fragment = &f.fragments[f.count++];

	assert_true(f.count <= FRAGMENTS);
	fragment->direction = (uint8_t)direction;
	fragment->flags = flags;
	fragment->remote_addr = remote_addr;
	fragment->length_bytes = PAGE;
	rbx_merge_queue_add(&f.queue, &fragment->node);
	return fragment;
}

/* Takes the head alone; NULL: none. */
static struct rbx_fragment *take(void)
{
	struct rbx_fragment *fragment = rbx_merge_queue_head(&f.queue);
	bool more;

	if (fragment) {
		more = rbx_merge_queue_take(&f.queue, fragment);
		assert_int_equal(more, !rbx_merge_queue_fenced(&f.queue));
	}
	return fragment;
}

static void merge_queue_puts_arrivals_in_remote_order(void **state)
{
	static const uint64_t pages[] = { 5, 2, 9, 1, 7 };
	static const uint64_t wanted[] = { 1, 2, 5, 7, 9 };

	(void)state;
	setup(true);
	for (int i = 0; i < 5; i++)
		add(RBX_DIRECTION_WRITE, 0, pages[i] * PAGE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(take()->remote_addr, wanted[i] * PAGE);
	assert_null(take());
	assert_true(rbx_merge_queue_empty(&f.queue));
}

static void merge_queue_without_order_keeps_arrival(void **state)
{
	static const uint64_t pages[] = { 5, 2, 9, 1, 7 };

	(void)state;
	setup(false);
	for (int i = 0; i < 5; i++)
		add(RBX_DIRECTION_WRITE, 0, pages[i] * PAGE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(take()->remote_addr, pages[i] * PAGE);
}

static void merge_queue_keys_are_kept_apart(void **state)
{
	(void)state;
	setup(true);
	for (uint32_t i = 0; i < 8; i++)
		add(RBX_DIRECTION_READ, 0, i / 2 * PAGE)->rkey = i % 2;
	for (int i = 0; i < 8; i++)
		assert_int_equal(take()->rkey, i / 4);
}

/* How many work requests a batch of pages becomes. */
static int works_of(const uint64_t pages[], int count)
{
	const struct rbx_planner planner = {
		.merge = true,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	static struct rbx_work work;
	int works = 0;

	setup(true);
	for (int i = 0; i < count; i++)
		add(RBX_DIRECTION_WRITE, 0, pages[i] * PAGE)->local_addr =
			pages[i] * 2 * PAGE;
	while (rbx_planner_next(&planner, &f.queue, &work)) {
		(void)rbx_merge_queue_take(&f.queue, work.last);
		works++;
	}
	return works;
}

static void shuffle(uint64_t pages[], int count, unsigned int *seed)
{
	for (int i = count - 1; i > 0; i--) {
		int other = rand_r(seed) % (i + 1);
		uint64_t page = pages[i];

		pages[i] = pages[other];
		pages[other] = page;
	}
}

static void merge_queue_shuffled_neighbours_merge_as_sorted_ones(void **state)
{
	unsigned int seed = 3;

	(void)state;
	for (int round = 0; round < 500; round++) {
		uint64_t pages[RBX_OVERTAKE_MAX], page = 0;
		int count = 1 + rand_r(&seed) % (int)RBX_OVERTAKE_MAX;
		int works;

		for (int i = 0; i < count; i++) {
			page += rand_r(&seed) % 8 ? 1 : 2; /* sometimes a gap */
			pages[i] = page;
		}
		works = works_of(pages, count);
		shuffle(pages, count, &seed);
		assert_int_equal(works_of(pages, count), works);
	}
}

/*
 * Fragments come and go at random; an adversary lets each be the lowest so far,
 * or the highest, or anything. Counts how many that came later went first.
 */
static void expect_bounded_overtaking(unsigned int seed)
{
	static bool is_taken[FRAGMENTS];
	uint64_t low = 1u << 20, high = 1u << 20;
	unsigned int kind = seed % 3;
	int taken = 0;

	setup(true);
	memset(is_taken, 0, sizeof(is_taken));
	while (taken < FRAGMENTS) {
		int waiting = f.count - taken;
		bool grow = waiting == 0 || rand_r(&seed) % 100 < 55;

		if (grow && f.count < FRAGMENTS) {
			add(RBX_DIRECTION_READ, 0,
			    kind == 0 ? --low :
			    kind == 1 ? ++high :
					(uint64_t)rand_r(&seed) % 1000);
			continue;
		}
		int at = (int)(take() - f.fragments), passed = 0;

		is_taken[at] = true;
		taken++;
		for (int later = at + 1; later < f.count; later++)
			passed += is_taken[later];
		assert_true(passed < (int)RBX_OVERTAKE_MAX);
	}
}

static void merge_queue_nobody_is_overtaken_beyond_the_bound(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 12; seed++)
		expect_bounded_overtaking(seed);
}

static void merge_queue_what_stands_in_front_is_not_overtaken(void **state)
{
	(void)state;
	setup(true);
	add(RBX_DIRECTION_READ, 0, 8 * PAGE);
	add(RBX_DIRECTION_READ, 0, 9 * PAGE);
	assert_int_equal(take()->remote_addr, 8 * PAGE);
	add(RBX_DIRECTION_READ, 0, 1 * PAGE);
	assert_int_equal(take()->remote_addr, 9 * PAGE);
	assert_int_equal(take()->remote_addr, 1 * PAGE);
}

static void merge_queue_late_neighbour_joins_the_end(void **state)
{
	struct rbx_fragment *first, *second;

	(void)state;
	setup(true);
	first = add(RBX_DIRECTION_READ, 0, 8 * PAGE);
	assert_ptr_equal(rbx_merge_queue_head(&f.queue), first);
	second = add(RBX_DIRECTION_READ, 0, 9 * PAGE);
	assert_ptr_equal(rbx_merge_queue_after(&f.queue, first), second);
	assert_false(rbx_merge_queue_take(&f.queue, second));
	assert_true(rbx_merge_queue_empty(&f.queue));
}

static void merge_queue_reads_and_writes_take_turns(void **state)
{
	int last = -1;

	(void)state;
	for (int urgent = 0; urgent < 2; urgent++) {
		setup(true);
		for (int i = 0; i < 6; i++)
			add(i / 3, urgent ? RBX_FRAGMENT_URGENT : 0,
			    (uint64_t)i << 20);
		for (int i = 0; i < 6; i++) {
			int direction = take()->direction;

			assert_int_not_equal(direction, last);
			last = direction;
		}
		last = -1;
	}
}

static void merge_queue_urgent_read_passes_waiting_writes(void **state)
{
	struct rbx_fragment *urgent;

	(void)state;
	setup(true);
	for (uint64_t i = 0; i < 10; i++)
		add(RBX_DIRECTION_WRITE, 0, i << 20);
	take();
	urgent = add(RBX_DIRECTION_READ, RBX_FRAGMENT_URGENT, 99u << 20);
	add(RBX_DIRECTION_READ, 0, 50u << 20);
	assert_ptr_equal(take(), urgent);
}

/* Urgent ones arrive as fast as they are planned, for ever. */
static void merge_queue_urgent_stream_starves_nobody(void **state)
{
	unsigned int in_a_row = 0;
	int others = 20;

	(void)state;
	setup(true);
	for (int i = 0; i < others; i++)
		add(i % 2, 0, (uint64_t)i << 20);
	for (int i = 0; i < 2; i++)
		add(i, RBX_FRAGMENT_URGENT, (uint64_t)i << 20);
	while (others > 0) {
		struct rbx_fragment *fragment = take();

		if (fragment->flags & RBX_FRAGMENT_URGENT) {
			assert_true(++in_a_row <= RBX_URGENT_RUN_MAX);
			add(fragment->direction, RBX_FRAGMENT_URGENT,
			    fragment->remote_addr);
		} else {
			assert_int_equal(in_a_row, RBX_URGENT_RUN_MAX);
			in_a_row = 0;
			others--;
		}
	}
}

/* A run of urgent ones while nobody else waited is not held against them. */
static void merge_queue_urgent_alone_uses_up_no_turns(void **state)
{
	(void)state;
	setup(true);
	for (unsigned int i = 0; i < 3 * RBX_URGENT_RUN_MAX; i++)
		add(RBX_DIRECTION_READ, RBX_FRAGMENT_URGENT, (uint64_t)i << 20);
	for (unsigned int i = 0; i < 2 * RBX_URGENT_RUN_MAX; i++)
		take();
	add(RBX_DIRECTION_WRITE, 0, 0);
	assert_int_equal(take()->direction, RBX_DIRECTION_READ);
}

static void merge_queue_fence_holds_back_what_follows(void **state)
{
	(void)state;
	setup(true);
	add(RBX_DIRECTION_WRITE, 0, 2 * PAGE);
	add(RBX_DIRECTION_WRITE, RBX_FRAGMENT_FENCE, 1 * PAGE);
	add(RBX_DIRECTION_WRITE, 0, 0);
	assert_int_equal(take()->remote_addr, 2 * PAGE);
	assert_null(take());
	assert_true(rbx_merge_queue_fenced(&f.queue));
	assert_false(rbx_merge_queue_empty(&f.queue));
	rbx_merge_queue_pass_fence(&f.queue);
	assert_int_equal(take()->remote_addr, 0);
	assert_int_equal(take()->remote_addr, PAGE);
	assert_true(rbx_merge_queue_empty(&f.queue));
}

static void merge_queue_urgent_does_not_pass_a_fence(void **state)
{
	struct rbx_fragment *before, *fence, *urgent;

	(void)state;
	setup(true);
	before = add(RBX_DIRECTION_WRITE, 0, 9 * PAGE);
	fence = add(RBX_DIRECTION_WRITE, RBX_FRAGMENT_FENCE, 5 * PAGE);
	urgent = add(RBX_DIRECTION_READ, RBX_FRAGMENT_URGENT, 0);
	assert_ptr_equal(take(), before);
	assert_null(take());
	rbx_merge_queue_pass_fence(&f.queue);
	assert_ptr_equal(take(), urgent);
	assert_ptr_equal(take(), fence);
}

static void merge_queue_sent_again_passes_a_fence(void **state)
{
	struct rbx_fragment *again;

	(void)state;
	setup(true);
	add(RBX_DIRECTION_READ, RBX_FRAGMENT_FENCE, 0);
	again = add(RBX_DIRECTION_READ, RBX_FRAGMENT_AGAIN, PAGE);
	assert_ptr_equal(take(), again);
	assert_null(take());
}

static void merge_queue_clear_returns_everything(void **state)
{
	int count = 0;

	(void)state;
	setup(true);
	for (int i = 0; i < 8; i++)
		add(i % 2, i % 4 < 2 ? 0 : RBX_FRAGMENT_URGENT,
		    (uint64_t)i << 20);
	take(); /* a line has both of its parts */
	add(RBX_DIRECTION_READ, RBX_FRAGMENT_URGENT, 0);
	add(RBX_DIRECTION_READ, RBX_FRAGMENT_FENCE, 0);
	for (struct rbx_fragment *fragment = rbx_merge_queue_clear(&f.queue);
	     fragment; fragment = rbx_fragment_next(fragment))
		count++;
	assert_int_equal(count, 9);
	assert_true(rbx_merge_queue_empty(&f.queue));
}

#define ORDERED RBX_FRAGMENT_ORDERED_FLAGS

static void merge_queue_ordered_keeps_the_order_of_submission(void **state)
{
	struct rbx_fragment *one, *two, *three;

	(void)state;
	setup(true);
	/* Each ends where the one before it begins. */
	one = add(RBX_DIRECTION_ORDERED, ORDERED, 3 * PAGE);
	two = add(RBX_DIRECTION_ORDERED, ORDERED, 2 * PAGE);
	three = add(RBX_DIRECTION_ORDERED, ORDERED, PAGE);
	assert_ptr_equal(take(), one);
	assert_ptr_equal(take(), two);
	assert_ptr_equal(take(), three);
	assert_null(take());
}

/* Of each two and of all three kinds, none is served less than another. */
static void merge_queue_all_kinds_take_turns(void **state)
{
	static const uint8_t flags[] = { 0, 0, ORDERED };

	(void)state;
	for (uint32_t kinds = 1; kinds <= RBX_ALL_DIRECTIONS; kinds++) {
		uint32_t taken[RBX_DIRECTIONS] = { 0 };

		setup(false);
		for (int i = 0; i < 30; i++)
			for (int kind = 0; kind < RBX_DIRECTIONS; kind++)
				if (kinds >> kind & 1)
					(void)add(kind, flags[kind], 0);
		for (int i = 0; i < 10 * __builtin_popcount(kinds); i++)
			taken[take()->direction]++;
		for (int kind = 0; kind < RBX_DIRECTIONS; kind++)
			assert_int_equal(taken[kind],
					 kinds >> kind & 1 ? 10 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_queue_puts_arrivals_in_remote_order),
		cmocka_unit_test(merge_queue_without_order_keeps_arrival),
		cmocka_unit_test(merge_queue_keys_are_kept_apart),
		cmocka_unit_test(
			merge_queue_shuffled_neighbours_merge_as_sorted_ones),
		cmocka_unit_test(
			merge_queue_nobody_is_overtaken_beyond_the_bound),
		cmocka_unit_test(
			merge_queue_what_stands_in_front_is_not_overtaken),
		cmocka_unit_test(merge_queue_late_neighbour_joins_the_end),
		cmocka_unit_test(merge_queue_reads_and_writes_take_turns),
		cmocka_unit_test(merge_queue_urgent_read_passes_waiting_writes),
		cmocka_unit_test(merge_queue_urgent_stream_starves_nobody),
		cmocka_unit_test(merge_queue_urgent_alone_uses_up_no_turns),
		cmocka_unit_test(merge_queue_fence_holds_back_what_follows),
		cmocka_unit_test(merge_queue_urgent_does_not_pass_a_fence),
		cmocka_unit_test(merge_queue_sent_again_passes_a_fence),
		cmocka_unit_test(merge_queue_clear_returns_everything),
		cmocka_unit_test(
			merge_queue_ordered_keeps_the_order_of_submission),
		cmocka_unit_test(merge_queue_all_kinds_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
