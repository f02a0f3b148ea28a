/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stall_test.c - a ring stands still when looks in a row find no progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/stall.h"

static struct rbx_work works[8];
static struct rbx_send_ring ring;
static struct rbx_stall stall;

static int ring_with_one_posted(void **state)
{
	(void)state;
	rbx_send_ring_init(&ring, works, 8);
	stall = (struct rbx_stall){ 0 };
	ring.posted_count = 1;
	return 0;
}

static void looks(uint32_t count)
{
	while (count--)
		assert_false(rbx_stall_look(&stall, &ring));
}

static void stall_is_seen_after_its_looks(void **state)
{
	(void)state;
	looks(RBX_STALL_LOOKS - 1);
	assert_true(rbx_stall_look(&stall, &ring));
}

static void stall_needs_something_posted(void **state)
{
	(void)state;
	looks(RBX_STALL_LOOKS - 1);
	ring.completed_count = 1;
	looks(10 * RBX_STALL_LOOKS);
}

static void stall_starts_anew_with_each_answer(void **state)
{
	(void)state;
	looks(RBX_STALL_LOOKS - 1);
	ring.answered_count++;
	looks(RBX_STALL_LOOKS);
	assert_true(rbx_stall_look(&stall, &ring));
}

/* What is flushed completes, and is no answer. */
static void stall_is_not_ended_by_what_is_flushed(void **state)
{
	(void)state;
	ring.posted_count = 5;
	looks(RBX_STALL_LOOKS - 1);
	ring.completed_count = 3;
	assert_true(rbx_stall_look(&stall, &ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stall_is_seen_after_its_looks,
				       ring_with_one_posted),
		cmocka_unit_test_setup(stall_needs_something_posted,
				       ring_with_one_posted),
		cmocka_unit_test_setup(stall_starts_anew_with_each_answer,
				       ring_with_one_posted),
		cmocka_unit_test_setup(stall_is_not_ended_by_what_is_flushed,
				       ring_with_one_posted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
