/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* upkeep_waits_test.c - a server that takes long, and nobody waits for it. */
#include "core/asks.h"
#include "tests/core/first_writes.h"

static void slow_server_keeps_no_other_slab_waiting(void **state)
{
	struct host *host = host_make_on_demand(3, 1, 2);
	uint32_t slow = make_slow(host);

	(void)state;
	assert_int_equal(host_ended(host, 0), 0);
	first_write(host, 1);
	first_write(host, 2);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 2);
	assert_int_equal(host_lent_count(host, 1 - slow), 2);
	answers_and_ends(host, slow, 1);
	host_free(host);
}

/* What it lends in the end is given back. */
static void late_server_is_left_for_another_one(void **state)
{
	struct host *host = host_make_on_demand(1, 1, 2);

	(void)state;
	(void)make_slow(host);
	assert_int_equal(host->due_ns, host->now_ns + QUARTER_NS);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[0].is_slow = host->servers[1].is_slow = false;
	rounds(host);
	assert_int_equal(host_lent_count(host, 0) + host_lent_count(host, 1),
			 1);
	assert_int_equal(host->upkeep.owed_count, 0);
	host_free(host);
}

static void late_server_is_avoided_for_a_while(void **state)
{
	struct host *host = host_make_on_demand(HOST_AREAS, 1, 2);
	uint32_t slow = make_slow(host);

	(void)state;
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[slow].is_slow = false;
	rounds(host);
	for (uint32_t i = 1; i < HOST_AREAS; i++) {
		first_write(host, i);
		rounds(host);
	}
	assert_int_equal(host_ended(host, 0), HOST_AREAS - 1);
	assert_int_equal(host->servers[slow].asked_count, 1);
	host_free(host);
}

/* So a rebuild waits for it, and is not stuck. */
static void server_that_was_late_is_only_busy_the_next_time(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);
	uint32_t slow = make_slow(host), other = 1 - slow;

	(void)state;
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[slow].is_slow = false;
	rounds(host);
	host->now_ns += RBX_UPKEEP_AVOID_TIMES * HOST_TIMEOUT_NS;
	rounds(host);
	host->servers[slow].is_slow = true;
	rbx_asks_avoid(&host->upkeep, other, host->now_ns + 1);
	first_write(host, 1);
	rounds(host);
	assert_true(host->servers[slow].is_asked);
	host_evict_live(host, 0);
	rounds(host);
	assert_string_equal(host->news, "");
	answers_and_ends(host, slow, 1);
	assert_string_equal(host->news, "SF");
	host_free(host);
}

static void late_replica_joins_by_a_rebuild(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 3);

	(void)state;
	host->servers[2].down = true;
	host->servers[2].refuse = -ENOSPC;
	rbx_upkeep_server_down(&host->upkeep, 2);
	host->servers[0].is_slow = true;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 0);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[0].is_slow = false;
	host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* Heartbeats go on, and what is asked for never comes. */
static void first_write_ends_if_nothing_is_lent_in_time(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 1);

	(void)state;
	host->servers[0].is_slow = true;
	first_write(host, 0);
	first_write(host, 1);
	rounds(host);
	for (uint32_t i = 0; i < 4 * RBX_UPKEEP_LEND_TIMES - 1; i++) {
		host->now_ns += QUARTER_NS;
		rounds(host);
	}
	assert_null(host->ended.first);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, -ETIMEDOUT), 1);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, -ETIMEDOUT), 1);
	host_free(host);
}

static void first_write_ends_if_the_server_says_later_for_ever(void **state)
{
	struct host *host = host_make_on_demand(1, 1, 1);

	(void)state;
	host->servers[0].refuse = -ETIMEDOUT;
	first_write(host, 0);
	rounds(host);
	assert_null(host->ended.first);
	host->now_ns += RBX_UPKEEP_LEND_TIMES * HOST_TIMEOUT_NS;
	rounds(host);
	assert_int_equal(host_ended(host, -ETIMEDOUT), 1);
	host_free(host);
}

static void close_ends_what_waits_for_memory(void **state)
{
	const uint32_t slabs = 2 * RBX_UPKEEP_RETRIES_MAX;
	struct host *host = host_make_on_demand(slabs + 1, 1, 1);
	uint32_t i;

	(void)state;
	host->servers[0].refuse = -ENOTCONN;
	for (i = 0; i < slabs; i++)
		first_write(host, i);
	rounds(host);
	assert_null(host->ended.first);
	rbx_upkeep_closes(&host->upkeep);
	rounds(host);
	assert_int_equal(host_ended(host, -ECANCELED), slabs);
	host->servers[0].is_slow = true;
	first_write(host, slabs);
	rounds(host);
	assert_null(host->ended.first);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, -ECANCELED), 1);
	host_free(host);
}

static void close_ends_a_write_to_a_dead_slab_with_eio(void **state)
{
	struct host *host = host_make_on_demand(1, 1, 2);
	uint32_t dies;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	dies = host_server_of(host, 0, 0);
	host->servers[1 - dies].is_slow = true;
	host_server_dies(host, dies);
	rounds(host);
	first_write(host, 0);
	rounds(host);
	assert_null(host->ended.first);
	rbx_upkeep_closes(&host->upkeep);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	host_free(host);
}

/* Slab 0 has got a replica of one server, which is returned, and waits for another one. */
static uint32_t make_wait(struct host *host, uint32_t *slow)
{
	uint32_t i, has = HOST_SERVERS;

	for (i = 0; i < 3; i++)
		host->servers[i].is_slow = true;
	first_write(host, 0);
	rounds(host);
	for (i = 0; i < 3; i++)
		if (host->servers[i].is_asked && has == HOST_SERVERS)
			has = i;
		else if (host->servers[i].is_asked)
			*slow = i;
	for (i = 0; i < 3; i++)
		host->servers[i].is_slow = i == *slow;
	rounds(host);
	assert_int_equal(host_lent_count(host, has), 1);
	assert_null(host->ended.first);
	return has;
}

/* How many of a slab's replicas are in use, or will be, on a server. */
static uint32_t live_at(struct host *host, uint32_t slab, uint32_t server)
{
	uint32_t slot, count = 0;

	for (slot = 0; slot < 3; slot++)
		count += rbx_slab_state(host_slab(host, slab), slot) ==
				 RBX_REPLICA_LIVE &&
			 host_server_of(host, slab, slot) == server;
	return count;
}

static void whole_in_the_end(struct host *host, uint32_t slow, uint32_t slabs)
{
	host->servers[slow].is_slow = false;
	rounds(host);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), slabs);
	assert_int_equal(host_census(host).whole, slabs);
}

/* A loan is over that was lent again, also if its slab is not in use yet. */
static void loan_is_lent_again_while_its_slab_waits(void **state)
{
	struct host *host = host_make_on_demand(2, 2, 3);
	uint32_t slow, has = make_wait(host, &slow);

	(void)state;
	assert_int_equal(live_at(host, 0, has), 1);
	host->servers[has].keys[0] = 0;
	first_write(host, 1);
	rounds(host);
	assert_int_equal(live_at(host, 1, has), 1);
	assert_int_equal(live_at(host, 0, has), 0);
	whole_in_the_end(host, slow, 2);
	host_free(host);
}

static void server_dies_while_its_slab_waits(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 3);
	uint32_t slow, has = make_wait(host, &slow);

	(void)state;
	host_server_dies(host, has);
	rounds(host);
	assert_int_equal(live_at(host, 0, has), 0);
	whole_in_the_end(host, slow, 1);
	host_free(host);
}

/* Its server goes down before the round that ends the wait, and no other one lends yet. */
static void server_dies_with_the_answer_that_its_slab_waits_for(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 3);
	uint32_t slow, has = make_wait(host, &slow), third = 3 - slow - has;

	(void)state;
	host->servers[third].refuse = -ENOTCONN;
	host->servers[slow].refuse = -ENOSPC;
	host->servers[slow].is_slow = false;
	host_server_dies(host, has);
	rounds(host);
	assert_null(host->ended.first);
	host->servers[third].refuse = 0;
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(live_at(host, 0, third), 1);
	host_free(host);
}

/* Nothing that was lent is left, and the others refuse: its server is asked anew. */
static void all_that_was_lent_is_over_while_its_slab_waits(void **state)
{
	struct host *host = host_make_on_demand(2, 2, 3);
	uint32_t slow, has = make_wait(host, &slow), third = 3 - slow - has;

	(void)state;
	host->servers[has].keys[0] = 0;
	host->servers[third].refuse = -ENOSPC;
	first_write(host, 1);
	rounds(host);
	assert_int_equal(live_at(host, 1, has), 1);
	host->servers[slow].refuse = -ENOSPC;
	host->servers[slow].is_slow = false;
	rounds(host);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 2);
	assert_int_equal(live_at(host, 0, has), 1);
	host_free(host);
}

/* Copies go on when their memory has come, and not before the server was asked that has
 * time for it. */
static void eviction_does_not_wait_for_first_writes(void **state)
{
	struct host *host = host_make_on_demand(RBX_UPKEEP_BORROWS_MAX + 2, 1, 3);
	uint32_t from;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	from = host_server_of(host, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		host->servers[i].is_slow = true;
	host_evict_live(host, 0);
	for (uint32_t i = 1; i < 4; i++)
		first_write(host, i);
	(void)host_round(host);
	assert_int_equal(rbx_slab_state(host_slab(host, 0), 1),
			 RBX_REPLICA_BORROWING);
	for (uint32_t i = 0; i < 3; i++)
		host->servers[i].is_slow = false;
	host_settle(host);
	assert_int_equal(host_ended(host, 0), 3);
	assert_int_not_equal(host_server_of(host, 0, 1), from);
	host_free(host);
}

static void unmap_without_answer_keeps_nobody_waiting(void **state)
{
	struct host *host = host_make_on_demand(3, 1, 2);
	uint32_t from;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	from = host_server_of(host, 0, 0);
	host->servers[from].is_slow = true;
	rbx_flow_discard(&host->flow, 0, HOST_SLAB_BYTES);
	rounds(host);
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_server_of(host, 1, 0), 1 - from);
	host->servers[from].is_slow = false;
	rounds(host);
	assert_int_equal(host_lent_count(host, from), 0);
	host_free(host);
}

static void open_waits_and_can_be_stopped(void **state)
{
	struct host *host = host_make(2, 2, 3);

	(void)state;
	host->servers[0].is_slow = host->servers[1].is_slow = true;
	host->servers[2].is_slow = true;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_not_equal(host->waits_count, 0);
	host_free(host);
	host = host_make(1, 1, 1);
	host->servers[0].is_slow = true;
	host->waits_end_count = 1;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), -EINTR);
	host_free(host);
}

/* A discard while its new memory is asked for. */
static void discarded_slab_does_not_wait_for_its_copy(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 3);

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (uint32_t i = 0; i < 3; i++)
		host->servers[i].is_slow = !rbx_slab_has_server(host_slab(host, 0), i);
	host_server_dies(host, host_server_of(host, 0, 0));
	rounds(host);
	rbx_flow_discard(&host->flow, 0, HOST_SLAB_BYTES);
	first_write(host, 0);
	rounds(host);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* Else it would be asked again as soon as it has answered, for ever. */
static void server_that_refuses_is_not_asked_again_with_its_answer(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 3);
	struct host_server *third = NULL;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	for (uint32_t i = 0; i < 3; i++)
		if (!rbx_slab_has_server(host_slab(host, 0), i))
			third = &host->servers[i];
	assert_non_null(third);
	third->is_slow = true;
	third->refuse = -EDQUOT;
	host_server_dies(host, host_server_of(host, 0, 0));
	rounds(host);
	assert_int_equal(third->asked_count, 1);
	third->is_slow = false;
	(void)host_round(host);
	assert_false(third->is_asked);
	assert_int_equal(third->asked_count, 1);
	assert_true(host->due_ns <= host->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull);
	host->now_ns = host->due_ns;
	rounds(host);
	assert_int_equal(third->asked_count, 2);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_server_keeps_no_other_slab_waiting),
		cmocka_unit_test(late_server_is_left_for_another_one),
		cmocka_unit_test(late_server_is_avoided_for_a_while),
		cmocka_unit_test(server_that_was_late_is_only_busy_the_next_time),
		cmocka_unit_test(late_replica_joins_by_a_rebuild),
		cmocka_unit_test(first_write_ends_if_nothing_is_lent_in_time),
		cmocka_unit_test(
			first_write_ends_if_the_server_says_later_for_ever),
		cmocka_unit_test(close_ends_what_waits_for_memory),
		cmocka_unit_test(close_ends_a_write_to_a_dead_slab_with_eio),
		cmocka_unit_test(loan_is_lent_again_while_its_slab_waits),
		cmocka_unit_test(server_dies_while_its_slab_waits),
		cmocka_unit_test(server_dies_with_the_answer_that_its_slab_waits_for),
		cmocka_unit_test(all_that_was_lent_is_over_while_its_slab_waits),
		cmocka_unit_test(eviction_does_not_wait_for_first_writes),
		cmocka_unit_test(unmap_without_answer_keeps_nobody_waiting),
		cmocka_unit_test(open_waits_and_can_be_stopped),
		cmocka_unit_test(discarded_slab_does_not_wait_for_its_copy),
		cmocka_unit_test(
			server_that_refuses_is_not_asked_again_with_its_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
