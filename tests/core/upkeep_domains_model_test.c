/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_domains_model_test.c - random pools, whose servers fill, drain and die, beside a judge: no
 * two replicas of a slab are in one failure domain while there is a choice.
 */
#include "tests/core/domains.h"

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
		cmocka_unit_test(random_pools_are_spread_while_there_is_a_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
