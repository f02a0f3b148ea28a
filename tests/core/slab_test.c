/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_test.c - single steps of a slab: what is sent where, who waits for whom,
 * what a failure changes. volume_test.c has the histories at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/slab_way.h"

#define PIECES 6u

static struct rbx_slab_group group; /* the first of them, as of slab 0 */
static const struct rbx_slab_shape shape = {
	.groups = &group,
	.slab_shift = 21,
	.cell_shift = 17,
	.replicas = 2,
	.slots = 3,
};
static struct rbx_slab *slab;
static struct rbx_piece *pieces[PIECES];
static struct rbx_piece_list todo;

static struct rbx_fragment *unused_done(struct rbx_fragment *fragment)
{
	return rbx_fragment_next(fragment);
}

static struct rbx_loan loan(uint32_t number)
{
	return (struct rbx_loan){ .slab_id = number,
				  .epoch = 1,
				  .remote_addr = number << 24,
				  .rkey = number };
}

static void lend(uint32_t server, enum rbx_replica_state state)
{
	struct rbx_loan lent = loan(server + 1);

	rbx_slab_lent(slab, rbx_slab_borrow(slab, server), &lent, state);
}

static int slab_make(void **state)
{
	uint32_t i;

	(void)state;
	memset(&group, 0, sizeof(group));
	rbx_slab_group_init(&group);
	memset(&todo, 0, sizeof(todo));
	slab = calloc(1, rbx_slab_size(shape.slots));
	rbx_slab_init(slab, &shape, 0);
	lend(0, RBX_REPLICA_LIVE);
	lend(1, RBX_REPLICA_LIVE);
	(void)rbx_slab_attention(slab);
	for (i = 0; i < PIECES; i++) {
		pieces[i] = calloc(1, rbx_piece_size(3, 0));
		rbx_piece_init(pieces[i], 3, 0, NULL, unused_done);
	}
	return 0;
}

static int slab_free(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < PIECES; i++)
		free(pieces[i]);
	free(slab);
	return 0;
}

static struct rbx_piece *start(uint32_t i, enum rbx_piece_kind kind,
			       uint32_t offset, uint32_t length)
{
	pieces[i]->slab = slab;
	pieces[i]->kind = (uint8_t)kind;
	pieces[i]->offset_bytes = offset;
	pieces[i]->length_bytes = length;
	rbx_slab_start(slab, rbx_slab_group(slab), pieces[i], &todo);
	return pieces[i];
}

static void done(struct rbx_piece *piece, uint32_t slot, int32_t status)
{
	rbx_slab_done(slab, rbx_slab_group(slab), &piece->parts[slot], status, &todo);
}

/* The next on the list is this one, in this state. */
static void expect(const struct rbx_piece *piece, enum rbx_piece_state state)
{
	assert_ptr_equal(rbx_piece_list_take(&todo), piece);
	assert_int_equal(piece->state, state);
}

static void expect_nothing(void)
{
	assert_null(rbx_piece_list_take(&todo));
}

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
	assert_int_equal(slab->states[0], RBX_REPLICA_LOST);
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

/* The one copy of a rebuild that is one of a single cell. */
static void expect_cell_is_copied(uint32_t cell, uint32_t from, uint32_t to)
{
	struct rbx_piece *copy = pieces[5];

	assert_int_equal(rbx_slab_task(slab), RBX_TASK_COPY);
	copy->kind = RBX_PIECE_COPY;
	assert_true(rbx_slab_copy_next(slab, copy));
	assert_int_equal(copy->offset_bytes, cell << shape.cell_shift);
	rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
	expect(copy, RBX_PIECE_READING);
	assert_int_equal(copy->send_mask, from);
	done(copy, (uint32_t)__builtin_ctz(from), 0);
	expect(copy, RBX_PIECE_WRITING);
	assert_int_equal(copy->send_mask, to);
	done(copy, (uint32_t)__builtin_ctz(to), 0);
	expect(copy, RBX_PIECE_IDLE);
	assert_true(rbx_slab_copy_done(slab, copy));
}

static void write_that_fails_here_everywhere_loses_no_replica(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 3 << 17, 4096);
	struct rbx_piece *read;

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, -EFAULT);
	done(write, 1, -EIO);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(write->status, -EIO);
	/* Some of it may have arrived, at one and not at the other. */
	assert_int_equal(slab->read_mask, 1);
	assert_int_equal(slab->write_mask, 3);
	expect_cell_is_copied(3, 1, 2);
	assert_int_equal(slab->read_mask, 3);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
	read = start(1, RBX_PIECE_READ, 0, 4096);
	expect(read, RBX_PIECE_READING);
	done(read, 0, -EFAULT);
	expect(read, RBX_PIECE_IDLE);
	assert_int_equal(read->status, -EFAULT);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
}

static void write_that_fails_here_for_one_makes_it_like_the_other(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, -ENOMEM);
	done(write, 1, 0);
	expect(write, RBX_PIECE_IDLE);
	/* It is on one server only, so it is not acknowledged. */
	assert_int_equal(write->status, -ENOMEM);
	assert_int_equal(slab->read_mask, 2);
	expect_cell_is_copied(0, 2, 1);
	assert_int_equal(slab->read_mask, 3);
}

/* Nothing acknowledged is missing: then it has all that there is. */
static void replica_that_missed_what_failed_stands_in_for_the_last(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);

	(void)state;
	done(write, 0, -EFAULT);
	done(write, 1, -EFAULT);
	assert_int_equal(slab->read_mask, 1);
	rbx_slab_server_down(slab, 0);
	assert_int_equal(slab->read_mask, 2);
	assert_int_equal(slab->states[1], RBX_REPLICA_LIVE);
}

/* Its server wants it back just then: it goes when its cell is copied, not before. */
static void replica_that_stands_in_leaves_when_it_is_live(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, -EFAULT);
	done(write, 1, -EFAULT);
	expect(write, RBX_PIECE_IDLE);
	assert_false(rbx_slab_evict(slab, 1, 2, 1));
	assert_int_equal(slab->states[1], RBX_REPLICA_REBUILDING);
	expect_cell_is_copied(0, 1, 2);
	assert_true(rbx_slab_evict(slab, 1, 2, 1));
	assert_int_equal(slab->states[1], RBX_REPLICA_LEAVING);
	assert_true(rbx_slab_evict(slab, 1, 2, 1)); /* a reminder */
	assert_int_equal(slab->states[1], RBX_REPLICA_LEAVING);
}

/* Two slots of three are targets; what has been copied is copied again. */
static void write_that_fails_here_in_a_rebuild_is_copied_once_more(void **state)
{
	struct rbx_piece *write, *copy = pieces[5];
	uint32_t copies = 0;

	(void)state;
	rbx_slab_evict(slab, 0, 1, 1);
	lend(2, RBX_REPLICA_REBUILDING);
	copy->kind = RBX_PIECE_COPY;
	while (rbx_slab_copy_next(slab, copy)) {
		rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
		expect(copy, RBX_PIECE_READING);
		done(copy, (uint32_t)__builtin_ctz(copy->send_mask), 0);
		expect(copy, RBX_PIECE_WRITING);
		for (uint32_t slot = 0; slot < 3; slot++)
			if (copy->send_mask >> slot & 1)
				done(copy, slot, 0);
		expect(copy, RBX_PIECE_IDLE);
		if (copies++ == 5) {
			write = start(0, RBX_PIECE_WRITE, 0, 4096);
			expect(write, RBX_PIECE_WRITING);
			assert_int_equal(write->send_mask, 7);
			done(write, 2, 0);
			done(write, 1, -EFAULT);
			done(write, 0, -EFAULT);
			expect(write, RBX_PIECE_IDLE);
			assert_int_equal(write->status, -EFAULT);
			/* The one that is wanted back is the truth. */
			assert_int_equal(slab->read_mask, 1);
			assert_int_equal(rbx_slab_targets(slab), 6);
		}
		(void)rbx_slab_copy_done(slab, copy);
	}
	assert_int_equal(copies, 16 + 1);
	assert_int_equal(slab->read_mask, 6);
	assert_int_equal(slab->states[0], RBX_REPLICA_LOST);
}

static void copy_that_fails_here_is_made_again_a_bounded_number_of_times(
	void **state)
{
	struct rbx_piece *copy = pieces[5];
	uint32_t copies = 0;

	(void)state;
	rbx_slab_server_down(slab, 0);
	lend(2, RBX_REPLICA_REBUILDING);
	copy->kind = RBX_PIECE_COPY;
	while (rbx_slab_copy_next(slab, copy)) {
		bool fails = copies++ > 0;

		rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
		expect(copy, RBX_PIECE_READING);
		done(copy, 1, fails ? -EFAULT : 0);
		if (!fails) {
			expect(copy, RBX_PIECE_WRITING);
			done(copy, 2, -EIO);
		}
		expect(copy, RBX_PIECE_IDLE);
		(void)rbx_slab_copy_done(slab, copy);
	}
	assert_int_equal(copies, RBX_RETRIES_MAX + 1);
	assert_int_equal(slab->states[2], RBX_REPLICA_LOST);
	assert_int_equal(slab->read_mask, 2);
}

static void lost_replica_keeps_its_memory_while_in_flight(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);
	struct rbx_loan back;
	uint32_t server;

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	rbx_slab_server_down(slab, 0);
	assert_int_not_equal(rbx_slab_task(slab), RBX_TASK_GIVE_BACK);
	(void)rbx_slab_attention(slab);
	done(write, 0, -EHOSTUNREACH);
	assert_true(rbx_slab_attention(slab));
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_GIVE_BACK);
	rbx_slab_give_back(slab, &server, &back);
	assert_int_equal(server, 0);
	assert_int_equal(back.slab_id, 1);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_BORROW);
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
		malloc(rbx_lost_pages_size(slab->shape->slab_shift));
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

static void evicted_replica_serves_until_it_is_replaced(void **state)
{
	struct rbx_piece *read, *copy = pieces[5];

	(void)state;
	assert_false(rbx_slab_evict(slab, 0, 77, 1));
	assert_false(rbx_slab_evict(slab, 0, 1, 2)); /* another loan of it */
	assert_true(rbx_slab_evict(slab, 0, 1, 1));
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_LACKING);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_BORROW);
	read = start(0, RBX_PIECE_READ, 0, 4096);
	assert_int_equal(read->send_mask, 1);
	expect(read, RBX_PIECE_READING);
	done(read, 0, 0);
	expect(read, RBX_PIECE_IDLE);
	lend(2, RBX_REPLICA_REBUILDING);
	copy->kind = RBX_PIECE_COPY;
	while (rbx_slab_copy_next(slab, copy)) {
		rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
		expect(copy, RBX_PIECE_READING);
		done(copy, copy->send_mask >> 1, 0);
		expect(copy, RBX_PIECE_WRITING);
		done(copy, 2, 0);
		expect(copy, RBX_PIECE_IDLE);
		assert_int_equal(slab->states[0], RBX_REPLICA_LEAVING);
		(void)rbx_slab_copy_done(slab, copy);
	}
	assert_int_equal(slab->states[0], RBX_REPLICA_LOST);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_GIVE_BACK);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, slab_make, slab_free)

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
		TEST(write_that_fails_here_everywhere_loses_no_replica),
		TEST(write_that_fails_here_for_one_makes_it_like_the_other),
		TEST(replica_that_missed_what_failed_stands_in_for_the_last),
		TEST(replica_that_stands_in_leaves_when_it_is_live),
		TEST(write_that_fails_here_in_a_rebuild_is_copied_once_more),
		TEST(copy_that_fails_here_is_made_again_a_bounded_number_of_times),
		TEST(lost_replica_keeps_its_memory_while_in_flight),
		TEST(copy_waits_for_earlier_writes_and_later_ones_for_it),
		TEST(dead_slab_all_that_wait_end_in_one_step),
		TEST(evicted_replica_serves_until_it_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
