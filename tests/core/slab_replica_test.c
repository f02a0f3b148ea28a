/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_replica_test.c - single steps in the life of a slab's replicas: what fails here
 * makes them differ and loses none, they are copied, wanted back, and given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/slab_small.h"

#include "core/slab_rebuild.h"

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
	assert_int_equal(rbx_slab_state(slab, 1), RBX_REPLICA_LIVE);
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
	assert_int_equal(rbx_slab_state(slab, 1), RBX_REPLICA_REBUILDING);
	expect_cell_is_copied(0, 1, 2);
	assert_true(rbx_slab_evict(slab, 1, 2, 1));
	assert_int_equal(rbx_slab_state(slab, 1), RBX_REPLICA_LEAVING);
	assert_true(rbx_slab_evict(slab, 1, 2, 1)); /* a reminder */
	assert_int_equal(rbx_slab_state(slab, 1), RBX_REPLICA_LEAVING);
}

/* A server that drains may keep it for long, and if nobody takes it, it is as good as any. */
static void write_that_fails_here_costs_no_replica_that_leaves(void **state)
{
	struct rbx_piece *write = start(0, RBX_PIECE_WRITE, 0, 4096);

	(void)state;
	expect(write, RBX_PIECE_WRITING);
	assert_true(rbx_slab_evict(slab, 0, 1, 1));
	assert_true(rbx_slab_evict(slab, 1, 2, 1));
	done(write, 0, -EFAULT);
	done(write, 1, -EFAULT);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(rbx_slab_state(slab, 0), RBX_REPLICA_LEAVING);
	assert_true(rbx_slab_stands_in(slab, 1));
	expect_cell_is_copied(0, 1, 2);
	assert_int_equal(rbx_slab_state(slab, 1), RBX_REPLICA_LEAVING);
	assert_int_equal(slab->read_mask, 3);
}

/* It is made like the others, and goes when there is one more than wanted. */
static void replica_that_leaves_and_differs_goes_in_the_end(void **state)
{
	struct rbx_piece *write, *copy = pieces[5];

	(void)state;
	assert_true(rbx_slab_evict(slab, 0, 1, 1));
	lend(2, RBX_REPLICA_REBUILDING);
	write = start(0, RBX_PIECE_WRITE, 0, 4096);
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, -EFAULT);
	done(write, 1, 0);
	done(write, 2, 0);
	expect(write, RBX_PIECE_IDLE);
	assert_true(rbx_slab_stands_in(slab, 0));
	assert_int_equal(slab->write_mask, 7);
	copy->kind = RBX_PIECE_COPY;
	while (rbx_slab_copy_next(slab, copy)) {
		rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
		expect(copy, RBX_PIECE_READING);
		done(copy, 1, 0);
		expect(copy, RBX_PIECE_WRITING);
		done(copy, 0, 0);
		done(copy, 2, 0);
		expect(copy, RBX_PIECE_IDLE);
		(void)rbx_slab_copy_done(slab, copy);
	}
	assert_int_equal(rbx_slab_state(slab, 0), RBX_REPLICA_LOST);
	assert_int_equal(slab->read_mask, 6);
}

/* The server may have lent its memory to others before it was read. */
static void read_of_a_lost_replica_is_made_again(void **state)
{
	struct rbx_piece *read = start(0, RBX_PIECE_READ, 0, 4096);
	uint32_t slot = (uint32_t)__builtin_ctz(read->send_mask);

	(void)state;
	expect(read, RBX_PIECE_READING);
	rbx_slab_lose(slab, slot);
	done(read, slot, 0);
	expect(read, RBX_PIECE_READING);
	assert_int_equal(read->send_mask, 1u << (1 - slot));
	done(read, 1 - slot, 0);
	expect(read, RBX_PIECE_IDLE);
	assert_int_equal(read->status, 0);
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
	assert_int_equal(rbx_slab_state(slab, 0), RBX_REPLICA_LOST);
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
	assert_int_equal(rbx_slab_state(slab, 2), RBX_REPLICA_LOST);
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
		assert_int_equal(rbx_slab_state(slab, 0), RBX_REPLICA_LEAVING);
		(void)rbx_slab_copy_done(slab, copy);
	}
	assert_int_equal(rbx_slab_state(slab, 0), RBX_REPLICA_LOST);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_GIVE_BACK);
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
}

static int slab_make_three(void **state)
{
	(void)state;
	return slab_make_of(3);
}

/* Copies of a rebuild whose target is lost end while another replica, which has all that
 * was acknowledged, stands in: it is not lost with them. */
static void old_copy_costs_no_replica_that_stands_in(void **state)
{
	struct rbx_piece *copy = pieces[0], *write;
	struct rbx_loan before;
	uint32_t server;

	(void)state;
	/* The third one is made anew. */
	rbx_slab_server_down(slab, 2);
	(void)rbx_slab_give_back(slab, &server, &before);
	lend(2, RBX_REPLICA_REBUILDING);
	/* A copy is on its way to server 2 ... */
	copy->kind = RBX_PIECE_COPY;
	assert_true(rbx_slab_copy_next(slab, copy));
	rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
	expect(copy, RBX_PIECE_READING);
	done(copy, (uint32_t)__builtin_ctz(copy->send_mask), 0);
	expect(copy, RBX_PIECE_WRITING);
	assert_int_equal(copy->send_mask, 1 << 2);
	/* ... which dies. */
	assert_true(rbx_slab_server_down(slab, 2));

	/* Bad memory of the program, in another cell: no fault of any server. */
	write = start(1, RBX_PIECE_WRITE, 3 << 17, 4096);
	expect(write, RBX_PIECE_WRITING);
	assert_int_equal(write->send_mask, 3);
	done(write, 0, -EFAULT);
	done(write, 1, -EFAULT);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(slab->read_mask, 1);
	assert_true(rbx_slab_stands_in(slab, 1));

	/* The copy of before ends at last, as it was sent to the dead. */
	done(copy, 2, -EHOSTUNREACH);
	expect(copy, RBX_PIECE_IDLE);
	(void)rbx_slab_copy_done(slab, copy);

	/* A fault of this machine costs no remote copy. */
	assert_int_not_equal(rbx_slab_state(slab, 1), RBX_REPLICA_LOST);
	/* Two of three servers are dead, and nothing is lost. */
	rbx_slab_server_down(slab, 0);
	assert_int_not_equal(rbx_slab_health(slab), RBX_SLAB_DEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write_that_fails_here_everywhere_loses_no_replica),
		TEST(write_that_fails_here_for_one_makes_it_like_the_other),
		TEST(replica_that_missed_what_failed_stands_in_for_the_last),
		TEST(replica_that_stands_in_leaves_when_it_is_live),
		TEST(write_that_fails_here_costs_no_replica_that_leaves),
		TEST(replica_that_leaves_and_differs_goes_in_the_end),
		TEST(read_of_a_lost_replica_is_made_again),
		TEST(write_that_fails_here_in_a_rebuild_is_copied_once_more),
		TEST(copy_that_fails_here_is_made_again_a_bounded_number_of_times),
		TEST(lost_replica_keeps_its_memory_while_in_flight),
		TEST(evicted_replica_serves_until_it_is_replaced),
		cmocka_unit_test_setup_teardown(
			old_copy_costs_no_replica_that_stands_in, slab_make_three,
			slab_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
