/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * intents.h - has the servers of a named volume note where it is about to be written
 * (core/extents.h), before anything is written there.
 *
 * The upkeep thread makes a round of this. Words are sent in batches: one message to each server,
 * with all words that it has to note. Servers answer side by side, and no thread waits for them. A
 * server that could not be reached is asked again, until it has answered, is OUT, or has FAILED
 * (core/held.h). Then the next batch is made of what has been queued meanwhile.
 *
 * So an extent that is written for the first time costs a round trip, and hundreds that are written
 * at the same time cost a few. Writes to extents that were noted come nowhere near this.
 */
#ifndef RBX_CLIENT_INTENTS_H
#define RBX_CLIENT_INTENTS_H

#include "client/volume.h"
#include "core/extents.h"

/* A server, while a batch is out. */
struct rbx_intents_ask {
	struct rbx_ask ask;
	struct rbx_wire_message message; /* the request, then its answer */
	struct rbx_volume_control *control;
	struct rbx_wire_intents intents; /* that it is to note */
	bool is_wanted; /* it is to be asked, perhaps once more */
	bool is_asked; /* atomic: it was asked, and has not answered */
};

struct rbx_intents_round {
	struct rbx_volume_control *control;
	bool is_under_way;
	struct rbx_intents batch; /* that is out */
	uint64_t again_ns; /* servers that could not be asked are asked again then */
	struct rbx_intents_ask asks[RBX_WIRE_MEMBERS_MAX]; /* by the server's place */
};

/* Zeroed memory. */
void rbx_intents_init(struct rbx_intents_round *round, struct rbx_volume_control *control);

/* By the upkeep thread. Returns when another one is to be made; UINT64_MAX: when it is woken. */
uint64_t rbx_intents_round(struct rbx_intents_round *round, uint64_t now_ns);

/* This server is OUT: what it has noted does not matter. Before its place may have another one. */
static inline void rbx_intents_not_wanted(struct rbx_intents_round *round, uint32_t server)
{
	round->asks[server].is_wanted = false;
}

/* Whether nothing is asked any more of the server that had this place. Any thread. */
static inline bool rbx_intents_is_done_with(const struct rbx_intents_round *round,
					    uint32_t server)
{
	return !RBX_LOAD_ACQUIRE(&round->asks[server].is_asked);
}

#endif
