/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * placement.h - which server gets the next slab: the power of two choices.
 *
 * Of two random servers the one with more free memory is taken. That keeps the
 * servers nearly as even as asking all of them would, while many clients that
 * place at the same moment do not all run to the one server that is emptiest.
 */
#ifndef RBX_PLACEMENT_H
#define RBX_PLACEMENT_H

#include "core/limits.h"
#include "core/random.h"

RBX_STATIC_ASSERT(RBX_SERVERS_MAX <= 64, "a set of servers is one word");

/*
 * rbx_placement_choose() - chooses a server.
 * @free_bytes: of each server, as last heard; may be out of date.
 * @eligible: bit s set: server s may be chosen.
 *
 * Returns its index, or -ENOSPC where no server is eligible.
 */
int rbx_placement_choose(const uint64_t free_bytes[RBX_SERVERS_MAX],
			 uint64_t eligible, struct rbx_random *random);

/*
 * rbx_placement_fits() - whether servers have room for so many slabs, each replica
 * of a slab on another server.
 * @free_slabs: what each of the servers can lend.
 *
 * A server takes no more than one replica of each slab. That is all that can be in
 * the way: dealt out like cards, server by server, the replicas of a slab do not
 * meet.
 */
bool rbx_placement_fits(const uint64_t free_slabs[RBX_SERVERS_MAX],
			uint32_t server_count, uint32_t slab_count,
			uint32_t replicas);

#endif
