/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_domains_test.c - replicas of a slab are in different failure domains while there is a
 * choice: when a volume is opened, at first writes, after losses, and when servers want memory
 * back. Scripted cases, and then random pools beside a brute-force judge.
 */
#include "tests/core/first_writes.h"

/* Server i is in domain domains[i]; 0: in none. */
static void set_domains(struct host *host, const uint64_t *domains, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		rbx_upkeep_server_domain(&host->upkeep, i, domains[i]);
}

static uint64_t domain_of(const struct host *host, uint32_t server)
{
	return host->flow.domains.of[server];
}

/* ---- The judge ------------------------------------------------------------------------*/

static bool share(const struct host *host, uint32_t server, uint32_t other)
{
	return server == other || (domain_of(host, server) &&
				   domain_of(host, server) == domain_of(host, other));
}

/* The servers of the live replicas. */
static uint32_t servers_of(struct host *host, uint32_t slab, uint32_t *servers)
{
	const struct rbx_slab *of = host_slab(host, slab);
	uint32_t slot, count = 0;

	for (slot = 0; slot < rbx_slab_shape(of)->slots; slot++)
		if (rbx_slab_state(of, slot) == RBX_REPLICA_LIVE)
			servers[count++] = host_server_of(host, slab, slot);
	return count;
}

static bool is_together(struct host *host, uint32_t slab)
{
	uint32_t servers[RBX_SLOTS_MAX], i, j, count = servers_of(host, slab, servers);

	for (i = 0; i < count; i++)
		for (j = 0; j < i; j++)
			if (share(host, servers[i], servers[j]))
				return true;
	return false;
}

/* Whether a server could have a replica that would be lost together with none of the slab. */
static bool is_choice(struct host *host, uint32_t slab, uint32_t server)
{
	uint32_t servers[RBX_SLOTS_MAX], i, count = servers_of(host, slab, servers);
	const struct host_server *of = &host->servers[server];

	for (i = 0; i < count; i++)
		if (share(host, server, servers[i]))
			return false;
	return !of->down && !of->refuse && host_lent_count(host, server) < HOST_AREAS;
}

static void assert_well_placed(struct host *host, uint32_t slabs, uint32_t servers)
{
	uint32_t slab, server, count = 0;

	for (slab = 0; slab < slabs; slab++) {
		if (!is_together(host, slab))
			continue;
		count += rbx_slab_health(host_slab(host, slab)) == RBX_SLAB_WHOLE;
		for (server = 0; server < servers; server++)
			assert_false(is_choice(host, slab, server));
	}
	assert_int_equal(host_census(host).together, count);
}

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

/* Its connection has broken for a moment. */
static void rebuild_waits_for_the_server_of_another_rack_that_is_away(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8, 8 };
	struct host *host = host_make(1, 2, 4);
	uint32_t dead, away;

	(void)state;
	set_domains(host, domains, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	dead = host_server_of(host, 0, 0);
	away = dead ^ 1;
	host->servers[away].refuse = -ENOTCONN;
	host_server_dies(host, dead);
	assert_true(host_settle(host));
	assert_int_equal(host_census(host).whole, 0);
	host->servers[away].refuse = 0;
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).together, 0);
	host_free(host);
}

static void server_that_was_away_is_down_its_rack_is_no_choice(void **state)
{
	static const uint64_t domains[] = { 7, 7, 8, 8 };
	struct host *host = host_make(1, 2, 4);
	uint32_t dead, away;

	(void)state;
	set_domains(host, domains, 4);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	dead = host_server_of(host, 0, 0);
	away = dead ^ 1;
	host->servers[away].refuse = -ENOTCONN;
	host_server_dies(host, dead);
	assert_true(host_settle(host));
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

/* ---- Random pools -------------------------------------------------------------------------*/

#define RANDOM_SLABS 5u

struct pool {
	struct host *host;
	struct rbx_random random;
	uint32_t servers, replicas;
};

static struct pool draw_pool(uint64_t seed)
{
	struct pool pool = { 0 };
	uint32_t i;

	rbx_random_seed(&pool.random, seed);
	pool.servers = 3 + rbx_random_below(&pool.random, HOST_SERVERS - 2);
	pool.replicas = 2 + rbx_random_below(&pool.random, 2);
	pool.host = rbx_random_below(&pool.random, 2) ?
			    host_make_on_demand(RANDOM_SLABS, pool.replicas, pool.servers) :
			    host_make(RANDOM_SLABS, pool.replicas, pool.servers);
	rbx_random_seed(&pool.host->flow.map->random, seed);
	for (i = 0; i < pool.servers; i++)
		rbx_upkeep_server_domain(&pool.host->upkeep, i, rbx_random_below(&pool.random, 5));
	/* Some lend less from the beginning. */
	for (i = 0; i < pool.servers; i++)
		if (!rbx_random_below(&pool.random, 4))
			pool.host->servers[i].refuse = -ENOSPC;
	return pool;
}

/* All of a server's slabs are wanted back, and it lends no more. */
static void drain(struct host *host, uint32_t server)
{
	uint32_t slab, slot;

	host->servers[server].refuse = -ESHUTDOWN;
	for (slab = 0; slab < RANDOM_SLABS; slab++) {
		const struct rbx_slab *of = host_slab(host, slab);

		for (slot = 0; slot < rbx_slab_shape(of)->slots; slot++) {
			struct rbx_loan loan;

			if (rbx_slab_state(of, slot) != RBX_REPLICA_LIVE ||
			    host_server_of(host, slab, slot) != server)
				continue;
			loan = rbx_replica_loan(rbx_slab_replica(of, slot));
			host_evict(host, server, &loan);
		}
	}
}

static void domain_dies(struct host *host, uint32_t servers, uint32_t server)
{
	uint32_t i;

	for (i = 0; i < servers; i++)
		if (share(host, server, i) && !host->servers[i].down)
			host_server_dies(host, i);
}

static bool is_whole(struct host *host)
{
	struct rbx_census census = host_census(host);

	return census.whole + census.blank == census.slabs;
}

/* Room only shrinks: what is free now was free when a slab was placed. */
static void step(struct pool *pool)
{
	struct host *host = pool->host;
	uint32_t server = rbx_random_below(&pool->random, pool->servers);

	switch (rbx_random_below(&pool->random, 4)) {
	case 0:
		drain(host, server);
		break;
	case 1:
		/* No slab is together, so none is lost. */
		if (!host_census(host).together)
			domain_dies(host, pool->servers, server);
		break;
	default:
		first_write(host, rbx_random_below(&pool->random, RANDOM_SLABS));
	}
	(void)host_settle(host);
	(void)host_settle(host);
}

static void ended_take(struct host *host)
{
	if (host->ended.first)
		(void)rbx_piece_pool_give(&host->flow.pool, &host->ended);
}

/* Returns how many slabs had to be together. */
static uint32_t pool_runs(uint64_t seed)
{
	struct pool pool = draw_pool(seed);
	uint32_t steps, together = 0;

	if (rbx_upkeep_borrow_all(&pool.host->upkeep)) {
		host_free(pool.host);
		return 0;
	}
	assert_well_placed(pool.host, RANDOM_SLABS, pool.servers);
	for (steps = 0; steps < 6 && is_whole(pool.host); steps++) {
		step(&pool);
		ended_take(pool.host);
		assert_int_equal(host_census(pool.host).dead, 0);
		assert_well_placed(pool.host, RANDOM_SLABS, pool.servers);
		together += host_census(pool.host).together;
	}
	host_free(pool.host);
	return together;
}

static void random_pools_are_spread_while_there_is_a_choice(void **state)
{
	uint32_t together = 0;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 2000; seed++)
		together += pool_runs(seed);
	assert_in_range(together, 1000, 40000);
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
		cmocka_unit_test(random_pools_are_spread_while_there_is_a_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
