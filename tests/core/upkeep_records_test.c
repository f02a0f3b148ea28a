/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_records_test.c - the upkeep thread where the pool of records is short: who
 * finds none waits and is served as before, nobody keeps one that he does not use,
 * and each has his turn.
 */
#include "tests/core/scripted_host.h"

static struct host *open_host(uint32_t slabs, uint32_t replicas,
			      uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	return host;
}

static struct rbx_slab_records *pool_of(struct host *host)
{
	return &host->flow.map->records;
}

/* Others have all but so many. Returns one of those. */
static struct rbx_slab_record *leave(struct host *host, uint32_t count)
{
	struct rbx_slab_record *record, *last = NULL;

	while ((record = rbx_slab_records_take(pool_of(host), count)))
		last = record;
	return last;
}

static void evict(struct host *host, uint32_t index)
{
	const struct rbx_replica *replica =
		rbx_slab_replica(host_slab(host, index), 0);
	const struct rbx_loan loan = rbx_replica_loan(replica);

	host_evict(host, rbx_replica_server(replica), &loan);
}

static void slabs_take_turns_with_the_only_record(void **state)
{
	struct host *host = open_host(6, 1, 4);
	uint32_t i;

	(void)state;
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	(void)leave(host, 1);
	for (i = 0; i < 6; i++)
		evict(host, i);
	/* At once: none is kept for the next time. */
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 6);
	assert_int_equal(host->counters.rebuilt_bytes, 6 * HOST_SLAB_BYTES);
	assert_string_equal(host->news, "SF");
	assert_int_equal(rbx_slab_records_free(pool_of(host)), 1);
	host_assert_cell(host, 7);
	host_free(host);
}

static void slab_without_a_record_waits_and_serves(void **state)
{
	struct host *host = open_host(1, 1, 2);
	struct rbx_slab_record *record = leave(host, 0);

	(void)state;
	evict(host, 0);
	assert_true(host_settle(host));
	/* No server has refused. */
	assert_string_equal(host->news, "");
	assert_int_equal(host->servers[0].asked_count +
				 host->servers[1].asked_count,
			 1);
	host_write_cell(host, 4);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_assert_cell(host, 4);
	rbx_slab_records_put(pool_of(host), record);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_string_equal(host->news, "SF");
	host_assert_cell(host, 4);
	host_free(host);
}

static void slab_that_no_server_takes_keeps_no_record(void **state)
{
	struct host *host = open_host(1, 2, 2);

	(void)state;
	evict(host, 0);
	assert_true(host_settle(host));
	assert_string_equal(host->news, "T");
	assert_int_equal(rbx_slab_records_free(pool_of(host)),
			 RBX_SLAB_RECORDS);
	host_free(host);
}

/* A write fails for a fault of this machine; there is a record, or none. */
static void write_fails_here(struct host *host)
{
	host->fails_here = -EFAULT;
	host_write_cell(host, 5);
	host_poll(host);
	host->fails_here = 0;
	assert_int_equal(host_ended(host, -EFAULT), 1);
}

static void slab_that_differs_in_a_cell_has_that_copied(void **state)
{
	struct host *host = open_host(1, 2, 2);

	(void)state;
	write_fails_here(host);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host->counters.rebuilt_bytes, HOST_CELL_BYTES);
	assert_int_equal(rbx_slab_records_free(pool_of(host)),
			 RBX_SLAB_RECORDS);
	host_free(host);
}

static void slab_that_differs_without_a_record_has_all_copied(void **state)
{
	struct host *host = open_host(1, 2, 2);
	struct rbx_slab_record *record = leave(host, 0);

	(void)state;
	write_fails_here(host);
	assert_true(host_settle(host));
	assert_int_equal(host_census(host).rebuilding, 1);
	assert_false(rbx_rebuild_is_under_way(&host->flow));
	rbx_slab_records_put(pool_of(host), record);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host->counters.rebuilt_bytes, HOST_SLAB_BYTES);
	assert_int_equal(rbx_slab_records_free(pool_of(host)), 1);
	host_free(host);
}

/* A server that is to lend for a slab does not answer, a write fails here, and then the
 * server refuses: what differs is copied, and the only record goes on to the other slab. */
static void slab_that_a_copy_makes_whole_is_not_stuck(void **state)
{
	struct host *host = open_host(2, 2, 3);
	uint32_t other = 0;

	(void)state;
	while (rbx_slab_has_server(host_slab(host, 0), other))
		other++;
	(void)leave(host, 1);
	host->servers[other].is_slow = true;
	host->servers[other].refuse = -ENOSPC;
	evict(host, 0);
	(void)host_round(host);
	host_write_cell(host, 5);
	host_poll_one(host, 0, -EFAULT, false);
	host_poll(host);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	evict(host, 1);
	(void)host_round(host);
	host->servers[other].is_slow = false;
	(void)host_round(host);
	assert_true(rbx_rebuild_is_under_way(&host->flow));
	host->servers[other].refuse = 0;
	for (uint32_t i = 0; i < 4; i++)
		(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(rbx_slab_records_free(pool_of(host)), 1);
	host_free(host);
}

/* They are asked for again although others wait for a record all the time. */
static void stuck_slabs_have_their_turn_while_others_wait_for_a_record(void **state)
{
	struct host *host = open_host(2 * RBX_UPKEEP_RETRIES_MAX, 1, 3);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		host->servers[i].refuse = -EDQUOT;
	for (uint32_t i = 0; i < 2 * RBX_UPKEEP_RETRIES_MAX; i++)
		evict(host, i);
	assert_true(host_settle(host));
	assert_string_equal(host->news, "T");
	(void)leave(host, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(host_settle(host));
	/* All have found no record. */
	assert_int_equal(rbx_attention_length(&host->flow.map->attention,
					      RBX_LIST_STUCK),
			 0);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slabs_take_turns_with_the_only_record),
		cmocka_unit_test(slab_without_a_record_waits_and_serves),
		cmocka_unit_test(slab_that_no_server_takes_keeps_no_record),
		cmocka_unit_test(slab_that_differs_in_a_cell_has_that_copied),
		cmocka_unit_test(slab_that_differs_without_a_record_has_all_copied),
		cmocka_unit_test(slab_that_a_copy_makes_whole_is_not_stuck),
		cmocka_unit_test(
			stuck_slabs_have_their_turn_while_others_wait_for_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
