/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_spare_test.c - a replica moves from the record into a frame: whatever is under way
 * to it, in any order of slots, and found by the name of its loan at any moment. And what
 * becomes of a slab that finds no record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/random.h"
#include "core/slab_rebuild.h"
#include "tests/core/slab_small.h"

/* What each slot has: the number that its server, loan and key are made of. */
static struct {
	uint32_t number;
	uint32_t flights_count;
} shadow[RBX_SLOTS_MAX];
static uint32_t next_number;

static uint32_t find_loan(uint32_t number)
{
	return rbx_loan_index_find(&loans, number % RBX_SERVERS_MAX,
				   number % 65536, number);
}

/* A new replica, from a server that has none. */
static uint32_t borrow(enum rbx_replica_state state)
{
	struct rbx_loan lent;
	uint32_t slot, number;

	do
		number = ++next_number;
	while (rbx_slab_has_server(slab, number % RBX_SERVERS_MAX));
	lent = (struct rbx_loan){
		.slab_id = number % 65536,
		.epoch = number,
		.remote_addr = (uint64_t)number << 24,
		.rkey = number,
	};
	if (state == RBX_REPLICA_REBUILDING)
		assert_true(rbx_slab_record_give(slab));
	slot = rbx_slab_borrow(slab, number % RBX_SERVERS_MAX);
	rbx_slab_lent(slab, slot, &lent, state);
	rbx_loan_index_add(&loans, rbx_replica_number(slab, slot));
	shadow[slot].number = number;
	return slot;
}

/* Copies all cells, of those that nobody is at. */
static void rebuild(void)
{
	struct rbx_piece *copy = pieces[PIECES - 1];
	uint32_t left;

	copy->kind = RBX_PIECE_COPY;
	while (rbx_slab_copy_next(slab, copy)) {
		rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
		expect(copy, RBX_PIECE_READING);
		done(copy, (uint32_t)__builtin_ctz(copy->send_mask), 0);
		expect(copy, RBX_PIECE_WRITING);
		for (left = copy->send_mask; left; left &= left - 1)
			done(copy, (uint32_t)__builtin_ctz(left), 0);
		expect(copy, RBX_PIECE_IDLE);
		(void)rbx_slab_copy_done(slab, copy);
	}
}

static void give_back(void)
{
	struct rbx_loan loan_back;
	uint32_t slot, server;

	slot = rbx_slab_give_back(slab, &server, &loan_back);
	rbx_loan_index_remove(&loans, rbx_replica_number(slab, slot));
	assert_int_equal(server, shadow[slot].number % RBX_SERVERS_MAX);
	assert_int_equal(loan_back.epoch, shadow[slot].number);
	assert_int_equal(find_loan(shadow[slot].number), RBX_SLAB_NONE);
	shadow[slot].number = 0;
}

static void expect_as_the_shadow(void)
{
	uint32_t slot;

	for (slot = 0; slot < shape.slots; slot++) {
		const struct rbx_replica *replica;

		if (rbx_slab_state(slab, slot) == RBX_REPLICA_EMPTY)
			continue;
		replica = rbx_slab_replica(slab, slot);
		assert_int_equal(replica->epoch, shadow[slot].number);
		assert_int_equal(replica->rkey, shadow[slot].number);
		assert_int_equal(rbx_replica_server(replica),
				 shadow[slot].number % RBX_SERVERS_MAX);
		assert_int_equal(rbx_replica_addr(replica),
				 (uint64_t)shadow[slot].number << 24);
		assert_int_equal(rbx_replica_flights(replica),
				 shadow[slot].flights_count);
		assert_int_equal(find_loan(shadow[slot].number), 0);
		assert_int_equal(rbx_replica_slot(slab, rbx_replica_number(slab, slot)),
				 slot);
	}
}

static int make(uint32_t replicas)
{
	uint32_t i;

	memset(shadow, 0, sizeof(shadow));
	next_number = 0;
	slab_make_with(replicas);
	for (i = 0; i < replicas; i++)
		(void)borrow(RBX_REPLICA_LIVE);
	return 0;
}

static int make_two(void **state)
{
	(void)state;
	return make(2);
}

/* ---- A replica moves ------------------------------------------------------------*/

static void evict(uint32_t slot)
{
	uint32_t number = shadow[slot].number;

	assert_true(rbx_slab_evict(slab, number % RBX_SERVERS_MAX,
				   number % 65536, number));
}

static void what_is_under_way_to_a_replica_that_moves_ends_there(void **state)
{
	struct rbx_piece *write;
	uint32_t slot;

	(void)state;
	evict(0);
	slot = borrow(RBX_REPLICA_REBUILDING);
	assert_int_equal(slot, 2);
	rebuild();
	write = start(0, RBX_PIECE_WRITE, 0, 4096);
	expect(write, RBX_PIECE_WRITING);
	assert_int_equal(write->send_mask, 6);
	give_back();
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_RETURN_RECORD);
	rbx_slab_return_record(slab, &loans);
	assert_false(slab->has_record);
	assert_int_equal(rbx_slab_records_free(&records), RBX_SLAB_RECORDS);
	assert_int_equal(rbx_replica_flights(rbx_slab_replica(slab, 2)), 1);
	/* It fails, and that is what is lost. */
	done(write, 1, 0);
	done(write, 2, -EHOSTUNREACH);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(write->status, 0);
	assert_int_equal(rbx_slab_state(slab, 2), RBX_REPLICA_LOST);
	assert_int_equal(slab->read_mask, 2);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_GIVE_BACK);
	give_back();
	assert_int_equal(find_loan(2), 0);
}

/* Nothing is given back before the rebuild is over, nor the record taken. */
static void record_stays_while_a_rebuild_is_under_way(void **state)
{
	struct rbx_piece *copy = pieces[0];

	(void)state;
	rbx_slab_server_down(slab, shadow[0].number % RBX_SERVERS_MAX);
	give_back();
	assert_int_equal(borrow(RBX_REPLICA_REBUILDING), 0);
	copy->kind = RBX_PIECE_COPY;
	assert_true(rbx_slab_copy_next(slab, copy));
	assert_false(rbx_slab_may_return_record(slab));
	rbx_slab_return_record(slab, &loans);
	assert_true(slab->has_record);
	/* Its target is lost; the copy is still under way. */
	rbx_slab_server_down(slab, shadow[0].number % RBX_SERVERS_MAX);
	give_back();
	assert_false(rbx_slab_may_return_record(slab));
	rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
	expect(copy, RBX_PIECE_READING);
	done(copy, 1, 0);
	expect(copy, RBX_PIECE_IDLE);
	assert_true(rbx_slab_copy_done(slab, copy));
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_RETURN_RECORD);
}

/* ---- In any order ---------------------------------------------------------------*/

/* A write of a cell that nobody else is at, to all that are written to. */
static void write_starts(uint32_t i)
{
	uint32_t slot;

	if (pieces[i]->state != RBX_PIECE_IDLE || !slab->read_mask)
		return;
	(void)start(i, RBX_PIECE_WRITE, i << shape.cell_shift, 4096);
	expect(pieces[i], RBX_PIECE_WRITING);
	for (slot = 0; slot < shape.slots; slot++)
		shadow[slot].flights_count += pieces[i]->send_mask >> slot & 1;
}

static void part_ends(uint32_t i)
{
	uint32_t slot;

	if (pieces[i]->state != RBX_PIECE_WRITING)
		return;
	slot = (uint32_t)__builtin_ctz(pieces[i]->flight_mask);
	shadow[slot].flights_count--;
	done(pieces[i], slot, 0);
	if (!pieces[i]->flight_mask)
		expect(pieces[i], RBX_PIECE_IDLE);
}

static void writes_end(void)
{
	uint32_t i;

	for (i = 0; i < PIECES; i++)
		while (pieces[i]->state != RBX_PIECE_IDLE)
			part_ends(i);
}

static void task_at_random(uint32_t *moves_count)
{
	switch (rbx_slab_task(slab)) {
	case RBX_TASK_GIVE_BACK:
		give_back();
		break;
	case RBX_TASK_RETURN_RECORD:
		(*moves_count)++;
		rbx_slab_return_record(slab, &loans);
		assert_false(slab->has_record);
		break;
	case RBX_TASK_BORROW:
		(void)borrow(RBX_REPLICA_REBUILDING);
		break;
	case RBX_TASK_COPY:
		writes_end();
		rebuild();
		break;
	default:
		break;
	}
}

static void harm_at_random(struct rbx_random *random)
{
	uint32_t slot = rbx_random_below(random, shape.slots);

	if (rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE &&
	    rbx_random_below(random, 2))
		evict(slot);
	else if (rbx_slab_readable(slab) > 1 && slab->read_mask >> slot & 1)
		rbx_slab_lose(slab, slot);
}

static void live_at_random(struct rbx_random *random, uint32_t *moves_count)
{
	switch (rbx_random_below(random, 8)) {
	case 0:
		write_starts(rbx_random_below(random, PIECES - 1));
		break;
	case 1:
	case 2:
		part_ends(rbx_random_below(random, PIECES - 1));
		break;
	case 3:
		harm_at_random(random);
		break;
	default:
		task_at_random(moves_count);
	}
}

static void slots_come_and_go_in_any_order(void **state)
{
	uint32_t replicas, i, moves_count;
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 5);
	for (replicas = 1; replicas <= RBX_REPLICAS_MAX; replicas++) {
		make(replicas);
		moves_count = 0;
		for (i = 0; i < 50000; i++) {
			live_at_random(&random, &moves_count);
			expect_as_the_shadow();
		}
		assert_true(moves_count > 1000);
		slab_free(NULL);
	}
}

/* ---- Found at any moment ----------------------------------------------------------*/

static uint32_t current; /* atomic: the number of a loan that we have; 0: it ends */

/* Server and id are made of the number, as by borrow(). */
static void *look_for_it(void *unused)
{
	uint32_t number, index;

	(void)unused;
	while ((number = RBX_LOAD_ACQUIRE(&current)) != 0) {
		index = find_loan(number);
		/* Else it was given back meanwhile. */
		if (RBX_LOAD_ACQUIRE(&current) == number)
			RBX_ASSERT(index == 0);
	}
	return NULL;
}

static void loan_that_moves_is_found_at_any_moment(void **state)
{
	pthread_t thread;
	uint32_t i;

	(void)state;
	RBX_STORE_RELEASE(&current, shadow[1].number);
	assert_int_equal(pthread_create(&thread, NULL, look_for_it, NULL), 0);
	for (i = 0; i < 2000; i++) {
		uint32_t old = i % 2 ? 2 : 0, new = 2 - old;
		struct rbx_piece *write;

		evict(old);
		assert_int_equal(borrow(RBX_REPLICA_REBUILDING), new);
		RBX_STORE_RELEASE(&current, shadow[new].number);
		rebuild();
		give_back();
		write = start(0, RBX_PIECE_WRITE, 0, 4096);
		expect(write, RBX_PIECE_WRITING);
		assert_int_equal(rbx_slab_task(slab), RBX_TASK_RETURN_RECORD);
		rbx_slab_return_record(slab, &loans);
		done(write, 1, 0);
		done(write, new, 0);
		expect(write, RBX_PIECE_IDLE);
	}
	RBX_STORE_RELEASE(&current, 0);
	pthread_join(thread, NULL);
}

/* ---- Without a record -------------------------------------------------------------*/

static void write_that_fails_here_without_a_record_has_all_copied(void **state)
{
	struct rbx_piece *write, *copy = pieces[5];
	uint32_t copies = 0;

	(void)state;
	while (rbx_slab_records_take(&records, RBX_SLAB_RECORDS_KEPT))
		;
	write = start(0, RBX_PIECE_WRITE, 0, 4096);
	expect(write, RBX_PIECE_WRITING);
	done(write, 0, -EFAULT);
	done(write, 1, -EFAULT);
	expect(write, RBX_PIECE_IDLE);
	assert_false(slab->has_record);
	/* It is not read, nor lost, and would take the place of the other. */
	assert_int_equal(slab->read_mask, 1);
	assert_int_equal(rbx_slab_state(slab, 1), RBX_REPLICA_REBUILDING);
	assert_true(rbx_slab_stands_in(slab, 1));
	assert_false(rbx_slab_is_last(slab));
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_COPY);
	/* Its turn comes: which cells differ nobody knows. */
	assert_true(rbx_slab_record_give(slab));
	assert_true(rbx_slab_stands_in(slab, 1));
	copy->kind = RBX_PIECE_COPY;
	while (rbx_slab_copy_next(slab, copy)) {
		rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
		expect(copy, RBX_PIECE_READING);
		done(copy, 0, 0);
		expect(copy, RBX_PIECE_WRITING);
		done(copy, 1, 0);
		expect(copy, RBX_PIECE_IDLE);
		copies++;
		(void)rbx_slab_copy_done(slab, copy);
	}
	assert_int_equal(copies, rbx_slab_cells(&shape));
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_RETURN_RECORD);
}

#define TEST_TWO(name) cmocka_unit_test_setup_teardown(name, make_two, slab_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_TWO(what_is_under_way_to_a_replica_that_moves_ends_there),
		TEST_TWO(record_stays_while_a_rebuild_is_under_way),
		cmocka_unit_test(slots_come_and_go_in_any_order),
		TEST_TWO(loan_that_moves_is_found_at_any_moment),
		TEST_TWO(write_that_fails_here_without_a_record_has_all_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
