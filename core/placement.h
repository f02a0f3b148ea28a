/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * placement.h - chooses the server of the next slab, by the power of two choices.
 *
 * Of two random servers the one with more free memory is taken. That keeps the servers nearly
 * as even as comparing all of them would. Many clients that place at the same moment do not
 * all choose the one emptiest server. And only two servers are looked at, however many there
 * are.
 */
#ifndef RBX_PLACEMENT_H
#define RBX_PLACEMENT_H

#include "core/random.h"
#include "core/server_set.h"

/*
 * rbx_placement_draw() - draws the candidates.
 * @up: servers that may be chosen,
 * @not_servers: but not these.
 *
 * Returns how many it has drawn: two that differ, or as many as there are. Of two the
 * caller takes rbx_placement_better().
 */
uint32_t rbx_placement_draw(const struct rbx_server_set *up,
			    const struct rbx_server_set *not_servers,
			    struct rbx_random *random, uint32_t drawn[2]);

/* Which of two to take, by the free memory that each last reported: 0 or 1. */
static inline uint32_t rbx_placement_better(uint64_t first_free_bytes,
					    uint64_t second_free_bytes)
{
	return second_free_bytes > first_free_bytes;
}

/*
 * rbx_placement_room() - how much of its memory is of use to a volume of so many slabs.
 * @free_slabs: what the server can lend.
 *
 * A server takes at most one replica of each slab, and that is the only obstacle. Dealt out
 * like cards, server by server, the replicas of a slab do not meet. So a volume fits if the
 * room of all its servers is at least its number of replicas.
 */
static inline uint64_t rbx_placement_room(uint64_t free_slabs,
					  uint32_t slab_count)
{
	return RBX_MIN(free_slabs, (uint64_t)slab_count);
}

#endif
