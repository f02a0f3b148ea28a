/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_full_test.c - servers that are full beside one that is busy or late: what needs
 * memory waits for the one that may have it.
 */
#include "core/asks.h"
#include "tests/core/first_writes.h"

static void fill(struct host *host, uint32_t server)
{
	uint32_t i;

	/* Lent to others. */
	for (i = 0; i < HOST_AREAS; i++)
		host->servers[server].keys[i] = 0xdead0000 + i;
}

static void first_write_waits_for_a_busy_server_if_the_others_are_full(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	fill(host, 0);
	host->servers[1].is_slow = true;
	first_write(host, 0);
	rounds(host);
	first_write(host, 1);
	rounds(host);
	assert_null(host->ended.first);
	answers_and_ends(host, 1, 2);
	host_free(host);
}

/* What was lost waits for no server that is away, but for one that does something else. */
static void write_to_a_dead_slab_waits_for_a_busy_server(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 3);

	(void)state;
	rbx_asks_avoid(&host->upkeep, 0, host->now_ns + 1);
	rbx_asks_avoid(&host->upkeep, 1, host->now_ns + 1);
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_server_dies(host, 2);
	rounds(host);
	fill(host, 0);
	host->servers[1].is_slow = true;
	first_write(host, 1);
	rounds(host);
	host->now_ns += QUARTER_NS / 2;
	host_write_cell(host, 5); /* whole pages, as nothing else is there */
	rounds(host);
	assert_null(host->ended.first);
	answers_and_ends(host, 1, 2);
	host_free(host);
}

/* It is full, and so is the other one that could be asked. */
static void first_write_of_two_replicas_waits_for_busy_servers(void **state)
{
	struct host *host = host_make_on_demand(2, 2, 4);

	(void)state;
	fill(host, 0);
	fill(host, 1);
	host->servers[2].is_slow = host->servers[3].is_slow = true;
	/* So that those that have room are asked first. */
	rbx_asks_avoid(&host->upkeep, 0, host->now_ns + 1);
	rbx_asks_avoid(&host->upkeep, 1, host->now_ns + 1);
	first_write(host, 0);
	rounds(host);
	host->now_ns += QUARTER_NS / 2;
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host->servers[0].asked_count, 1);
	assert_null(host->ended.first);
	host->servers[2].is_slow = host->servers[3].is_slow = false;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 2);
	host_free(host);
}

static void first_write_waits_for_a_late_server_if_the_others_are_full(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	fill(host, 0);
	host->servers[1].is_slow = true;
	first_write(host, 0);
	rounds(host);
	host->now_ns += QUARTER_NS + QUARTER_NS / 2;
	rounds(host);
	first_write(host, 1);
	rounds(host);
	assert_null(host->ended.first);
	host->servers[1].is_slow = false;
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 2);
	host_free(host);
}

/* Though it has the most room, as it says. */
static void server_is_avoided_for_a_second(int refuse)
{
	const uint64_t retry_ns = RBX_UPKEEP_RETRY_MS * 1000000ull;
	struct host *host = host_make_on_demand(HOST_AREAS, 1, 2);
	uint32_t i;

	host->servers[0].refuse = refuse;
	/* So that the one that refuses is asked first. */
	rbx_asks_avoid(&host->upkeep, 1, host->now_ns + 1);
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host->servers[0].asked_count, 1);
	host->now_ns += retry_ns - 1;
	for (i = 1; i < HOST_AREAS - 1; i++)
		first_write(host, i);
	rounds(host);
	assert_int_equal(host->servers[0].asked_count, 1);
	host->now_ns++;
	first_write(host, i);
	rounds(host);
	assert_int_equal(host->servers[0].asked_count, 2);
	assert_int_equal(host_ended(host, 0), HOST_AREAS);
	host_free(host);
}

static void server_that_has_refused_is_avoided_for_a_second(void **state)
{
	(void)state;
	server_is_avoided_for_a_second(-EDQUOT);
}

/* It has answered, and in time. */
static void server_that_lends_nothing_yet_is_avoided_for_a_second(void **state)
{
	(void)state;
	server_is_avoided_for_a_second(-ETIMEDOUT);
}

/* It refused longer ago than it is avoided for that. */
static void late_server_is_not_left_for_one_that_has_refused(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	fill(host, 0);
	/* So that the full one is asked first. */
	rbx_asks_avoid(&host->upkeep, 1, host->now_ns + 1);
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host->servers[0].asked_count, 1);
	host->now_ns += QUARTER_NS + QUARTER_NS / 2;
	host->servers[1].is_slow = true;
	first_write(host, 1);
	rounds(host);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host->servers[0].asked_count, 1);
	answers_and_ends(host, 1, 1);
	host_free(host);
}

/* The first server refuses memory for slab 0, which the second one lends. */
static void refuse_first(struct host *host, int err)
{
	host->servers[0].refuse = err;
	rbx_asks_avoid(&host->upkeep, 1, host->now_ns + 1);
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
}

static void late_server_is_not_left_for_one_that_lends_nothing_yet(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	refuse_first(host, -ETIMEDOUT);
	host->now_ns += QUARTER_NS + QUARTER_NS / 2;
	host->servers[1].is_slow = true;
	rbx_asks_avoid(&host->upkeep, 0, host->now_ns + 1);
	first_write(host, 1);
	rounds(host);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host->servers[0].asked_count, 1);
	answers_and_ends(host, 1, 1);
	host_free(host);
}

/* Nor is it left for ever: one that refused may have room by then. */
static void late_server_is_left_for_one_that_refused_long_ago(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	refuse_first(host, -ENOSPC);
	host->servers[0].refuse = 0;
	host->servers[1].is_slow = true;
	host->now_ns += QUARTER_NS / 2;
	first_write(host, 1);
	rounds(host);
	host->now_ns += RBX_UPKEEP_LEND_TIMES * HOST_TIMEOUT_NS - QUARTER_NS / 2;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_server_of(host, 1, 0), 0);
	host_free(host);
}

/* A copy that no server has taken yet is not stuck while one that is busy may. */
static void rebuild_waits_for_a_busy_server_if_the_others_are_full(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 3);

	(void)state;
	host->servers[1].refuse = host->servers[2].refuse = -ENOSPC;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_server_of(host, 0, 0), 0);
	host->servers[0].refuse = -ENOSPC;
	host->servers[1].refuse = 0;
	host->servers[1].is_slow = true;
	host->now_ns += HOST_TIMEOUT_NS;
	rbx_asks_avoid(&host->upkeep, 0, host->now_ns + 1);
	rbx_asks_avoid(&host->upkeep, 2, host->now_ns + 1);
	first_write(host, 1);
	rounds(host);
	assert_true(host->servers[1].is_asked);
	host->now_ns += QUARTER_NS / 2;
	host_evict_live(host, 0);
	rounds(host);
	assert_string_equal(host->news, "");
	answers_and_ends(host, 1, 1);
	assert_string_equal(host->news, "SF");
	host_free(host);
}

/* It waits as long as if it had come when the other was lent something. */
static void first_write_waits_anew_when_another_was_lent_something(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	host->servers[0].refuse = -ETIMEDOUT;
	fill(host, 1);
	first_write(host, 0);
	first_write(host, 1);
	rounds(host);
	host->now_ns += RBX_UPKEEP_LEND_TIMES * HOST_TIMEOUT_NS - 1;
	host->servers[1].keys[0] = 0; /* room for one */
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_null(host->ended.first);
	host->now_ns += RBX_UPKEEP_LEND_TIMES * HOST_TIMEOUT_NS;
	rounds(host);
	assert_int_equal(host_ended(host, -ETIMEDOUT), 1);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_has_refused_is_avoided_for_a_second),
		cmocka_unit_test(
			server_that_lends_nothing_yet_is_avoided_for_a_second),
		cmocka_unit_test(
			late_server_is_not_left_for_one_that_lends_nothing_yet),
		cmocka_unit_test(
			first_write_waits_anew_when_another_was_lent_something),
		cmocka_unit_test(
			first_write_waits_for_a_busy_server_if_the_others_are_full),
		cmocka_unit_test(write_to_a_dead_slab_waits_for_a_busy_server),
		cmocka_unit_test(
			first_write_of_two_replicas_waits_for_busy_servers),
		cmocka_unit_test(
			first_write_waits_for_a_late_server_if_the_others_are_full),
		cmocka_unit_test(
			late_server_is_not_left_for_one_that_has_refused),
		cmocka_unit_test(
			late_server_is_left_for_one_that_refused_long_ago),
		cmocka_unit_test(
			rebuild_waits_for_a_busy_server_if_the_others_are_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
