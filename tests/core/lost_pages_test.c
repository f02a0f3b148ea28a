/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lost_pages_test.c - slabs that have lost their last replica: they get new memory
 * with the next write, and what that does not write stays lost.
 */
#include "tests/core/scripted_host.h"

#define PAGE RBX_PAGE_BYTES
#define CELLS (HOST_SLAB_BYTES / HOST_CELL_BYTES)

static uint8_t out[HOST_CELL_BYTES], in[HOST_CELL_BYTES];

static void expect(struct host *host, enum rbx_piece_kind kind,
		   uint64_t offset, uint32_t length, int32_t status)
{
	host_start(host, kind, offset, kind == RBX_PIECE_READ ? in : out,
		   length);
	(void)host_settle(host);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, status), 1);
}

/* The server of the first slab's only replica. */
static uint32_t server_of(struct host *host)
{
	const struct rbx_slab *slab = host_slab(host, 0);

	assert_int_equal(rbx_slab_readable(slab), 1);
	return host_server_of(host, 0, (uint32_t)__builtin_ctz(slab->read_mask));
}

static void lose(struct host *host)
{
	host_server_dies(host, server_of(host));
	(void)host_settle(host);
	assert_int_equal(host_census(host).dead, 1);
}

/* A slab that is all of this byte, and lost. */
static struct host *host_of_lost(struct host *host)
{
	uint32_t cell;

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	memset(out, 5, sizeof(out));
	for (cell = 0; cell < CELLS; cell++)
		expect(host, RBX_PIECE_WRITE, cell * HOST_CELL_BYTES,
		       HOST_CELL_BYTES, 0);
	lose(host);
	return host;
}

static void lost_slab_is_written_and_has_memory_again(void **state)
{
	struct host *host = host_of_lost(host_make(1, 1, 2));

	(void)state;
	expect(host, RBX_PIECE_READ, 0, HOST_CELL_BYTES, -EIO);
	assert_int_equal(host_lent_count(host, 0) + host_lent_count(host, 1),
			 1); /* the dead one's */
	host_write_cell(host, 6);
	assert_null(host->ended.first);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).dead, 0);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).holes, 1);
	host_assert_cell(host, 6);
	host_free(host);
}

static void lost_page_reads_fail_until_it_is_written_whole(void **state)
{
	uint32_t checksums;

	(void)state;
	for (checksums = 0; checksums < 2; checksums++) {
		struct host *host = host_of_lost(
			checksums ? host_make_with_checksums(1, 1, 2) :
				    host_make(1, 1, 2));

		/* The second page of the second cell. */
		memset(out, 7, sizeof(out));
		expect(host, RBX_PIECE_WRITE, HOST_CELL_BYTES + PAGE, PAGE, 0);
		expect(host, RBX_PIECE_READ, HOST_CELL_BYTES + PAGE, PAGE, 0);
		assert_memory_equal(in, out, PAGE);
		expect(host, RBX_PIECE_READ, HOST_CELL_BYTES, PAGE, -EIO);
		expect(host, RBX_PIECE_READ, HOST_CELL_BYTES, 2 * PAGE, -EIO);
		expect(host, RBX_PIECE_READ, 0, PAGE, -EIO);
		expect(host, RBX_PIECE_READ, 2 * HOST_CELL_BYTES, PAGE, -EIO);
		expect(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, PAGE, 0);
		expect(host, RBX_PIECE_READ, HOST_CELL_BYTES, 2 * PAGE, 0);
		assert_memory_equal(in, out, 2 * PAGE);
		host_free(host);
	}
}

/* Nobody has the rest of the page. */
static void lost_page_write_of_a_part_fails(void **state)
{
	struct host *host = host_of_lost(host_make(1, 1, 2));

	(void)state;
	expect(host, RBX_PIECE_WRITE, PAGE, PAGE, 0);
	expect(host, RBX_PIECE_WRITE, 512, PAGE - 512, -EIO);
	expect(host, RBX_PIECE_WRITE, 0, PAGE - 512, -EIO);
	expect(host, RBX_PIECE_WRITE, 512, 512, -EIO);
	expect(host, RBX_PIECE_WRITE, PAGE - 512, 1024, -EIO);
	expect(host, RBX_PIECE_READ, 0, PAGE, -EIO);
	/* Of a good one, and of one that is written whole beside it. */
	expect(host, RBX_PIECE_WRITE, PAGE + 512, 512, 0);
	expect(host, RBX_PIECE_WRITE, 0, PAGE + 512, 0);
	expect(host, RBX_PIECE_WRITE, 512, 512, 0);
	expect(host, RBX_PIECE_READ, 0, 2 * PAGE, 0);
	host_free(host);
}

static void lost_slab_is_lost_again_with_all_its_pages(void **state)
{
	struct host *host = host_of_lost(host_make(1, 1, 3));

	(void)state;
	host_write_cell(host, 6);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	lose(host);
	expect(host, RBX_PIECE_READ, 0, PAGE, -EIO);
	expect(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, PAGE, 0);
	expect(host, RBX_PIECE_READ, 0, PAGE, -EIO);
	expect(host, RBX_PIECE_READ, HOST_CELL_BYTES, PAGE, 0);
	assert_int_equal(host->memory_count, 1);
	host_free(host);
}

static void lost_slab_is_written_all_over_and_needs_no_memory_here(void **state)
{
	struct host *host = host_of_lost(host_make(1, 1, 2));
	uint32_t cell;

	(void)state;
	/* A page that is written again counts once. */
	for (cell = 0; cell < CELLS; cell++)
		expect(host, RBX_PIECE_WRITE, 0, HOST_CELL_BYTES, 0);
	for (cell = 0; cell < CELLS; cell++) {
		assert_int_equal(host->memory_count, 1);
		expect(host, RBX_PIECE_WRITE, cell * HOST_CELL_BYTES,
		       HOST_CELL_BYTES, 0);
	}
	assert_int_equal(host->memory_count, 0);
	assert_int_equal(host_census(host).holes, 0);
	for (cell = 0; cell < CELLS; cell++)
		expect(host, RBX_PIECE_READ, cell * HOST_CELL_BYTES,
		       HOST_CELL_BYTES, 0);
	host_free(host);
}

static void lost_slab_is_discarded_and_reads_as_zeros(void **state)
{
	uint32_t is_placed;

	(void)state;
	for (is_placed = 0; is_placed < 2; is_placed++) {
		struct host *host = host_make_on_demand(1, 1, 2);

		host_write_cell(host, 5);
		(void)host_settle(host);
		assert_int_equal(host_ended(host, 0), 1);
		lose(host);
		if (is_placed)
			expect(host, RBX_PIECE_WRITE, PAGE, PAGE, 0);
		rbx_flow_discard(&host->flow, 0, HOST_SLAB_BYTES);
		(void)host_settle(host);
		assert_int_equal(host->memory_count, 0);
		host_start(host, RBX_PIECE_READ, 0, in, 512);
		host_poll(host);
		assert_true(rbx_piece_of(host->ended.first)->reads_zeros);
		assert_int_equal(host_ended(host, 0), 1);
		/* And has no holes when it is written again. */
		expect(host, RBX_PIECE_WRITE, 512, 512, 0);
		expect(host, RBX_PIECE_READ, 2 * PAGE, PAGE, 0);
		host_free(host);
	}
}

/* Nobody waits who may have the data elsewhere. */
static void lost_slab_nobody_lends_the_writes_fail_at_once(void **state)
{
	static const int refusals[] = { -ENOSPC, -ENOTCONN, -ETIMEDOUT };
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct host *host = host_of_lost(host_make(1, 1, 2));
		uint32_t left = host->servers[0].down;

		host->servers[left].refuse = refusals[i];
		expect(host, RBX_PIECE_WRITE, 0, PAGE, -EIO);
		expect(host, RBX_PIECE_READ, 0, PAGE, -EIO);
		host->servers[left].refuse = 0;
		expect(host, RBX_PIECE_WRITE, 0, PAGE, 0);
		expect(host, RBX_PIECE_READ, 0, PAGE, 0);
		expect(host, RBX_PIECE_READ, PAGE, PAGE, -EIO);
		host_free(host);
	}
}

static void lost_slab_without_memory_for_its_pages_borrows_none(void **state)
{
	struct host *host = host_of_lost(host_make(1, 1, 2));
	uint32_t left = host->servers[0].down;
	uint32_t asked_count = host->servers[left].asked_count;

	(void)state;
	host->is_short_of_memory = true;
	expect(host, RBX_PIECE_WRITE, 0, PAGE, -EIO);
	assert_int_equal(host->servers[left].asked_count, asked_count);
	host->is_short_of_memory = false;
	expect(host, RBX_PIECE_WRITE, 0, PAGE, 0);
	host_free(host);
}

/* Nothing that was sent to the lost one meets what is lent now. */
static void lost_slab_waits_for_what_is_under_way(void **state)
{
	struct host *host = host_make(1, 1, 2);
	uint32_t server;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	server = server_of(host);
	host_start(host, RBX_PIECE_READ, 0, in, PAGE);
	host_server_dies(host, server);
	(void)host_round(host);
	host_write_cell(host, 6);
	(void)host_round(host);
	assert_int_equal(host_lent_count(host, !server), 0);
	host_poll(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_assert_cell(host, 6);
	host_free(host);
}

/* A write of a part waits for the whole page that is under way before it. */
static void lost_page_write_of_a_part_comes_after_the_whole(void **state)
{
	static uint8_t part[512];
	struct host *host = host_of_lost(host_make(1, 1, 2));

	(void)state;
	expect(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, PAGE, 0);
	memset(part, 9, sizeof(part));
	host_start(host, RBX_PIECE_WRITE, 0, out, PAGE);
	host_start(host, RBX_PIECE_WRITE, 512, part, sizeof(part));
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 2);
	expect(host, RBX_PIECE_READ, 512, 512, 0);
	assert_memory_equal(in, part, sizeof(part));
	host_free(host);
}

/* Of two replicas both are lent before the first is written to, and each page is
 * good on a third one that is made from them. */
static void lost_slab_has_all_replicas_and_is_rebuilt_with_its_holes(void **state)
{
	struct host *host = host_make(1, 2, 4);
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t slot;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	for (slot = 0; slot < 2; slot++)
		host_server_dies(host, host_server_of(host, 0, slot));
	(void)host_settle(host);
	assert_int_equal(host_census(host).dead, 1);
	host_write_cell(host, 6);
	(void)host_round(host);
	(void)host_round(host);
	assert_int_equal(rbx_slab_readable(slab), 2);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	slot = (uint32_t)__builtin_ctz(slab->read_mask);
	host_server_dies(host, host_server_of(host, 0, slot));
	(void)host_settle(host);
	host_assert_cell(host, 6);
	expect(host, RBX_PIECE_READ, HOST_CELL_BYTES, PAGE, -EIO);
	host_free(host);
}

/* A write that comes while servers are asked must not miss the second one. */
static void lost_slab_is_not_in_use_before_all_of_it_is_lent(void **state)
{
	struct host *host = host_of_lost(host_make(1, 1, 2));
	struct rbx_slab *slab = host_slab(host, 0);
	struct rbx_loan loan = { .slab_id = 3, .epoch = 1, .rkey = 1 };
	struct rbx_piece_list todo = { 0 };
	uint32_t left = host->servers[0].down, slot;

	(void)state;
	host_write_cell(host, 6);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_LEND);
	rbx_slab_lend_pages(slab,
			    host->upkeep.ops->memory_lend(
				    &host->upkeep,
				    rbx_lost_pages_size(rbx_slab_shape(slab)->slab_shift)));
	rbx_slab_place(slab);
	slot = rbx_slab_borrow(slab, left);
	loan.remote_addr = (uintptr_t)host->servers[left].memory[3];
	host->servers[left].keys[3] = 1;
	rbx_slab_lent(slab, slot, &loan, RBX_REPLICA_LIVE);
	rbx_loan_index_add(&host->flow.map->loans, rbx_replica_number(slab, slot));
	assert_int_equal(slab->write_mask, 0);
	assert_int_equal(rbx_slab_task(slab), RBX_TASK_NONE);
	host_write_cell(host, 6);
	assert_int_equal(host->submits_count, CELLS);
	rbx_slab_begin(slab, 0, &todo);
	assert_int_equal(slab->write_mask, 1 << slot);
	rbx_flow_do(&host->flow, &todo);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 2);
	host_assert_cell(host, 6);
	host_free(host);
}

/* It was to be the second replica of a slab that is lost by now. */
static void loan_that_comes_after_the_loss_is_no_replica(void **state)
{
	struct host *host = host_make(1, 1, 1);
	struct rbx_slab *slab = host_slab(host, 0);
	struct rbx_loan loan;
	uint32_t slot;

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_true(rbx_slab_record_give(slab));
	slot = rbx_slab_borrow(slab, 1);
	host_server_dies(host, 0);
	(void)host_round(host);
	loan = (struct rbx_loan){ .slab_id = 3, .epoch = 1, .rkey = 1 };
	rbx_slab_lent(slab, slot, &loan, RBX_REPLICA_REBUILDING);
	rbx_loan_index_add(&host->flow.map->loans, rbx_replica_number(slab, slot));
	assert_int_equal(slab->write_mask, 0);
	assert_int_equal(rbx_slab_state(slab, slot), RBX_REPLICA_LOST);
	host->servers[1].keys[3] = 1;
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_slab_is_written_and_has_memory_again),
		cmocka_unit_test(lost_page_reads_fail_until_it_is_written_whole),
		cmocka_unit_test(lost_page_write_of_a_part_fails),
		cmocka_unit_test(lost_slab_is_lost_again_with_all_its_pages),
		cmocka_unit_test(
			lost_slab_is_written_all_over_and_needs_no_memory_here),
		cmocka_unit_test(lost_slab_is_discarded_and_reads_as_zeros),
		cmocka_unit_test(lost_slab_nobody_lends_the_writes_fail_at_once),
		cmocka_unit_test(
			lost_slab_without_memory_for_its_pages_borrows_none),
		cmocka_unit_test(lost_slab_waits_for_what_is_under_way),
		cmocka_unit_test(lost_page_write_of_a_part_comes_after_the_whole),
		cmocka_unit_test(
			lost_slab_has_all_replicas_and_is_rebuilt_with_its_holes),
		cmocka_unit_test(
			lost_slab_is_not_in_use_before_all_of_it_is_lent),
		cmocka_unit_test(loan_that_comes_after_the_loss_is_no_replica),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
