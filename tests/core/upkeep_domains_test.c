/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_domains_test.c - replicas of a slab are in different failure domains while there is a
 * choice: when a volume is opened, at first writes, after losses, and when servers want memory
 * back. upkeep_domains_model_test.c has random pools.
 */
#include "tests/core/domains.h"

/* ---- Each way to a replica --------------------------------------------------------------*/

static const uint64_t two_racks[] = { 7, 7, 7, 8 };

static void opened_volume_is_spread(void **state)
{
	struct host *host = host_make(4, 2, 4);
	uint32_t slab, servers[RBX_SLOTS_MAX];

	(void)state;
	set_domains(host, two_racks, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	for (slab = 0; slab < 4; slab++) {
		assert_int_equal(servers_of(host, slab, servers), 2);
		assert_true(servers[0] == 3 || servers[1] == 3);
	}
	assert_well_placed(host, 4, 4);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

/* The one server of the other rack has four slabs. */
static void opened_volume_is_larger_than_a_rack_the_rest_is_together(void **state)
{
	struct host *host = host_make(6, 2, 4);

	(void)state;
	set_domains(host, two_racks, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_lent_count(host, 3), 4);
	assert_int_equal(host_census(host).together, 2);
	assert_well_placed(host, 6, 4);
	host_free(host);
}

static void first_writes_are_spread(void **state)
{
	struct host *host = host_make_on_demand(4, 2, 4);
	uint32_t slab;

	(void)state;
	set_domains(host, two_racks, 4);
	for (slab = 0; slab < 4; slab++)
		first_write(host, slab);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 4);
	assert_int_equal(host_lent_count(host, 3), 4);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

static void servers_without_a_label_are_apart_from_all(void **state)
{
	static const uint64_t domains[] = { 0, 0, 7, 7 };
	struct host *host = host_make(4, 3, 4);

	(void)state;
	set_domains(host, domains, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_lent_count(host, 0), 4);
	assert_int_equal(host_lent_count(host, 1), 4);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

static void lost_replica_is_made_anew_in_another_rack(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8, 8 };
	uint32_t seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		struct host *host = host_make(2, 2, 4);
		uint32_t dead = seed % 4;

		set_domains(host, domains, 4);
		rbx_random_seed(&host->flow.map->random, seed);
		assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
		host_server_dies(host, dead);
		assert_false(host_settle(host));
		assert_int_equal(host_census(host).whole, 2);
		assert_int_equal(host_census(host).together, 0);
		host_free(host);
	}
}

/* What leaves does not count: its own rack is free for another one. */
static void replica_that_is_wanted_back_moves_within_its_rack(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8 };
	struct host *host = host_make(1, 2, 3);
	uint32_t leaves;
	struct rbx_loan loan;

	(void)state;
	set_domains(host, domains, 3);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	leaves = host_server_of(host, 0, 0) == 2;
	loan = rbx_replica_loan(rbx_slab_replica(host_slab(host, 0), leaves));
	leaves = host_server_of(host, 0, leaves);
	host_evict(host, leaves, &loan);
	assert_false(host_settle(host));
	assert_int_equal(host_lent_count(host, leaves), 0);
	assert_int_equal(host_lent_count(host, 1 - leaves), 1);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

static void rack_is_all_that_is_left_its_servers_are_used(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8 };
	struct host *host = host_make(2, 2, 3);

	(void)state;
	set_domains(host, domains, 3);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_server_dies(host, 2);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(host_census(host).together, 2);
	host_free(host);
}

/* ---- Servers that take long, or refuse ---------------------------------------------------*/

/* Whether this server or another one has the first replica is drawn. */
static void busy_server_of_another_rack_is_waited_for(void **state)
{
	static const uint64_t domains[] = { 7, 7, 7, 8 };
	struct host *host = host_make_on_demand(2, 2, 4);

	(void)state;
	set_domains(host, domains, 4);
	host->servers[3].is_slow = true;
	first_write(host, 0);
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 0);
	answers_and_ends(host, 3, 2);
	assert_int_equal(host_lent_count(host, 3), 2);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

/* A replica in the same rack is better than none. */
static void late_server_of_another_rack_is_no_choice(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8 };
	struct host *host = host_make_on_demand(2, 2, 3);

	(void)state;
	set_domains(host, domains, 3);
	host->servers[2].is_slow = true;
	first_write(host, 0);
	rounds(host);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).together, 2);
	host->servers[2].is_slow = false;
	host_free(host);
}

/* It was asked already, and others are no better. */
static void rebuild_waits_for_the_late_server_of_another_rack(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8, 8 };
	struct host *host = host_make(1, 2, 4);
	uint32_t dead, late;

	(void)state;
	set_domains(host, domains, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	dead = host_server_of(host, 0, 0);
	late = dead ^ 1;
	host->servers[late].is_slow = true;
	host_server_dies(host, dead);
	rounds(host);
	host->now_ns += QUARTER_NS;
	rounds(host);
	assert_int_equal(host_census(host).whole, 0);
	host->servers[late].is_slow = false;
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

/* The late one was asked for the first slab; the second would have to wait in any case. */
static void rebuild_waits_for_a_server_that_is_late_for_others(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8, 8 };
	struct host *host = host_make(2, 2, 4);

	(void)state;
	set_domains(host, domains, 4);
	host->servers[3].refuse = -ENOSPC;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_lent_count(host, 2), 2);
	host->servers[3].refuse = 0;
	assert_false(host_settle(host));
	host->servers[3].is_slow = true;
	host_server_dies(host, 2);
	rounds(host);
	host->now_ns += QUARTER_NS;
	rounds(host);
	(void)host_settle(host);
	assert_int_equal(host_lent_count(host, 0) + host_lent_count(host, 1), 2);
	host->servers[3].is_slow = false;
	(void)host_settle(host);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

/* A replica is lost, and the connection to the other server of its rack has broken for a
 * moment. */
static struct host *make_away(uint32_t *away)
{
	static const uint64_t domains[] = { 7, 7, 8, 8 };
	struct host *host = host_make(1, 2, 4);
	uint32_t dead;

	set_domains(host, domains, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	dead = host_server_of(host, 0, 0);
	*away = dead ^ 1;
	host->servers[*away].refuse = -ENOTCONN;
	host_server_dies(host, dead);
	assert_true(host_settle(host));
	return host;
}

static void rebuild_waits_for_the_server_of_another_rack_that_is_away(void **state)
{
	uint32_t away;
	struct host *host = make_away(&away);

	(void)state;
	assert_int_equal(host_census(host).whole, 0);
	host->servers[away].refuse = 0;
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

static void server_that_was_away_is_down_its_rack_is_no_choice(void **state)
{
	uint32_t away;
	struct host *host = make_away(&away);

	(void)state;
	host_server_dies(host, away);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).together, 1);
	host_free(host);
}

static void full_server_is_not_asked_for_each_slab(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8 };
	struct host *host = host_make_on_demand(3, 2, 3);
	uint32_t slab;

	(void)state;
	set_domains(host, domains, 3);
	host->servers[2].refuse = -ENOSPC;
	for (slab = 0; slab < 3; slab++) {
		first_write(host, slab);
		rounds(host);
	}
	assert_int_equal(host_ended(host, 0), 3);
	assert_int_equal(host->servers[2].asked_count, 1);
	assert_int_equal(host_census(host).together, 3);
	host_free(host);
}

/* And a second later it is asked again. */
static void full_server_has_room_again_it_is_a_choice(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8 };
	struct host *host = host_make_on_demand(2, 2, 3);

	(void)state;
	set_domains(host, domains, 3);
	host->servers[2].refuse = -ENOSPC;
	first_write(host, 0);
	rounds(host);
	host->servers[2].refuse = 0;
	host->now_ns += RBX_UPKEEP_RETRY_MS * 1000000ull;
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 2);
	assert_int_equal(host_census(host).together, 1);
	assert_int_equal(host_lent_count(host, 2), 1);
	host_free(host);
}

/* ---- The table of servers ------------------------------------------------------------------*/

static void place_of_a_dead_server_has_the_domain_of_the_next(void **state)
{
	static const uint64_t domains[] = { 7, 8, 7 };
	struct host *host = host_make(1, 2, 3);

	(void)state;
	set_domains(host, domains, 3);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_server_dies(host, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).together, 1);
	rbx_upkeep_server_begins(&host->upkeep, 1);
	assert_int_equal(domain_of(host, 1), 0);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opened_volume_is_spread),
		cmocka_unit_test(opened_volume_is_larger_than_a_rack_the_rest_is_together),
		cmocka_unit_test(first_writes_are_spread),
		cmocka_unit_test(servers_without_a_label_are_apart_from_all),
		cmocka_unit_test(lost_replica_is_made_anew_in_another_rack),
		cmocka_unit_test(replica_that_is_wanted_back_moves_within_its_rack),
		cmocka_unit_test(rack_is_all_that_is_left_its_servers_are_used),
		cmocka_unit_test(busy_server_of_another_rack_is_waited_for),
		cmocka_unit_test(late_server_of_another_rack_is_no_choice),
		cmocka_unit_test(rebuild_waits_for_the_late_server_of_another_rack),
		cmocka_unit_test(rebuild_waits_for_a_server_that_is_late_for_others),
		cmocka_unit_test(rebuild_waits_for_the_server_of_another_rack_that_is_away),
		cmocka_unit_test(server_that_was_away_is_down_its_rack_is_no_choice),
		cmocka_unit_test(full_server_is_not_asked_for_each_slab),
		cmocka_unit_test(full_server_has_room_again_it_is_a_choice),
		cmocka_unit_test(place_of_a_dead_server_has_the_domain_of_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
