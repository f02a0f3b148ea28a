/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * write_behind_test.c - the disk sees writes in their order and bounded, and what
 * was acknowledged last is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/write_behind.h"

#define BLOCKS 64u
#define PAGES 40u

static struct rbx_write_behind *behind;

static int behind_make(void **state)
{
	(void)state;
	behind = rbx_write_behind_init(
		calloc(1, rbx_write_behind_size(BLOCKS, PAGES)), BLOCKS,
		PAGES);
	return 0;
}

/* What began has ended, and nothing of it is left. */
static int behind_free(void **state)
{
	(void)state;
	assert_true(rbx_write_behind_is_idle(behind));
	assert_int_equal(behind->behind_count, 0);
	free(behind);
	return 0;
}

static struct rbx_behind_write write_of(uint64_t block, uint32_t count)
{
	return (struct rbx_behind_write){ .block = block, .count = count };
}

/* A write that others acknowledge. */
static void acknowledged(uint64_t block, uint32_t count)
{
	struct rbx_behind_write write = write_of(block, count);

	assert_true(rbx_write_behind_begin(behind, &write));
	rbx_write_behind_end(behind, &write, RBX_BEHIND_WELL);
}

static struct rbx_behind_run sends(uint64_t block, uint32_t count)
{
	struct rbx_behind_run run;

	assert_true(rbx_write_behind_send(behind, &run));
	assert_int_equal(run.block, block);
	assert_int_equal(run.count, count);
	return run;
}

static void sends_nothing(void)
{
	struct rbx_behind_run run;

	assert_false(rbx_write_behind_send(behind, &run));
}

static void taken(const struct rbx_behind_run *run)
{
	assert_null(rbx_write_behind_sent(behind, run, true));
}

static enum rbx_behind_held held(uint64_t block)
{
	const struct rbx_behind_page *page;

	return rbx_write_behind_find(behind, block, &page);
}

static void behind_neighbours_go_as_one_run(void **state)
{
	struct rbx_behind_run run;

	(void)state;
	acknowledged(9, 1);
	acknowledged(20, 1);
	acknowledged(8, 1);
	acknowledged(10, 2);
	run = sends(8, 4);
	taken(&run);
	run = sends(20, 1);
	taken(&run);
	sends_nothing();
}

/* However long they are: the oldest is among them. */
static void behind_run_is_bounded_and_has_the_oldest(void **state)
{
	struct rbx_behind_run run;
	uint32_t sent = 0, i;
	bool oldest = false;

	(void)state;
	acknowledged(39, 1);
	for (i = 0; i < 39; i++)
		acknowledged(38 - i, 1);
	assert_true(rbx_write_behind_send(behind, &run));
	for (i = 0; i < run.count; i++)
		oldest |= run.pages[i]->block == 39;
	assert_true(oldest);
	do {
		assert_true(run.count <= RBX_BEHIND_BLOCKS_MAX);
		sent += run.count;
		taken(&run);
	} while (rbx_write_behind_send(behind, &run));
	assert_int_equal(sent, 40);
}

static void behind_block_is_found_where_it_is(void **state)
{
	const struct rbx_behind_page *page;
	struct rbx_behind_write write = write_of(3, 1);
	struct rbx_behind_run run;

	(void)state;
	assert_true(rbx_write_behind_begin(behind, &write));
	assert_int_equal(held(3), RBX_BEHIND_NEW);
	rbx_write_behind_end(behind, &write, RBX_BEHIND_WELL);
	assert_int_equal(rbx_write_behind_find(behind, 3, &page),
			 RBX_BEHIND_PAGE);
	assert_int_equal(page->block, 3);
	run = sends(3, 1);
	assert_int_equal(held(3), RBX_BEHIND_PAGE);
	taken(&run);
	assert_int_equal(held(3), RBX_BEHIND_DISK);
	assert_int_equal(held(2), RBX_BEHIND_NEW);
	assert_int_equal(held(4), RBX_BEHIND_NEW);
}

static void behind_newer_page_replaces_one_not_sent(void **state)
{
	struct rbx_behind_write write = write_of(5, 1);
	const struct rbx_behind_page *page;
	struct rbx_behind_run run;
	uint32_t memory;

	(void)state;
	acknowledged(5, 1);
	acknowledged(7, 1);
	assert_true(rbx_write_behind_begin(behind, &write));
	memory = write.pages->memory;
	rbx_write_behind_end(behind, &write, RBX_BEHIND_WELL);
	assert_int_equal(behind->behind_count, 2);
	(void)rbx_write_behind_find(behind, 5, &page);
	assert_int_equal(page->memory, memory);
	run = sends(5, 1); /* in the turn of the older one */
	assert_int_equal(run.pages[0]->memory, memory);
	taken(&run);
	run = sends(7, 1);
	taken(&run);
	sends_nothing();
}

static void behind_newer_page_waits_for_one_sent(void **state)
{
	struct rbx_behind_run first, second;

	(void)state;
	acknowledged(5, 1);
	first = sends(5, 1);
	acknowledged(5, 1);
	acknowledged(6, 1);
	second = sends(6, 1);
	sends_nothing();
	taken(&second);
	taken(&first);
	assert_int_equal(held(5), RBX_BEHIND_PAGE);
	first = sends(5, 1);
	taken(&first);
	assert_int_equal(held(5), RBX_BEHIND_DISK);
}

static void behind_write_waits_for_one_with_its_block(void **state)
{
	struct rbx_behind_write one = write_of(4, 4), two = write_of(7, 1);
	struct rbx_behind_write far = write_of(30, 1);
	struct rbx_behind_run run;

	(void)state;
	assert_true(rbx_write_behind_begin(behind, &one));
	assert_false(rbx_write_behind_begin(behind, &two));
	assert_false(rbx_write_behind_begin(behind, &far)); /* nor passes it */
	assert_null(rbx_write_behind_admit(behind));
	rbx_write_behind_end(behind, &one, RBX_BEHIND_WELL);
	assert_ptr_equal(rbx_write_behind_admit(behind), &two);
	assert_ptr_equal(rbx_write_behind_admit(behind), &far);
	assert_null(rbx_write_behind_admit(behind));
	rbx_write_behind_end(behind, &two, RBX_BEHIND_WELL);
	rbx_write_behind_end(behind, &far, RBX_BEHIND_WELL);
	run = sends(4, 4);
	taken(&run);
	run = sends(30, 1);
	taken(&run);
	assert_int_equal(behind->waits_count, 2);
}

static void behind_write_waits_for_room(void **state)
{
	struct rbx_behind_write large = write_of(32, 32), small = write_of(0, 1);
	struct rbx_behind_run run;

	(void)state;
	acknowledged(0, 9);
	assert_false(rbx_write_behind_begin(behind, &large));
	assert_false(rbx_write_behind_begin(behind, &small));
	run = sends(0, 9);
	assert_null(rbx_write_behind_admit(behind));
	taken(&run);
	assert_ptr_equal(rbx_write_behind_admit(behind), &large);
	assert_ptr_equal(rbx_write_behind_admit(behind), &small);
	rbx_write_behind_cancel(behind, &small);
	rbx_write_behind_cancel(behind, &large);
	assert_int_equal(held(32), RBX_BEHIND_NEW);
}

static void behind_write_through_ends_with_the_disk(void **state)
{
	struct rbx_behind_write one = write_of(4, 2), two = write_of(5, 1);
	struct rbx_behind_run run;

	(void)state;
	acknowledged(4, 1); /* which it replaces */
	assert_true(rbx_write_behind_begin(behind, &one));
	rbx_write_behind_end(behind, &one, RBX_BEHIND_THROUGH);
	assert_false(rbx_write_behind_begin(behind, &two));
	run = sends(4, 2);
	assert_ptr_equal(rbx_write_behind_sent(behind, &run, true), &one.node);
	assert_false(one.failed);
	assert_ptr_equal(rbx_write_behind_admit(behind), &two);
	rbx_write_behind_end(behind, &two, RBX_BEHIND_THROUGH);
	run = sends(5, 1);
	assert_ptr_equal(rbx_write_behind_sent(behind, &run, false), &two.node);
	assert_true(two.failed);
	assert_int_equal(held(4), RBX_BEHIND_DISK);
	assert_int_equal(held(5), RBX_BEHIND_LOST);
}

static void behind_refused_block_is_lost_until_written(void **state)
{
	struct rbx_behind_run run;

	(void)state;
	acknowledged(8, 2);
	run = sends(8, 2);
	assert_null(rbx_write_behind_sent(behind, &run, false));
	assert_int_equal(held(8), RBX_BEHIND_LOST);
	assert_int_equal(held(9), RBX_BEHIND_LOST);
	assert_int_equal(held(10), RBX_BEHIND_NEW);
	acknowledged(8, 1);
	run = sends(8, 1);
	taken(&run);
	assert_int_equal(held(8), RBX_BEHIND_DISK);
	assert_int_equal(held(9), RBX_BEHIND_LOST);
}

/* A write that nobody has before the disk does. */
static void written_through(uint64_t block, uint32_t count)
{
	struct rbx_behind_write write = write_of(block, count);
	struct rbx_behind_run run;

	assert_true(rbx_write_behind_begin(behind, &write));
	rbx_write_behind_end(behind, &write, RBX_BEHIND_THROUGH);
	run = sends(block, count);
	assert_ptr_equal(rbx_write_behind_sent(behind, &run, true),
			 &write.node);
}

static void behind_block_written_through_is_only_here_until_written_well(
	void **state)
{
	struct rbx_behind_run run;

	(void)state;
	acknowledged(6, 4);
	run = sends(6, 4);
	taken(&run);
	assert_false(rbx_write_behind_is_only_here(behind, 6, 4));
	written_through(7, 2);
	assert_true(rbx_write_behind_is_only_here(behind, 7, 1));
	assert_true(rbx_write_behind_is_only_here(behind, 6, 2));
	assert_true(rbx_write_behind_is_only_here(behind, 8, 2));
	assert_false(rbx_write_behind_is_only_here(behind, 6, 1));
	assert_false(rbx_write_behind_is_only_here(behind, 9, 1));
	written_through(7, 1); /* counted once */
	acknowledged(7, 1);
	assert_false(rbx_write_behind_is_only_here(behind, 7, 1));
	assert_true(rbx_write_behind_is_only_here(behind, 8, 1));
	assert_int_equal(behind->only_count, 1);
	run = sends(7, 1);
	taken(&run);
	acknowledged(8, 1);
	assert_int_equal(behind->only_count, 0);
	run = sends(8, 1);
	taken(&run);
}

/* What it may have instead is older than what was acknowledged. */
static void behind_write_that_ends_badly_leaves_a_block_only_here(void **state)
{
	struct rbx_behind_write write = write_of(7, 2);
	struct rbx_behind_run run;

	(void)state;
	written_through(7, 1);
	assert_true(rbx_write_behind_begin(behind, &write));
	rbx_write_behind_end(behind, &write, RBX_BEHIND_BADLY);
	assert_true(rbx_write_behind_is_only_here(behind, 7, 1));
	assert_false(rbx_write_behind_is_only_here(behind, 8, 1));
	run = sends(7, 2);
	assert_null(rbx_write_behind_sent(behind, &run, false));
	assert_int_equal(held(7), RBX_BEHIND_LOST);
	assert_true(rbx_write_behind_is_only_here(behind, 7, 1));
}

static void behind_run_goes_after_so_many_reads(void **state)
{
	struct rbx_behind_run run;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2 * RBX_BEHIND_READ_RUN_MAX; i++)
		assert_true(rbx_write_behind_read_may_go(behind));
	acknowledged(3, 1);
	acknowledged(9, 1);
	for (i = 0; i < RBX_BEHIND_READ_RUN_MAX; i++)
		assert_true(rbx_write_behind_read_may_go(behind));
	assert_false(rbx_write_behind_read_may_go(behind));
	assert_false(rbx_write_behind_read_may_go(behind));
	run = sends(3, 1);
	assert_true(rbx_write_behind_read_may_go(behind));
	taken(&run);
	run = sends(9, 1);
	taken(&run);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, behind_make, behind_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(behind_neighbours_go_as_one_run),
		TEST(behind_run_is_bounded_and_has_the_oldest),
		TEST(behind_block_is_found_where_it_is),
		TEST(behind_newer_page_replaces_one_not_sent),
		TEST(behind_newer_page_waits_for_one_sent),
		TEST(behind_write_waits_for_one_with_its_block),
		TEST(behind_write_waits_for_room),
		TEST(behind_write_through_ends_with_the_disk),
		TEST(behind_refused_block_is_lost_until_written),
		TEST(behind_block_written_through_is_only_here_until_written_well),
		TEST(behind_write_that_ends_badly_leaves_a_block_only_here),
		TEST(behind_run_goes_after_so_many_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
