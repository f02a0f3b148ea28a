/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_failed_here_test.c - what a write leaves that a fault of this machine kept from some
 * replicas or from all: what is the truth, who has it, and what is read.
 */
#include "tests/core/scripted_host.h"

static uint8_t out[HOST_CELL_BYTES], in[HOST_CELL_BYTES];

/* With checksums; the first cell is of 7, and each piece has read it. */
static struct host *make_with_page(uint32_t replicas, uint32_t servers)
{
	struct host *host = host_make_with_checksums(1, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (uint32_t i = 0; i < HOST_PIECES; i++)
		host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	host_poll(host);
	assert_int_equal(host_ended(host, 0), HOST_PIECES);
	return host;
}

/* The checksum is that of what is there, not of what was to be. */
static void flow_write_that_fails_here_leaves_the_old_page(void **state)
{
	struct host *host = make_with_page(2, 2);

	(void)state;
	host_write_cell(host, 8);
	host->fails_here = -EFAULT;
	host_poll(host);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host->fails_here = 0;
	assert_int_equal(host_census(host).whole, 1);
	host_assert_cell(host, 7);
	assert_int_equal(host->counters.checksum_errors, 0);
	host_write_cell(host, 9);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_assert_cell(host, 9);
	host_free(host);
}

/* The first part for a slot is done that is of such a piece. */
static void poll_slot_of(struct host *host, enum rbx_piece_kind kind, uint32_t slot,
			 int32_t status, bool is_carried_out)
{
	struct rbx_fragment *fragment = host->sent_first;
	uint32_t nth = 0;

	while (rbx_part_of(fragment)->slot != slot ||
	       rbx_part_of(fragment)->piece->kind != kind) {
		fragment = rbx_fragment_next(fragment);
		nth++;
	}
	(void)host_poll_one(host, nth, status, is_carried_out);
}

/* The same of the first that was sent. */
static void poll_slot(struct host *host, uint32_t slot, int32_t status,
		      bool is_carried_out)
{
	struct rbx_fragment *fragment = host->sent_first;

	while (rbx_part_of(fragment)->slot != slot)
		fragment = rbx_fragment_next(fragment);
	poll_slot_of(host, rbx_part_of(fragment)->piece->kind, slot, status,
		     is_carried_out);
}

/*
 * A write that fails here at the only readable replica, where an attempt before was carried
 * out, and goes well at the two that are being made like that one. So nobody has the page
 * from before.
 */
static struct host *make_without_the_old_page(void)
{
	struct host *host = make_with_page(3, 4);

	memset(out, 1, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, out, HOST_CELL_BYTES);
	poll_slot(host, 0, -EFAULT, false);
	poll_slot(host, 2, -EFAULT, false);
	poll_slot(host, 1, 0, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_int_equal(host_slab(host, 0)->read_mask, 1u << 1);
	host_write_cell(host, 8);
	poll_slot(host, 0, 0, true);
	poll_slot(host, 2, 0, true);
	poll_slot(host, 1, -EFAULT, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	return host;
}

static void flow_new_page_is_the_truth_if_nobody_has_the_old_one(void **state)
{
	uint32_t copies_first;

	(void)state;
	for (copies_first = 0; copies_first < 2; copies_first++) {
		struct host *host = make_without_the_old_page();

		if (copies_first)
			host_settle(host);
		host_assert_cell(host, 8);
		host_settle(host);
		assert_int_equal(host_census(host).whole, 1);
		host_assert_cell(host, 8);
		host_free(host);
	}
}

/* What was carried out of it was a part. */
static void flow_new_page_is_read_where_it_is_whole(void **state)
{
	uint32_t copies_first;

	(void)state;
	for (copies_first = 0; copies_first < 2; copies_first++) {
		struct host *host = make_without_the_old_page();
		uint32_t torn = host_server_of(host, 0, 1);

		memset(host->servers[torn].memory[0], 7, RBX_PAGE_BYTES / 2);
		if (copies_first)
			host_settle(host);
		host_assert_cell(host, 8);
		host_settle(host);
		host_assert_cell(host, 8);
		host_server_dies(host, host_server_of(host, 0, 0));
		host_server_dies(host, host_server_of(host, 0, 2));
		host_assert_cell(host, 8);
		host_free(host);
	}
}

/* Who was known to have it is gone. */
static void flow_new_page_of_the_last_replica_is_read(void **state)
{
	struct host *host = make_without_the_old_page();

	(void)state;
	host_server_dies(host, host_server_of(host, 0, 0));
	host_server_dies(host, host_server_of(host, 0, 2));
	host_assert_cell(host, 8);
	host_free(host);
}

/*
 * Each replica's connection broke under the first attempt at a write, which was carried out
 * or not; the next one fails here.
 */
static struct host *make_with_write_sent_again(uint32_t replicas, bool is_carried_out)
{
	struct host *host = make_with_page(replicas, replicas);
	struct rbx_fragment *fragment;

	host_write_cell(host, 8);
	for (fragment = host->sent_first; fragment; fragment = rbx_fragment_next(fragment))
		fragment->flags |= RBX_FRAGMENT_AGAIN;
	for (uint32_t slot = 0; slot < replicas; slot++)
		poll_slot(host, slot, -EFAULT, is_carried_out);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host_settle(host);
	assert_true(host_slab(host, 0)->has_record);
	return host;
}

/* Nobody has the page from before, and no other replica tells. */
static void flow_first_attempt_is_read_if_it_was_carried_out(void **state)
{
	uint32_t replicas;

	(void)state;
	for (replicas = 1; replicas <= 2; replicas++) {
		struct host *host = make_with_write_sent_again(replicas, true);

		host_assert_cell(host, 8);
		host_settle(host);
		assert_false(host_slab(host, 0)->has_record);
		host_assert_cell(host, 8);
		host_free(host);
	}
}

/* The record is of no more use. */
static void flow_next_write_ends_the_doubt(void **state)
{
	struct host *host = make_with_write_sent_again(1, false);

	(void)state;
	host_assert_cell(host, 7);
	host_settle(host);
	assert_true(host_slab(host, 0)->has_record);
	host_write_cell(host, 9);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_settle(host);
	assert_false(host_slab(host, 0)->has_record);
	host_assert_cell(host, 9);
	host_free(host);
}

/* What only rebuilds may take is not held back for a doubt. */
static void flow_doubt_leaves_the_keeper_its_records(void **state)
{
	struct host *host = make_with_write_sent_again(1, false);
	struct rbx_slab_records *records = &host->flow.map->records;

	(void)state;
	while (rbx_slab_records_take(records, RBX_SLAB_RECORDS_KEPT - 1))
		;
	rbx_slab_settle(host_slab(host, 0), &host->flow.map->loans);
	assert_false(host_slab(host, 0)->has_record);
	assert_int_equal(rbx_slab_records_free(records), RBX_SLAB_RECORDS_KEPT);
	host_assert_cell(host, 7);
	host_free(host);
}

/* What was there is lost, whoever had it. */
static void flow_dead_slab_is_in_no_doubt(void **state)
{
	struct host *host = make_with_write_sent_again(1, false);

	(void)state;
	host_server_dies(host, host_server_of(host, 0, 0));
	host_settle(host);
	assert_false(host_slab(host, 0)->has_record);
	host_free(host);
}

/* The memory was bad from the start: no server has heard of the write. */
static void flow_write_that_was_never_sent_takes_no_record(void **state)
{
	struct host *host = make_with_page(1, 1);

	(void)state;
	host_write_cell(host, 8);
	poll_slot(host, 0, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_false(host_slab(host, 0)->has_record);
	host_assert_cell(host, 7);
	host_free(host);
}

/* It missed a write, and the copy of that: so it has the page from before. */
static void flow_copy_that_fails_here_leaves_the_old_page(void **state)
{
	struct host *host = make_with_page(2, 2);

	(void)state;
	host_write_cell(host, 8);
	poll_slot(host, 0, -EFAULT, false);
	poll_slot(host, 1, 0, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	(void)host_round(host);
	poll_slot(host, 1, 0, true);
	poll_slot(host, 0, -EFAULT, false);
	host_server_dies(host, host_server_of(host, 0, 1));
	host_assert_cell(host, 7);
	assert_int_equal(host->counters.checksum_errors, 0);
	host_free(host);
}

/* A device tore one page of a write that failed everywhere, and has not come to the other. */
static void flow_torn_page_costs_its_neighbour_nothing(void **state)
{
	struct host *host = make_with_page(2, 3);
	struct rbx_slab *slab = host_slab(host, 0);

	(void)state;
	host_server_dies(host, host_server_of(host, 0, 1));
	(void)host_round(host);
	(void)host_round(host);
	assert_int_equal(rbx_slab_targets(slab), 1u << 1);
	/* The cell is copied. */
	host_poll(host);
	host_poll(host);
	host_write_cell(host, 8);
	poll_slot_of(host, RBX_PIECE_WRITE, 0, -EFAULT, false);
	poll_slot_of(host, RBX_PIECE_WRITE, 1, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	memset(host->servers[host_server_of(host, 0, 0)].memory[0], 8, 100);
	while (host_poll(host))
		;
	host_start(host, RBX_PIECE_READ, RBX_PAGE_BYTES, in, RBX_PAGE_BYTES);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(in[0], 7);
	host_free(host);
}

/* A server goes while it is copied to, and meanwhile a write has missed another: that one
 * has all that was acknowledged, and is not lost with the first. */
static void flow_failed_copy_costs_only_who_it_was_for(void **state)
{
	struct host *host = host_make(1, 2, 3);
	struct rbx_slab *slab = host_slab(host, 0);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_evict_live(host, 0);
	(void)host_round(host);
	(void)host_round(host);
	host_poll(host); /* copies have been read */
	assert_int_equal(rbx_slab_targets(slab), 1u << 2);
	memset(out, 9, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, 7 * HOST_CELL_BYTES, out, sizeof(out));
	poll_slot_of(host, RBX_PIECE_WRITE, 1, -EFAULT, false);
	poll_slot_of(host, RBX_PIECE_WRITE, 0, 0, true);
	poll_slot_of(host, RBX_PIECE_WRITE, 2, 0, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host_server_dies(host, host_server_of(host, 0, 2));
	while (host_poll(host))
		;
	assert_int_equal(slab->write_mask, 1u << 0 | 1u << 1);
	host_settle(host);
	host_server_dies(host, host_server_of(host, 0, 0));
	host_assert_cell(host, 7);
	host_free(host);
}

/* A slab that was lost is placed anew, and written to; while that is under way a part of
 * it fails, and its slot is lent anew. All that is there has the write. */
static void flow_acknowledged_write_leaves_no_hole(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 4);

	(void)state;
	host_write_cell(host, 1);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_server_dies(host, host_server_of(host, 0, 0));
	host_server_dies(host, host_server_of(host, 0, 1));
	(void)host_settle(host);
	host_write_cell(host, 2);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	memset(out, 3, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, out, sizeof(out));
	poll_slot(host, 1, -EHOSTUNREACH, false);
	(void)host_round(host);
	(void)host_round(host);
	assert_int_equal(rbx_slab_targets(host_slab(host, 0)), 1u << 1);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_start(host, RBX_PIECE_READ, HOST_CELL_BYTES, in, sizeof(in));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	assert_memory_equal(in, out, sizeof(out));
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_write_that_fails_here_leaves_the_old_page),
		cmocka_unit_test(flow_new_page_is_the_truth_if_nobody_has_the_old_one),
		cmocka_unit_test(flow_new_page_is_read_where_it_is_whole),
		cmocka_unit_test(flow_new_page_of_the_last_replica_is_read),
		cmocka_unit_test(flow_first_attempt_is_read_if_it_was_carried_out),
		cmocka_unit_test(flow_next_write_ends_the_doubt),
		cmocka_unit_test(flow_doubt_leaves_the_keeper_its_records),
		cmocka_unit_test(flow_dead_slab_is_in_no_doubt),
		cmocka_unit_test(flow_write_that_was_never_sent_takes_no_record),
		cmocka_unit_test(flow_copy_that_fails_here_leaves_the_old_page),
		cmocka_unit_test(flow_torn_page_costs_its_neighbour_nothing),
		cmocka_unit_test(flow_failed_copy_costs_only_who_it_was_for),
		cmocka_unit_test(flow_acknowledged_write_leaves_no_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
