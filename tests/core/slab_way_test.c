/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_way_test.c - single steps of pieces in a slab: what is sent where, who waits for
 * whom, what a failure changes. slab_replica_test.c has those of its replicas,
 * volume_test.c the histories at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/slab_small.h"

#include "core/slab_rebuild.h"

static void write_goes_to_all_replicas_and_ends_with_the_last(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 70000, 500);
	const struct rbx_fragment *fragment = &write->parts[1].fragment;

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	assert_int_equal(write->send_mask, 3);
	assert_int_equal(fragment->direction, RBX_DIRECTION_WRITE);
	assert_int_equal(fragment->remote_addr, (2 << 24) + 70000);
	assert_int_equal(fragment->rkey, 2);
	assert_int_equal(fragment->length_bytes, 500);
	assert_int_equal(write->parts[1].server, 1);
	done(write, 1, 0);
	expect_nothing();
	done(write, 0, 0);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(write->status, 0);
	assert_false(rbx_slab_attention(slab));
}

static void part_goes_to_any_server_of_a_volume(void **state)
{
	struct rbx_piece *write;

	(void)state;
	lend(RBX_SERVERS_MAX - 1, RBX_REPLICA_REBUILDING);
	write = start(0, RBX_PIECE_WRITE, 0, 4096);
	assert_int_equal(write->send_mask, 7);
	assert_int_equal(write->parts[2].server, RBX_SERVERS_MAX - 1);
}

static void reads_of_a_stripe_go_to_one_replica_stripes_spread(void **state)
{
	struct rbx_piece *first = start(0, RBX_PIECE_READ, 0, 4096);
	struct rbx_piece *same = start(1, RBX_PIECE_READ,
				       RBX_READ_STRIPE_BYTES - 4096, 4096);
	struct rbx_piece *next = start(2, RBX_PIECE_READ,
				       RBX_READ_STRIPE_BYTES, 4096);

	(void)state;
	assert_int_equal(first->send_mask, same->send_mask);
	assert_int_not_equal(first->send_mask, next->send_mask);
}

/* All replicas are lost while one write is under way and another waits for it: that one
 * is the last at their cell, and waits for memory from there. */
static void write_behind_a_lost_one_waits_for_memory(void **state)
{
	struct rbx_piece *first = start(0, RBX_PIECE_WRITE, 0, 4096);
	struct rbx_piece *second = start(1, RBX_PIECE_WRITE, 0, 4096);

	(void)state;
	expect(first, RBX_PIECE_WRITING);
	done(first, 0, -EHOSTUNREACH);
	done(first, 1, -EHOSTUNREACH);
	expect(first, RBX_PIECE_IDLE);
	expect_nothing();
	assert_int_equal(second->state, RBX_PIECE_WAITING);
	assert_true(slab->waits);
	rbx_slab_begin(slab, -ENOSPC, &todo);
	expect(second, RBX_PIECE_IDLE);
	assert_int_equal(second->status, -EIO);
	expect_nothing();
	assert_ptr_not_equal(first->spare_cell, second->spare_cell);
}

static void overlapping_writes_go_one_after_another(void **state)
{
	struct rbx_piece *first = start(0, RBX_PIECE_WRITE, 0, 8192);
	struct rbx_piece *second = start(1, RBX_PIECE_WRITE, 4096, 8192);
	struct rbx_piece *third = start(2, RBX_PIECE_WRITE, 12288, 4096);
	struct rbx_piece *apart = start(3, RBX_PIECE_WRITE, 1 << 17, 4096);

	(void)state;
	expect(first, RBX_PIECE_WRITING);
	/* The third is free to go, but nobody passes in a cell. */
	assert_int_equal(second->state, RBX_PIECE_WAITING);
	assert_int_equal(third->state, RBX_PIECE_WAITING);
	expect(apart, RBX_PIECE_WRITING);
	done(first, 0, 0);
	expect_nothing();
	done(first, 1, 0);
	expect(first, RBX_PIECE_IDLE);
	expect(second, RBX_PIECE_WRITING);
	expect(third, RBX_PIECE_WRITING);
}

static void replica_that_missed_a_write_is_lost_before_it_ends(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);
	struct rbx_piece *read;

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, -EHOSTUNREACH);
	assert_int_equal(rbx_slab_state(slab, 0), RBX_REPLICA_LOST);
	assert_true(rbx_slab_attention(slab));
	expect_nothing();
	done(write, 1, 0);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(write->status, 0);
	read = start(1, RBX_PIECE_READ, 0, 4096);
	assert_int_equal(read->send_mask, 2);
}

static void write_that_only_a_lost_replica_has_fails(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, 0);
	assert_true(rbx_slab_server_down(slab, 0));
	done(write, 1, -EREMOTEIO);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(write->status, -EIO);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_DEAD);
}

static void copy_waits_for_earlier_writes_and_later_ones_for_it(void **state)
{
	struct rbx_piece *early, *late, *copy = pieces[5];

	(void)state;
	rbx_slab_server_down(slab, 0);
	early = start(0, RBX_PIECE_WRITE, 0, 4096);
	expect(early, RBX_PIECE_WRITING);
	lend(2, RBX_REPLICA_REBUILDING);
	copy->kind = RBX_PIECE_COPY;
	assert_true(rbx_slab_copy_next(slab, copy));
	rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
	late = start(1, RBX_PIECE_WRITE, 1 << 16, 4096);
	expect_nothing();
	done(early, 1, 0);
	expect(early, RBX_PIECE_IDLE);
	expect(copy, RBX_PIECE_READING);
	assert_int_equal(copy->send_mask, 2);
	done(copy, 1, 0);
	expect(copy, RBX_PIECE_WRITING);
	assert_int_equal(copy->send_mask, 4);
	done(copy, 2, 0);
	expect(copy, RBX_PIECE_IDLE);
	expect(late, RBX_PIECE_WRITING);
	assert_int_equal(late->send_mask, 6);
	assert_false(rbx_slab_copy_done(slab, copy));
}

/* They wait on, for memory; and end where nobody lends any. */
static void dead_slab_all_that_wait_end_in_one_step(void **state)
{
	struct rbx_piece *first = start(0, RBX_PIECE_WRITE, 0, 4096);
	struct rbx_lost_pages *pages =
		malloc(rbx_lost_pages_size(rbx_slab_shape(slab)->slab_shift));
	struct rbx_loan loan;
	uint32_t server, i;

	(void)state;
	expect(first, RBX_PIECE_WRITING);
	for (i = 1; i < PIECES; i++)
		start(i, RBX_PIECE_WRITE, 0, 4096);
	expect_nothing();
	done(first, 0, -EREMOTEIO);
	done(first, 1, -EREMOTEIO);
	expect(first, RBX_PIECE_IDLE);
	assert_int_equal(first->status, -EIO);
	expect_nothing();
	while (rbx_slab_task(slab) == RBX_TASK_GIVE_BACK)
		(void)rbx_slab_give_back(slab, &server, &loan);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_LEND);
	assert_true(rbx_slab_wants_pages(slab));
	rbx_slab_lend_pages(slab, pages);
	rbx_slab_place(slab);
	rbx_slab_begin(slab, -ENOSPC, &todo);
	for (i = 1; i < PIECES; i++) {
		expect(pieces[i], RBX_PIECE_IDLE);
		assert_int_equal(pieces[i]->status, -EIO);
	}
	free(rbx_slab_take_pages(slab));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write_goes_to_all_replicas_and_ends_with_the_last),
		TEST(part_goes_to_any_server_of_a_volume),
		TEST(reads_of_a_stripe_go_to_one_replica_stripes_spread),
		TEST(write_behind_a_lost_one_waits_for_memory),
		TEST(overlapping_writes_go_one_after_another),
		TEST(replica_that_missed_a_write_is_lost_before_it_ends),
		TEST(write_that_only_a_lost_replica_has_fails),
		TEST(copy_waits_for_earlier_writes_and_later_ones_for_it),
		TEST(dead_slab_all_that_wait_end_in_one_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
