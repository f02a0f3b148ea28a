/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_servers.h - what a round does for servers: those that went down, and places that are free
 * again.
 */
#ifndef RBX_UPKEEP_SERVERS_H
#define RBX_UPKEEP_SERVERS_H

#include "core/upkeep_state.h"

/* Places of the table that are or were in use. */
uint32_t rbx_upkeep_servers_count(struct rbx_upkeep *upkeep);
/* Handles the replicas of servers that went down. Returns whether there is more to do, in the
 * next round. */
bool rbx_upkeep_servers_tend(struct rbx_upkeep *upkeep);
/* Handles the replicas of servers that were silent and are back. *more: there is more to do, in the
 * next round. Returns when to look again; UINT64_MAX: never. */
uint64_t rbx_upkeep_servers_return(struct rbx_upkeep *upkeep, bool *more);
/* At the end of the volume: what was lent for servers that were silent. */
void rbx_upkeep_missed_free(struct rbx_upkeep *upkeep);
/* At the end of a round, so nothing is owed to dead servers any more. */
void rbx_upkeep_places_free(struct rbx_upkeep *upkeep);

#endif
