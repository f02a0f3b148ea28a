/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * turns.h - the order in which channels take credit of a shared window.
 *
 * The window belongs to the device, and its peers share it. Without an order, the channel
 * that looks first would take all. So channels take turns, and a turn is measured in bytes
 * (deficit round robin). A channel that waits for credit may take RBX_TURN_BYTES; then the
 * next channel has its turn. What it could not use because its next work request was larger
 * is added to its next turn. So large and small requests get the same bytes, and a channel
 * that asks for less than its share gets all it asks for.
 *
 * Four rules:
 * - No channel overtakes those that wait. A combiner that finds channels waiting, and
 *   has no turn, parks and waits too.
 * - If none waits there are no turns: a channel takes what it needs.
 * - A channel that has the turn and finds the window full keeps it: the next credit is
 *   its own. So small work requests do not starve a large one.
 * - A channel that waits for something of its own, such as a full ring, neither waits for
 *   a turn nor has one: it does not delay others, and asks for a turn when it can go on.
 *
 * A thread that has completed something gives out turns in a round. The round begins with the
 * channel whose turn it is, and goes on until one of them waits for credit or none waits. One
 * thread at a time makes it. If others come meanwhile they leave a note, and the round is
 * made again. After RBX_ROUNDS_MAX rounds the next poller goes on.
 *
 * No channel is left waiting: see channel.c.
 */
#ifndef RBX_TURNS_H
#define RBX_TURNS_H

#include "core/limits.h"
#include "core/port.h"

/* What a channel is parked for. */
enum rbx_parked {
	RBX_PARKED_NOT,
	RBX_PARKED_OTHER, /* a ring, staging memory, a fence, a connection */
	RBX_PARKED_TURN, /* others wait, and it is not its turn */
	RBX_PARKED_CREDIT, /* the window is full */
};

struct rbx_turns {
	uint32_t parked_count; /* atomic: channels that are parked */
	uint32_t waiting_count; /* atomic: those of them that wait for a turn or for credit */
	uint32_t wanted_count; /* atomic: threads that wanted a round; 0: none is made */
	uint32_t next_slot; /* whose turn it is; used by the thread that makes the round */
	/* atomic: a bit for each slot whose channel is parked, so that a round costs only
	 * what there is to do */
	uint64_t parked_slots[RBX_CHANNELS_MAX / 64];
};

/* A round under way, of one thread. */
struct rbx_round {
	uint32_t wanted_count; /* what was wanted when it began */
	uint32_t slot; /* to be visited next */
	uint32_t visits_count;
	uint32_t quiet_count; /* slots passed since a channel used up its turn */
	bool is_held; /* a channel waits for credit */
};

/* Whether it waits for credit or a turn. */
static inline bool rbx_parked_waits(enum rbx_parked parked)
{
	return parked == RBX_PARKED_TURN || parked == RBX_PARKED_CREDIT;
}

/*
 * A channel parks, and is unparked. park() comes before the parking thread gives up the role;
 * unpark() comes after the unparking thread has taken it. So these calls alternate, and
 * adding a bit sets it.
 */
static inline void rbx_turns_park(struct rbx_turns *turns, uint32_t slot)
{
	RBX_FETCH_ADD(&turns->parked_count, 1);
	RBX_FETCH_ADD(&turns->parked_slots[slot / 64], (uint64_t)1 << slot % 64);
}

static inline void rbx_turns_unpark(struct rbx_turns *turns, uint32_t slot)
{
	RBX_FETCH_ADD(&turns->parked_slots[slot / 64],
		      -((uint64_t)1 << slot % 64));
	RBX_FETCH_ADD(&turns->parked_count, (uint32_t)-1);
}

/* If a channel is parked. */
bool rbx_round_want(struct rbx_turns *turns, struct rbx_round *round);

/* Any thread. True: the caller has to make a round. False: no channel is parked, or the
 * thread that makes a round will make another. */
static inline bool rbx_round_begin(struct rbx_turns *turns,
				   struct rbx_round *round)
{
	/* Pairs with park() in channel.c: a parking channel is counted first and checks the
	 * cause afterwards; we changed the cause first. */
	return RBX_LOAD_ORDERED(&turns->parked_count) != 0 &&
	       rbx_round_want(turns, round);
}

/*
 * Which of slot_count channels to visit next, of those that are parked; false: the round is
 * over. A visited channel is unparked and combines. After is_held, channels that wait for
 * credit or a turn stay parked.
 */
bool rbx_round_slot(struct rbx_turns *turns, struct rbx_round *round,
		    uint32_t slot_count, uint32_t *slot);

/* After the channel of a slot has combined: parked says what it is parked for now. */
void rbx_round_visited(struct rbx_turns *turns, struct rbx_round *round,
		       uint32_t slot, enum rbx_parked parked);

/* True: the caller is done. False: another round is wanted, and has begun. */
bool rbx_round_end(struct rbx_turns *turns, struct rbx_round *round);

/* Leaves a round that has begun: another thread has to make one soon. */
void rbx_round_leave(struct rbx_turns *turns);

#endif
