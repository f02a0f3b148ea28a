/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_failed_here_test.c - what a write leaves that a fault of this machine kept from some
 * replicas or from all: what is the truth, who has it, and what is read.
 */
#include "tests/core/scripted_host.h"

static uint8_t out[HOST_CELL_BYTES], in[HOST_CELL_BYTES];

/* The checksum is that of what is there, not of what was to be. */
static void flow_write_that_fails_here_leaves_the_old_page(void **state)
{
	struct host *host = host_make_with_page(2, 2);

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

/*
 * A write that fails here at the only readable replica, where an attempt before was carried
 * out, and goes well at the two that are being made like that one. So nobody has the page
 * from before.
 */
static struct host *make_without_the_old_page(void)
{
	struct host *host = host_make_with_page(3, 4);

	memset(out, 1, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, out, HOST_CELL_BYTES);
	host_poll_slot(host, 0, -EFAULT, false);
	host_poll_slot(host, 2, -EFAULT, false);
	host_poll_slot(host, 1, 0, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_int_equal(host_slab(host, 0)->read_mask, 1u << 1);
	host_write_cell(host, 8);
	host_poll_slot(host, 0, 0, true);
	host_poll_slot(host, 2, 0, true);
	host_poll_slot(host, 1, -EFAULT, true);
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

/* It missed a write, and the copy of that: so it has the page from before. */
static void flow_copy_that_fails_here_leaves_the_old_page(void **state)
{
	struct host *host = host_make_with_page(2, 2);

	(void)state;
	host_write_cell(host, 8);
	host_poll_slot(host, 0, -EFAULT, false);
	host_poll_slot(host, 1, 0, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	(void)host_round(host);
	host_poll_slot(host, 1, 0, true);
	host_poll_slot(host, 0, -EFAULT, false);
	host_server_dies(host, host_server_of(host, 0, 1));
	host_assert_cell(host, 7);
	assert_int_equal(host->counters.checksum_errors, 0);
	host_free(host);
}

/* A device tore one page of a write that failed everywhere, and has not come to the other. */
static void flow_torn_page_costs_its_neighbour_nothing(void **state)
{
	struct host *host = host_make_with_page(2, 3);
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
	host_poll_slot_of(host, RBX_PIECE_WRITE, 0, -EFAULT, false);
	host_poll_slot_of(host, RBX_PIECE_WRITE, 1, -EFAULT, false);
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
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES - HOST_CELL_BYTES, out, sizeof(out));
	host_poll_slot_of(host, RBX_PIECE_WRITE, 1, -EFAULT, false);
	host_poll_slot_of(host, RBX_PIECE_WRITE, 0, 0, true);
	host_poll_slot_of(host, RBX_PIECE_WRITE, 2, 0, true);
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
	host_poll_slot(host, 1, -EHOSTUNREACH, false);
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
		cmocka_unit_test(flow_copy_that_fails_here_leaves_the_old_page),
		cmocka_unit_test(flow_torn_page_costs_its_neighbour_nothing),
		cmocka_unit_test(flow_failed_copy_costs_only_who_it_was_for),
		cmocka_unit_test(flow_acknowledged_write_leaves_no_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
