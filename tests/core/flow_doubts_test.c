/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_doubts_test.c - what is read of a write that was sent again before it failed for a
 * fault of this machine: its first attempt may have been carried out, here and not there.
 * And what it costs to know that.
 */
#include "tests/core/scripted_host.h"

static uint8_t out[HOST_CELL_BYTES];

/* Writes the first cell; at these slots the connection broke under the first attempt. */
static void write_again(struct host *host, uint8_t byte, uint32_t slots)
{
	struct rbx_fragment *fragment;

	host_write_cell(host, byte);
	for (fragment = host->sent_first; fragment; fragment = rbx_fragment_next(fragment))
		if (slots >> rbx_part_of(fragment)->slot & 1)
			fragment->flags |= RBX_FRAGMENT_AGAIN;
}

/* The last attempt fails here everywhere; the first was carried out at these slots. */
static void write_again_fails(struct host *host, uint8_t byte, uint32_t replicas,
			      uint32_t carried_out)
{
	write_again(host, byte, UINT32_MAX);
	for (uint32_t slot = 0; slot < replicas; slot++)
		host_poll_slot(host, slot, -EFAULT, carried_out >> slot & 1);
	assert_int_equal(host_ended(host, -EFAULT), 1);
}

/* The same of a new volume, and the upkeep thread has looked. */
static struct host *make_in_doubt(uint32_t replicas, uint32_t servers, uint32_t carried_out)
{
	struct host *host = host_make_with_page(replicas, servers);

	write_again_fails(host, 8, replicas, carried_out);
	host_settle(host);
	assert_true(host_slab(host, 0)->has_record);
	return host;
}

/* One of two replicas has it, and the other has not heard of it. */
static void write_is_missed(struct host *host, uint8_t byte)
{
	host_write_cell(host, byte);
	host_poll_slot(host, 0, 0, true);
	host_poll_slot(host, 1, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
}

/* The second cell. */
static void write_next_cell(struct host *host, uint8_t byte)
{
	memset(out, byte, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, HOST_CELL_BYTES, out, sizeof(out));
}

static void die_of_slot(struct host *host, uint32_t slot)
{
	host_server_dies(host, host_server_of(host, 0, slot));
	host_settle(host);
}

/* ---- What is read ------------------------------------------------------------*/

/* Nobody has the page from before, and no other replica tells. */
static void doubt_first_attempt_is_read_if_it_was_carried_out(void **state)
{
	uint32_t replicas;

	(void)state;
	for (replicas = 1; replicas <= 2; replicas++) {
		struct host *host = make_in_doubt(replicas, replicas, 3);

		host_assert_cell(host, 8);
		host_assert_cell(host, 8);
		host_free(host);
	}
}

/* The attempt was not carried out; but what is read is disturbed on its way, twice. */
static void doubt_disturbed_reads_lose_nothing(void **state)
{
	struct host *host = make_in_doubt(1, 1, 0);
	uint8_t *page = host->servers[host_server_of(host, 0, 0)].memory[0];

	(void)state;
	host_start(host, RBX_PIECE_READ, 0, out, sizeof(out));
	page[0] ^= 1;
	(void)host_poll_one(host, 0, 0, true); /* without granules */
	(void)host_poll_one(host, 0, 0, true); /* with them */
	page[0] ^= 1;
	while (host_poll(host))
		;
	(void)host_ended(host, -EIO);
	host_assert_cell(host, 7);
	host_free(host);
}

/* The same, and the next attempt at the read fails here. */
static void doubt_read_that_fails_here_loses_nothing(void **state)
{
	struct host *host = make_in_doubt(1, 1, 0);
	uint8_t *page = host->servers[host_server_of(host, 0, 0)].memory[0];

	(void)state;
	host_start(host, RBX_PIECE_READ, 0, out, sizeof(out));
	page[0] ^= 1;
	(void)host_poll_one(host, 0, 0, true);
	(void)host_poll_one(host, 0, 0, true);
	page[0] ^= 1;
	(void)host_poll_one(host, 0, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host_assert_cell(host, 7);
	host_free(host);
}

/* One replica has the write and the other has not, but what is read of that is disturbed: so
 * the write is what is read, and the page from before once who has the write has died. */
static void doubt_goes_both_ways(void **state)
{
	struct host *host = make_in_doubt(2, 2, 1u << 0);
	uint8_t *page = host->servers[host_server_of(host, 0, 1)].memory[0];

	(void)state;
	page[0] ^= 1;
	page[RBX_PAGE_BYTES] ^= 1;
	host_assert_cell(host, 8);
	page[0] ^= 1;
	page[RBX_PAGE_BYTES] ^= 1;
	die_of_slot(host, 0);
	host_assert_cell(host, 7);
	host_free(host);
}

/* One replica has the write, and dies: the other was said to have missed it. */
static void doubt_who_missed_a_write_may_have_it(void **state)
{
	struct host *host = host_make_with_page(2, 2);

	(void)state;
	write_again(host, 8, 1u << 1);
	host_poll_slot(host, 0, 0, true);
	host_poll_slot(host, 1, -EFAULT, true);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	die_of_slot(host, 0);
	host_assert_cell(host, 8);
	host_free(host);
}

/* The same of a copy. */
static void doubt_who_missed_a_copy_may_have_it(void **state)
{
	struct host *host = host_make_with_page(2, 2);

	(void)state;
	write_is_missed(host, 8);
	(void)host_round(host);
	host_poll_slot(host, 0, 0, true);
	host_poll_slot(host, 1, -EFAULT, true);
	die_of_slot(host, 0);
	host_assert_cell(host, 8);
	host_free(host);
}

/* The first attempt reached one replica only. The other, which is good, moves; what the
 * one has that stayed was not looked at. */
static void doubt_outlives_a_copy_from_another(void **state)
{
	struct host *host = make_in_doubt(2, 3, 1u << 1);

	(void)state;
	host_evict_live(host, 0);
	host_settle(host);
	assert_int_equal(host_slab(host, 0)->read_mask, 1u << 1 | 1u << 2);
	die_of_slot(host, 2);
	host_assert_cell(host, 8);
	host_free(host);
}

/* It missed the next write, too. */
static void doubt_outlives_a_write_that_was_missed(void **state)
{
	struct host *host = make_in_doubt(2, 2, 1u << 1);

	(void)state;
	write_is_missed(host, 9);
	die_of_slot(host, 0);
	host_assert_cell(host, 8);
	host_free(host);
}

/* Nor was it copied to: the source dies meanwhile, and the copy fails here. */
static void doubt_outlives_a_copy_that_fails(void **state)
{
	struct host *host = make_in_doubt(2, 2, 1u << 1);

	(void)state;
	write_is_missed(host, 9);
	(void)host_round(host);
	host_poll_slot_of(host, RBX_PIECE_COPY, 0, 0, true);
	host_server_dies(host, host_server_of(host, 0, 0));
	(void)host_round(host);
	assert_int_equal(host_slab(host, 0)->read_mask, 1u << 1);
	host_poll_slot_of(host, RBX_PIECE_COPY, 1, -EFAULT, false);
	host_settle(host);
	host_assert_cell(host, 8);
	host_free(host);
}

/* A program tries again and again what fails. Of another page one replica misses a write,
 * and is the last. */
static void doubt_leaves_room_for_what_was_acknowledged(void **state)
{
	struct host *host = host_make_with_page(2, 2);
	uint8_t in[HOST_CELL_BYTES];

	(void)state;
	write_next_cell(host, 5);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (uint32_t i = 0; i < RBX_DOUBTS_MAX; i++)
		write_again_fails(host, (uint8_t)(8 + i), 2, 0);
	write_next_cell(host, 6);
	host_poll_slot(host, 0, 0, true);
	host_poll_slot(host, 1, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	die_of_slot(host, 0);
	host_start(host, RBX_PIECE_READ, HOST_CELL_BYTES, in, sizeof(in));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	memset(out, 5, sizeof(out));
	assert_memory_equal(in, out, sizeof(in));
	host_free(host);
}

/* ---- What it costs -----------------------------------------------------------*/

/* The record is of no more use. */
static void doubt_ends_with_the_next_write(void **state)
{
	struct host *host = make_in_doubt(1, 1, 0);

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

/* Most are not held back for what may never be written again. */
static void doubt_keeps_few_records(void **state)
{
	struct host *host = host_make_with_page(1, 1);

	(void)state;
	for (uint32_t i = 0; i < RBX_SLAB_RECORDS_DOUBTED; i++)
		assert_non_null(rbx_slab_records_take(&host->flow.map->records, 0));
	write_again_fails(host, 8, 1, 0);
	assert_true(host_slab(host, 0)->has_record);
	host_settle(host);
	assert_false(host_slab(host, 0)->has_record);
	host_assert_cell(host, 7);
	host_free(host);
}

/* What was there is lost, whoever had it. */
static void doubt_is_not_of_a_dead_slab(void **state)
{
	struct host *host = make_in_doubt(1, 1, 0);

	(void)state;
	die_of_slot(host, 0);
	assert_false(host_slab(host, 0)->has_record);
	host_free(host);
}

/* A replica that missed a write is gone, and the slab is whole without it. */
static void doubt_is_not_of_a_replica_that_is_gone(void **state)
{
	struct host *host = host_make_with_page(2, 4);
	struct rbx_slab *slab = host_slab(host, 0);

	(void)state;
	host_evict_live(host, 0);
	(void)host_round(host);
	(void)host_round(host);
	assert_int_equal(rbx_slab_targets(slab), 1u << 2);
	host_poll(host);
	host_poll(host);
	host_write_cell(host, 8);
	host_poll_slot_of(host, RBX_PIECE_WRITE, 0, 0, true);
	host_poll_slot_of(host, RBX_PIECE_WRITE, 1, 0, true);
	host_poll_slot_of(host, RBX_PIECE_WRITE, 2, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	for (uint32_t i = 0; i < HOST_SERVERS; i++)
		host->servers[i].refuse = -ENOSPC;
	die_of_slot(host, 2);
	die_of_slot(host, 0);
	for (uint32_t i = 0; i < HOST_SERVERS; i++)
		host->servers[i].refuse = 0;
	host_settle(host);
	host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_false(slab->has_record);
	host_free(host);
}

/* Writes to pages that are in no doubt have the upkeep thread look at nothing. */
static void doubt_does_not_wake_the_upkeep_thread(void **state)
{
	struct host *host = make_in_doubt(2, 2, 0);

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		host->wakes_count = 0;
		write_next_cell(host, 5);
		while (host_poll(host))
			;
		assert_int_equal(host_ended(host, 0), 1);
		assert_int_equal(host->wakes_count, 0);
	}
	assert_true(host_slab(host, 0)->has_record);
	host_free(host);
}

/* The memory was bad from the start: no server has heard of the write. */
static void doubt_is_not_of_what_was_never_sent(void **state)
{
	struct host *host = host_make_with_page(1, 1);

	(void)state;
	host_write_cell(host, 8);
	host_poll_slot(host, 0, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_false(host_slab(host, 0)->has_record);
	host_assert_cell(host, 7);
	host_free(host);
}

/* Nor by a replica that is lost: it was sent again to that. */
static void doubt_is_not_of_what_only_the_lost_may_have(void **state)
{
	struct host *host = host_make_with_page(2, 2);

	(void)state;
	write_again(host, 8, 1u << 0);
	host_poll_slot(host, 0, -EHOSTUNREACH, true);
	host_poll_slot(host, 1, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_false(host_slab(host, 0)->has_record);
	host_assert_cell(host, 7);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubt_first_attempt_is_read_if_it_was_carried_out),
		cmocka_unit_test(doubt_disturbed_reads_lose_nothing),
		cmocka_unit_test(doubt_read_that_fails_here_loses_nothing),
		cmocka_unit_test(doubt_goes_both_ways),
		cmocka_unit_test(doubt_who_missed_a_write_may_have_it),
		cmocka_unit_test(doubt_who_missed_a_copy_may_have_it),
		cmocka_unit_test(doubt_outlives_a_copy_from_another),
		cmocka_unit_test(doubt_outlives_a_write_that_was_missed),
		cmocka_unit_test(doubt_outlives_a_copy_that_fails),
		cmocka_unit_test(doubt_leaves_room_for_what_was_acknowledged),
		cmocka_unit_test(doubt_ends_with_the_next_write),
		cmocka_unit_test(doubt_keeps_few_records),
		cmocka_unit_test(doubt_is_not_of_a_dead_slab),
		cmocka_unit_test(doubt_is_not_of_a_replica_that_is_gone),
		cmocka_unit_test(doubt_does_not_wake_the_upkeep_thread),
		cmocka_unit_test(doubt_is_not_of_what_was_never_sent),
		cmocka_unit_test(doubt_is_not_of_what_only_the_lost_may_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
