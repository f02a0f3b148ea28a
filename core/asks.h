/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * asks.h - sends requests to servers, each of which is asked one thing at a time, and chooses the
 * server to ask next.
 *
 * A server that takes long is late, and is asked only after others; so is one that has refused. The
 * marks of upkeep_state.h remember that for a while.
 */
#ifndef RBX_ASKS_H
#define RBX_ASKS_H

#include "core/upkeep_state.h"

/* Sends a request to a server that is not busy. Returns the entry, until it is over. */
struct rbx_asked *rbx_asks_send(struct rbx_upkeep *upkeep, uint32_t server,
				enum rbx_call_kind kind,
				const struct rbx_loan *loan, uint64_t label);
/* The server could not be asked: it is asked for the same again in a while. */
void rbx_asks_again(struct rbx_upkeep *upkeep, const struct rbx_asked *asked);
/* Takes an entry that is over off the table. Returns its answer as ops->answer(); -EAGAIN:
 * none is over. *index: where to go on looking. */
int rbx_asks_take(struct rbx_upkeep *upkeep, uint32_t *index,
		  struct rbx_asked *asked, struct rbx_loan *loan);
/* A server to borrow from, not of not_servers, chosen by what it and another one report as
 * free now, whether or not it is busy; or -ENOSPC. */
int rbx_asks_draw(struct rbx_upkeep *upkeep,
		  const struct rbx_server_set *not_servers);
/* Adds the servers that are up and would be lost together with one of the holders, which have
 * replicas of a slab that stay. Returns whether servers have failure domains at all. */
bool rbx_asks_join_domains(struct rbx_upkeep *upkeep, const struct rbx_server_set *holders,
			   struct rbx_server_set *servers);
/* A server that can be asked now, not of not_servers; if possible, one that is not lost together
 * with a holder. -EAGAIN: one that could be asked is busy; -ETIMEDOUT: it has been busy for
 * long; -ENOSPC: there is none. is_patient: rather waits for such a late one. */
int rbx_asks_place(struct rbx_upkeep *upkeep, const struct rbx_server_set *not_servers,
		   const struct rbx_server_set *holders, bool is_patient);
/* The same, but only of those that answer in time and have not refused. */
int rbx_asks_place_well(struct rbx_upkeep *upkeep,
			const struct rbx_server_set *not_servers);
/* Adds the servers that have refused to lend in the time that a first write waits. */
void rbx_asks_join_refused(const struct rbx_upkeep *upkeep,
			   struct rbx_server_set *servers);
/* Whether there is room to ask for all that a slab needs. */
static inline bool rbx_asks_room(const struct rbx_upkeep *upkeep)
{
	return upkeep->asked_count + RBX_REPLICAS_MAX <= RBX_ASKS_MAX;
}
/* The server is asked only after others until then. */
void rbx_asks_avoid(struct rbx_upkeep *upkeep, uint32_t server, uint64_t until_ns);
/* The server is dead: its refusals do not count for the server that gets its place. */
void rbx_asks_forget(struct rbx_upkeep *upkeep, uint32_t server);
/* Checks the time: which requests are late, and which servers need not be avoided any more.
 * Returns when to check again. */
uint64_t rbx_asks_tick(struct rbx_upkeep *upkeep);

#endif
