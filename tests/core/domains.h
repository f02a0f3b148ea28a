/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * domains.h - servers of a scripted host in failure domains, and a judge of where the replicas of
 * its slabs are, by brute force.
 */
#ifndef RBX_TESTS_CORE_DOMAINS_H
#define RBX_TESTS_CORE_DOMAINS_H

#include "tests/core/first_writes.h"

/* Server i is in domain domains[i]; 0: in none. */
static inline void set_domains(struct host *host, const uint64_t *domains, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		rbx_upkeep_server_domain(&host->upkeep, i, domains[i]);
}

static inline uint64_t domain_of(const struct host *host, uint32_t server)
{
	return host->flow.domains.of[server];
}

/* ---- The judge ------------------------------------------------------------------------*/

static inline bool share(const struct host *host, uint32_t server, uint32_t other)
{
	return server == other || (domain_of(host, server) &&
				   domain_of(host, server) == domain_of(host, other));
}

/* The servers of the live replicas. */
static inline uint32_t servers_of(struct host *host, uint32_t slab, uint32_t *servers)
{
	const struct rbx_slab *of = host_slab(host, slab);
	uint32_t slot, count = 0;

	for (slot = 0; slot < rbx_slab_shape(of)->slots; slot++)
		if (rbx_slab_state(of, slot) == RBX_REPLICA_LIVE)
			servers[count++] = host_server_of(host, slab, slot);
	return count;
}

static inline bool is_together(struct host *host, uint32_t slab)
{
	uint32_t servers[RBX_SLOTS_MAX], i, j, count = servers_of(host, slab, servers);

	for (i = 0; i < count; i++)
		for (j = 0; j < i; j++)
			if (share(host, servers[i], servers[j]))
				return true;
	return false;
}

/* Whether a server could have a replica that would be lost together with none of the slab. */
static inline bool is_choice(struct host *host, uint32_t slab, uint32_t server)
{
	uint32_t servers[RBX_SLOTS_MAX], i, count = servers_of(host, slab, servers);
	const struct host_server *of = &host->servers[server];

	for (i = 0; i < count; i++)
		if (share(host, server, servers[i]))
			return false;
	return !of->down && !of->refuse && host_lent_count(host, server) < HOST_AREAS;
}

static inline void assert_well_placed(struct host *host, uint32_t slabs, uint32_t servers)
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

#endif
