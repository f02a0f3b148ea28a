/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_on_demand_test.c - slabs that have memory from their first write on, until
 * they are discarded: who waits for it, for how long, and what goes back.
 */
#include "tests/core/scripted_host.h"

#define MANY 12u /* more than are tried again in a round */

static uint8_t out[HOST_CELL_BYTES], in[HOST_CELL_BYTES];

/* ---- The first write --------------------------------------------------------*/

static void on_demand_write_waits_until_memory_is_lent(void **state)
{
	struct host *host = host_make_on_demand(2, 2, 2);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_census(host).blank, 2);
	host_write_cell(host, 6);
	assert_int_equal(host->wakes_count, 1);
	assert_false(host_poll(host));
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).blank, 1);
	assert_string_equal(host->news, "");
	host_assert_cell(host, 6);
	host_free(host);
}

static void first_write_asks_for_all_replicas_at_once(void **state)
{
	struct host *host = host_make_on_demand(1, 3, 4);

	(void)state;
	host_write_cell(host, 6);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host->asks_max_count, 3);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

static void on_demand_one_server_lends_the_rest_is_repaired(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 2);

	(void)state;
	host->servers[1].refuse = -EDQUOT;
	host_write_cell(host, 7);
	assert_true(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_string_equal(host->news, "T");
	host->servers[1].refuse = 0;
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	host_server_dies(host, 0);
	host_assert_cell(host, 7);
	host_free(host);
}

static void on_demand_nobody_lends_the_writes_fail(void **state)
{
	struct host *host = host_make_on_demand(1, 1, 1);

	(void)state;
	host->servers[0].refuse = -ENOSPC;
	host_write_cell(host, 8);
	host_write_cell(host, 9);
	assert_false(host_settle(host));
	host_poll(host);
	assert_int_equal(host_ended(host, -ENOSPC), 2);
	host->servers[0].refuse = 0;
	host_write_cell(host, 9);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	host_assert_cell(host, 9);
	host_free(host);
}

/* One that could not be asked may yet lend, whoever else refuses, in any order. */
static void on_demand_a_server_is_away_the_writes_wait(void **state)
{
	(void)state;
	for (uint32_t away = 0; away < 2; away++) {
		struct host *host = host_make_on_demand(1, 1, 2);

		host->servers[away].refuse = away ? -ENOTCONN : -ETIMEDOUT;
		host->servers[!away].refuse = -ENOSPC;
		host_write_cell(host, 8);
		assert_true(host_settle(host));
		assert_true(host_settle(host));
		assert_null(host->ended.first);
		assert_string_equal(host->news, "");
		host->servers[away].refuse = 0;
		assert_false(host_settle(host));
		assert_int_equal(host_ended(host, 0), 1);
		host_assert_cell(host, 8);
		host_free(host);
	}
}

static void on_demand_no_server_is_left_the_writes_fail(void **state)
{
	struct host *host = host_make_on_demand(1, 1, 1);

	(void)state;
	host->servers[0].refuse = -ENOTCONN;
	host_write_cell(host, 8);
	assert_true(host_settle(host));
	assert_null(host->ended.first);
	host_server_dies(host, 0);
	assert_false(host_settle(host));
	host_poll(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	host_free(host);
}

/* Who waits for a server that lends again is not woken by one that lends nothing. */
static void on_demand_nobody_lends_what_is_stuck_is_not_tried_for_it(void **state)
{
	struct host *host = host_make_on_demand(2, 2, 2);

	(void)state;
	host_write_cell(host, 8);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	host_server_dies(host, 1);
	host->servers[0].refuse = -ENOSPC;
	assert_true(host_settle(host));
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES, out, 512);
	host->wakes_count = 0;
	assert_true(host_round(host));
	assert_int_equal(host->wakes_count, 0);
	host_poll(host);
	assert_int_equal(host_ended(host, -ENOSPC), 1);
	host_free(host);
}

static void on_demand_fits_by_what_is_free_now(void **state)
{
	struct host *host = host_make_on_demand(HOST_AREAS, 1, 1);
	struct host *two = host_make_on_demand(HOST_AREAS, 2, 1);

	(void)state;
	assert_true(rbx_upkeep_fits(&host->upkeep));
	host->servers[0].keys[1] = 1; /* lent to somebody else */
	assert_false(rbx_upkeep_fits(&host->upkeep));
	host->servers[0].keys[1] = 0;
	assert_false(rbx_upkeep_fits(&two->upkeep));
	host_free(two);
	host_free(host);
}

/* ---- Discards ---------------------------------------------------------------*/

/* What is under way to memory keeps it; what is written later has other memory. */
static void discard_with_a_write_under_way_gives_back_when_it_ended(void **state)
{
	struct host *host = host_make_on_demand(1, 1, 2);

	(void)state;
	host_write_cell(host, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	host_write_cell(host, 2);
	rbx_flow_discard(&host->flow, 0, HOST_SLAB_BYTES);
	host_start(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, out, 512);
	assert_false(host_round(host));
	assert_int_equal(host_lent_count(host, 0) + host_lent_count(host, 1),
			 1);
	assert_null(host->ended.first);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 2);
	assert_int_equal(host_lent_count(host, 0) + host_lent_count(host, 1),
			 1);
	host_assert_cell(host, 0);
	host_free(host);
}

/* A write to the last of them comes first, and others would not wait for long. */
static void discard_of_many_slabs_keeps_no_write_waiting(void **state)
{
	const uint32_t servers = 4, slabs = servers * HOST_AREAS;
	struct host *host = host_make_on_demand(slabs, 1, servers);
	uint32_t i, lent_count = 0;

	(void)state;
	for (i = 0; i < slabs; i++)
		host_start(host, RBX_PIECE_WRITE, i * HOST_SLAB_BYTES, out, 512);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), slabs);
	rbx_flow_discard(&host->flow, 0, slabs * HOST_SLAB_BYTES);
	host_start(host, RBX_PIECE_WRITE, (slabs - 1) * HOST_SLAB_BYTES, out,
		   512);
	host->wakes_count = 0;
	assert_false(host_round(host));
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (i = 0; i < servers; i++)
		lent_count += host_lent_count(host, i);
	assert_int_equal(lent_count, slabs - RBX_UPKEEP_RETURNS_MAX + 1);
	while (host->wakes_count) {
		host->wakes_count = 0;
		assert_false(host_round(host));
	}
	assert_int_equal(host_census(host).blank, slabs - 1);
	for (i = 0, lent_count = 0; i < servers; i++)
		lent_count += host_lent_count(host, i);
	assert_int_equal(lent_count, 1);
	host_free(host);
}

/* Whatever is discarded while its server is away goes back when it is there again. */
static void discard_of_more_than_can_be_owed_goes_back_in_the_end(void **state)
{
	const struct rbx_owed other = { .loan = { .rkey = UINT32_MAX } };
	struct host *host = host_make_on_demand(HOST_AREAS, 1, 1);
	uint32_t i;

	(void)state;
	for (i = 0; i < HOST_AREAS; i++)
		host_start(host, RBX_PIECE_WRITE, i * HOST_SLAB_BYTES, out, 512);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), HOST_AREAS);
	host->servers[0].deaf = -ENOTCONN;
	while (host->upkeep.owed_count < RBX_OWED_MAX / 2 - 1)
		host->upkeep.owed[host->upkeep.owed_count++] = other;
	rbx_flow_discard(&host->flow, 0, HOST_AREAS * HOST_SLAB_BYTES);
	assert_true(host_settle(host));
	assert_true(host_settle(host));
	assert_int_equal(host->upkeep.owed_count, RBX_OWED_MAX / 2);
	assert_int_equal(host_lent_count(host, 0), HOST_AREAS);
	host->servers[0].deaf = 0;
	assert_false(host_settle(host));
	assert_int_equal(host_lent_count(host, 0), 0);
	assert_int_equal(host->upkeep.owed_count, 0);
	host_free(host);
}

static void discard_in_mid_rebuild_ends_it(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 3);

	(void)state;
	host_write_cell(host, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	host_server_dies(host, host_server_of(host, 0, 0));
	assert_false(host_round(host));
	assert_true(rbx_rebuild_is_under_way(&host->flow));
	rbx_flow_discard(&host->flow, 0, HOST_SLAB_BYTES);
	assert_false(host_settle(host));
	assert_false(rbx_rebuild_is_under_way(&host->flow));
	assert_int_equal(host_census(host).blank, 1);
	host_start(host, RBX_PIECE_READ, 0, in, 512);
	host_poll(host);
	assert_true(rbx_piece_of(host->ended.first)->reads_zeros);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static void discard_of_a_part_of_a_slab_changes_nothing(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 1);

	(void)state;
	host_write_cell(host, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	host->wakes_count = 0;
	rbx_flow_discard(&host->flow, 1, 2 * HOST_SLAB_BYTES - 2);
	rbx_flow_discard(&host->flow, 0, HOST_SLAB_BYTES - 1);
	assert_int_equal(host->wakes_count, 0);
	host_assert_cell(host, 1);
	host_free(host);
}

/* The last slab is longer than what is left of the volume. */
static void discard_to_the_end_of_the_volume_gives_its_last_slab_back(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 1);
	uint64_t size_bytes = HOST_SLAB_BYTES + HOST_CELL_BYTES;

	(void)state;
	host->flow.map->size_bytes = size_bytes;
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES, in, 512);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_lent_count(host, 0), 1);
	rbx_flow_discard(&host->flow, HOST_SLAB_BYTES, HOST_CELL_BYTES);
	assert_false(host_settle(host));
	assert_int_equal(host_lent_count(host, 0), 0);
	assert_int_equal(host_census(host).blank, 2);
	host_free(host);
}

/* Rounds as an upkeep thread makes them a second later: as long as it is woken. */
static void rounds_of_a_second(struct host *host)
{
	host->now_ns += RBX_UPKEEP_RETRY_MS * 1000000ull;
	do {
		host->wakes_count = 0;
		(void)host_round(host);
		while (host_poll(host))
			;
	} while (host->wakes_count);
}

static void first_writes_all_go_on_when_a_server_lends_again(void **state)
{
	struct host *host = host_make_on_demand(MANY, 1, 3);
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		host->servers[i].refuse = -ENOTCONN;
	for (i = 0; i < MANY; i++)
		host_start(host, RBX_PIECE_WRITE, i * HOST_SLAB_BYTES, out,
			   HOST_CELL_BYTES);
	assert_true(host_settle(host));
	assert_null(host->ended.first);
	for (i = 0; i < 3; i++)
		host->servers[i].refuse = 0;
	rounds_of_a_second(host);
	assert_int_equal(host_ended(host, 0), MANY);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_demand_write_waits_until_memory_is_lent),
		cmocka_unit_test(first_write_asks_for_all_replicas_at_once),
		cmocka_unit_test(
			on_demand_one_server_lends_the_rest_is_repaired),
		cmocka_unit_test(on_demand_nobody_lends_the_writes_fail),
		cmocka_unit_test(on_demand_a_server_is_away_the_writes_wait),
		cmocka_unit_test(on_demand_no_server_is_left_the_writes_fail),
		cmocka_unit_test(
			first_writes_all_go_on_when_a_server_lends_again),
		cmocka_unit_test(
			on_demand_nobody_lends_what_is_stuck_is_not_tried_for_it),
		cmocka_unit_test(on_demand_fits_by_what_is_free_now),
		cmocka_unit_test(
			discard_with_a_write_under_way_gives_back_when_it_ended),
		cmocka_unit_test(discard_of_many_slabs_keeps_no_write_waiting),
		cmocka_unit_test(
			discard_of_more_than_can_be_owed_goes_back_in_the_end),
		cmocka_unit_test(discard_in_mid_rebuild_ends_it),
		cmocka_unit_test(discard_of_a_part_of_a_slab_changes_nothing),
		cmocka_unit_test(
			discard_to_the_end_of_the_volume_gives_its_last_slab_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
