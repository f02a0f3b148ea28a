/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_away_others_test.c - other servers are asked for what a silent one has, or have it by the
 * time that it is back: a slab has as many replicas as it is to have, and what it is owed holds up
 * nobody else (core/slab_away.h, core/loans.h).
 */
#include "away.h"

static void what_the_first_one_has_missed_stays_known(void **state)
{
	struct host *host = make(3, 3);
	uint32_t first = host_server_of(host, 0, 0), second = host_server_of(host, 0, 1);
	uint8_t *had = memory_of(host, 0);

	(void)state;
	assert_true(falls_silent(host, first));
	write_at(host, 0, 'b');
	assert_true(falls_silent(host, second));
	is_back(host, first);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(had[0], 'b');
	host_free(host);
}

static void replica_that_was_made_elsewhere_takes_its_place(void **state)
{
	struct host *host = make(2, 3);
	uint32_t server = host_server_of(host, 0, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_false(rbx_slab_has_server(host_slab(host, 0), server));
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_lent_count(host, server), 0); /* it was owed */
	host_free(host);
}

/* Another server was asked in its place, and lends when it is not needed any more. */
static void memory_that_was_asked_for_meanwhile_is_waited_for(void **state)
{
	struct host *host = make(2, 3);
	uint32_t server = host_server_of(host, 0, 0);
	uint32_t spare = 3 - server - host_server_of(host, 0, 1);

	(void)state;
	host->servers[spare].is_slow = true;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	(void)host_round(host);
	assert_true(host->servers[spare].is_asked);
	is_back(host, server);
	(void)host_round(host);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_AWAY);
	host->servers[spare].is_slow = false;
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_lent_count(host, 0) + host_lent_count(host, 1) +
				 host_lent_count(host, 2),
			 2);
	host_free(host);
}

/* The other server refuses, and the slab has the one that is back, and borrows from nobody else. */
static void server_that_refuses_meanwhile_is_followed_by_none(void **state)
{
	struct host *host = make(2, 4);
	uint32_t server = host_server_of(host, 0, 0), i;
	uint8_t *had = memory_of(host, 0);

	(void)state;
	for (i = 0; i < 4; i++)
		host->servers[i].is_slow = true;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	(void)host_round(host);
	is_back(host, server);
	(void)host_round(host);
	for (i = 0; i < 4; i++) {
		host->servers[i].is_slow = false;
		host->servers[i].refuse = -ENOSPC;
	}
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_ptr_equal(memory_of(host, 0), had);
	assert_int_equal(had[0], 'b');
	host_free(host);
}

/* What is rebuilt already lacks more than what is back. */
static void replica_that_is_being_made_elsewhere_is_given_up(void **state)
{
	struct host *host = make(2, 3);
	uint32_t server = host_server_of(host, 0, 0);
	uint32_t spare = 3 - server - host_server_of(host, 0, 1);
	uint8_t *had = memory_of(host, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	had[63 * EXTENT_BYTES] = 'k';
	(void)host_round(host);
	assert_int_equal(rbx_slab_copies_count(host_slab(host, 0)), RBX_COPIES_MAX);
	is_back(host, server);
	(void)host_round(host);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_ptr_equal(memory_of(host, 0), had);
	assert_int_equal(had[0], 'b');
	assert_int_equal(had[63 * EXTENT_BYTES], 'k');
	assert_int_equal(host_lent_count(host, spare), 0);
	host_free(host);
}

/* Then a newcomer is needed as well. But the one that is back is complete long before. */
static void newcomer_that_is_needed_comes_after_the_one_that_is_back(void **state)
{
	struct host *host = make(2, 3);
	uint32_t server = host_server_of(host, 0, 0), other = host_server_of(host, 0, 1);
	uint32_t spare = 3 - server - other;
	uint8_t *had = memory_of(host, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	had[63 * EXTENT_BYTES] = 'k';
	host_evict_live(host, 0);
	(void)host_round(host);
	assert_int_equal(rbx_slab_copies_count(host_slab(host, 0)), RBX_COPIES_MAX);
	is_back(host, server);
	(void)host_round(host);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_true(rbx_slab_has_server(host_slab(host, 0), spare));
	assert_false(rbx_slab_has_server(host_slab(host, 0), other));
	assert_int_equal(had[0], 'b');
	assert_int_equal(had[63 * EXTENT_BYTES], 'k');
	host_free(host);
}

static void one_that_is_back_is_no_newcomer_to_the_next_one(void **state)
{
	struct host *host = make(3, 4);
	uint32_t first = host_server_of(host, 0, 0), second = host_server_of(host, 0, 1);
	struct rbx_slab *slab = host_slab(host, 0);

	(void)state;
	assert_true(falls_silent(host, first));
	assert_true(falls_silent(host, second));
	write_at(host, 0, 'b');
	(void)host_round(host);
	assert_int_equal(rbx_slab_copies_count(slab), RBX_COPIES_MAX);
	is_back(host, first);
	(void)host_round(host);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_REBUILDING);
	is_back(host, second);
	(void)host_round(host);
	assert_int_equal(rbx_slab_targets(slab), 3);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	for (uint32_t slot = 0; slot < 3; slot++) {
		assert_int_equal(state_of(host, slot), RBX_REPLICA_LIVE);
		assert_int_equal(*memory_of(host, slot), 'b');
	}
	host_free(host);
}

/* Of three replicas two are away; one is made elsewhere, and the other one returns. */
static void two_are_away_and_one_has_room(void **state)
{
	struct host *host = make(3, 4);
	uint32_t first = host_server_of(host, 0, 0), second = host_server_of(host, 0, 1);

	(void)state;
	assert_true(falls_silent(host, first));
	assert_true(falls_silent(host, second));
	write_at(host, 0, 'b');
	(void)host_settle(host);
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 2);
	assert_int_equal(rbx_slab_count(host_slab(host, 0), RBX_REPLICA_AWAY), 1);
	is_back(host, first);
	is_back(host, second);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	for (uint32_t slot = 0; slot < 4; slot++)
		if (state_of(host, slot) == RBX_REPLICA_LIVE)
			assert_int_equal(*memory_of(host, slot), 'b');
	host_free(host);
}

/* As many as a table has room for that give back for no other reason. */
static void what_is_owed_to_a_silent_server_stops_no_other_returns(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);
	struct rbx_owed debt = { .loan = { .rkey = UINT32_MAX } };
	uint32_t other;

	(void)state;
	host_start(host, RBX_PIECE_WRITE, 0, out, 512);
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES, out, 512);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 2);
	debt.server = host_server_of(host, 0, 0);
	other = host_server_of(host, 1, 0);
	assert_int_not_equal(debt.server, other);
	host->servers[debt.server].down = true;
	rbx_upkeep_server_silent(&host->upkeep, debt.server);
	while (host->upkeep.owed_count < RBX_OWED_MAX / 2)
		host->upkeep.owed[host->upkeep.owed_count++] = debt;
	rbx_flow_discard(&host->flow, 0, 2 * HOST_SLAB_BYTES);
	assert_true(host_settle(host));
	assert_int_equal(host_lent_count(host, other), 0);
	assert_int_equal(host->upkeep.owed_count, RBX_OWED_MAX / 2);
	assert_true(rbx_slab_has_memory(host_slab(host, 0)));
	is_back(host, debt.server);
	assert_false(host_settle(host));
	assert_int_equal(host_lent_count(host, debt.server), 0);
	assert_int_equal(host->upkeep.owed_count, 0);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_first_one_has_missed_stays_known),
		cmocka_unit_test(replica_that_was_made_elsewhere_takes_its_place),
		cmocka_unit_test(memory_that_was_asked_for_meanwhile_is_waited_for),
		cmocka_unit_test(server_that_refuses_meanwhile_is_followed_by_none),
		cmocka_unit_test(replica_that_is_being_made_elsewhere_is_given_up),
		cmocka_unit_test(newcomer_that_is_needed_comes_after_the_one_that_is_back),
		cmocka_unit_test(one_that_is_back_is_no_newcomer_to_the_next_one),
		cmocka_unit_test(two_are_away_and_one_has_room),
		cmocka_unit_test(what_is_owed_to_a_silent_server_stops_no_other_returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
