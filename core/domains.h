/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * domains.h - which servers of a volume fail together.
 *
 * A failure domain is a rack, a room, or whatever the operator has labelled so: its servers may
 * be lost at once. Two replicas of a slab are put into one domain only if no server of another
 * one lends (asks.c). A domain is a number (server_labels.h); a server without one shares its
 * fate with nobody.
 */
#ifndef RBX_DOMAINS_H
#define RBX_DOMAINS_H

#include "core/server_set.h"

struct rbx_domains {
	bool are_any; /* atomic: some server is or was in one */
	/* By place in the table of servers; 0: of its own. Set before the server counts as up,
	 * so before any replica refers to it. */
	uint64_t of[RBX_SERVERS_MAX];
};

static inline bool rbx_domains_are_any(const struct rbx_domains *domains)
{
	return RBX_LOAD_RELAXED(&domains->are_any);
}

static inline void rbx_domains_set(struct rbx_domains *domains, uint32_t server,
				   uint64_t domain)
{
	RBX_ASSERT(server < RBX_SERVERS_MAX);
	domains->of[server] = domain;
	if (domain)
		RBX_STORE_RELAXED(&domains->are_any, true);
}

static inline bool rbx_domains_are_same(const struct rbx_domains *domains, uint32_t server,
					uint32_t other)
{
	return server == other ||
	       (domains->of[server] && domains->of[server] == domains->of[other]);
}

/*
 * rbx_domains_join() - adds the servers that would be lost together with others.
 * @up: servers to look at; those of them are added
 * @holders: the others: servers that have a replica, so there are few of them
 */
static inline void rbx_domains_join(const struct rbx_domains *domains,
				    const struct rbx_server_set *up,
				    const struct rbx_server_set *holders,
				    struct rbx_server_set *set)
{
	uint32_t i, nth, holder, server, count = rbx_server_set_count(holders);
	uint64_t word;

	for (nth = 0; nth < count; nth++) {
		holder = rbx_server_set_member(holders, nth);
		for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
			for (word = up->words[i]; word; word &= word - 1) {
				server = i * 64 + (uint32_t)__builtin_ctzll(word);
				if (rbx_domains_are_same(domains, server, holder))
					rbx_server_set_add(set, server);
			}
	}
}

#endif
