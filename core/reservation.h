/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reservation.h - chooses the servers of all slabs of a volume at once, before any is borrowed.
 *
 * The replicas of a slab go to the servers that have most room left. With one replica at a server
 * this finds a way whenever there is one: a server that has room for as many slabs as are left is
 * chosen for each of them. Failure domains stand against that: a small server in a domain of its
 * own is used up early. So who makes a plan tries it with domains first, and then without.
 */
#ifndef RBX_RESERVATION_H
#define RBX_RESERVATION_H

#include "core/limits.h"
#include "core/port.h"

struct rbx_reservation {
	uint32_t servers_count; /* at most RBX_MEMBERS_MAX */
	uint64_t room[RBX_MEMBERS_MAX]; /* slabs that each of them can lend */
	uint64_t domains[RBX_MEMBERS_MAX]; /* server_labels.h; 0: of its own */
};

/* Whether a server may have a replica besides those that were chosen. */
static inline bool rbx_reservation_may(const struct rbx_reservation *r, uint32_t server,
				       const uint8_t *chosen, uint32_t chosen_count, bool apart)
{
	uint32_t i;

	if (!r->room[server])
		return false;
	for (i = 0; i < chosen_count; i++)
		if (chosen[i] == server ||
		    (apart && r->domains[server] && r->domains[server] == r->domains[chosen[i]]))
			return false;
	return true;
}

/* The server with most room of those that may; servers_count: there is none. */
static inline uint32_t rbx_reservation_best(const struct rbx_reservation *r, const uint8_t *chosen,
					    uint32_t chosen_count, bool apart)
{
	uint32_t i, best = r->servers_count;

	for (i = 0; i < r->servers_count; i++)
		if (rbx_reservation_may(r, i, chosen, chosen_count, apart) &&
		    (best == r->servers_count || r->room[i] > r->room[best]))
			best = i;
	return best;
}

/*
 * rbx_reservation_next() - chooses the servers of the next slab, and takes its room from them.
 * @apart: in different domains, as far as there are any
 * @chosen: receives as many servers as replicas
 *
 * Returns false if there is no room; then the plan has failed.
 */
static inline bool rbx_reservation_next(struct rbx_reservation *r, uint32_t replicas, bool apart,
					uint8_t *chosen)
{
	uint32_t i, server;

	RBX_ASSERT(replicas <= RBX_REPLICAS_MAX && r->servers_count <= RBX_MEMBERS_MAX);
	for (i = 0; i < replicas; i++) {
		server = rbx_reservation_best(r, chosen, i, apart);
		if (server == r->servers_count && apart)
			server = rbx_reservation_best(r, chosen, i, false);
		if (server == r->servers_count)
			return false;
		chosen[i] = (uint8_t)server;
	}
	for (i = 0; i < replicas; i++)
		r->room[chosen[i]]--;
	return true;
}

#endif
