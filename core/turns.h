/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * turns.h - whose turn it is to take credit of a window.
 *
 * The window belongs to the device, and its peers share it. Left to chance, who
 * looks first takes all; so they take turns, and a turn is measured in bytes
 * (deficit round robin): a channel that waits for credit may take
 * RBX_TURN_BYTES, what it could not use because its next work request was larger
 * is added to its next turn, and then the next channel has its turn. Large and
 * small requests thus get the same bytes, and who asks for less than its share
 * gets all it asks for.
 *
 * Four rules:
 * - Nobody passes those who wait. A combiner that finds channels waiting, and
 *   has no turn, parks and waits too.
 * - Where nobody waits there are no turns: a channel takes what it likes.
 * - Who has the turn and finds the window full keeps it: the credit that comes
 *   next is its own. So a large work request is not starved by small ones.
 * - Who waits for something of its own, such as a full ring, neither waits for a turn
 *   nor has one: it does not keep others, and asks for a turn when it can go on.
 *
 * Turns are given out in a round, made by whoever has completed something. It
 * begins with the channel whose turn it is, and goes on until one of them waits
 * for credit or nobody waits. One thread at a time makes it; who comes meanwhile
 * leaves word, and it is made once more; after RBX_ROUNDS_MAX by whoever polls next.
 *
 * Nobody is left waiting: see channel.c.
 */
#ifndef RBX_TURNS_H
#define RBX_TURNS_H

#include "core/limits.h"
#include "core/port.h"

/* What a channel is parked for. */
enum rbx_parked {
	RBX_PARKED_NOT,
	RBX_PARKED_OTHER, /* a ring, staging memory, a fence, a connection */
	RBX_PARKED_TURN, /* others wait, and it has no turn */
	RBX_PARKED_CREDIT, /* the window is full */
};

struct rbx_turns {
	uint32_t parked_count; /* atomic: channels that are parked */
	uint32_t waiting_count; /* atomic: of them, for a turn or for credit */
	uint32_t wanted_count; /* atomic: who wanted a round; 0: none is made */
	uint32_t next_slot; /* whose turn it is; of who makes the round */
	/* atomic: a bit for each slot whose channel is parked, so that a round costs what
	 * there is to do and not what might be */
	uint64_t parked_slots[RBX_CHANNELS_MAX / 64];
};

/* A round under way, of one thread. */
struct rbx_round {
	uint32_t wanted_count; /* what was wanted when it began */
	uint32_t slot; /* that is visited next */
	uint32_t visits_count;
	uint32_t quiet_count; /* slots passed since somebody used up a turn */
	bool is_held; /* somebody waits for credit */
};

/* For who waits for credit or a turn; before it is parked, after it is not. */
static inline bool rbx_parked_waits(enum rbx_parked parked)
{
	return parked == RBX_PARKED_TURN || parked == RBX_PARKED_CREDIT;
}

/*
 * A channel is parked, and is not any more. Before who parks it leaves the role, and
 * after who unparks it has taken the role: so these come in turn, and to add a bit sets
 * it.
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

/* Any thread. True: the caller has to make a round. False: nobody is parked, or
 * who makes a round will make another. */
bool rbx_round_begin(struct rbx_turns *turns, struct rbx_round *round);

/*
 * Which of slot_count channels to visit next, of those that are parked; false: the round
 * is over. Who is visited is unparked and combines, except that after is_held channels that
 * wait for credit or a turn stay parked.
 */
bool rbx_round_slot(struct rbx_turns *turns, struct rbx_round *round,
		    uint32_t slot_count, uint32_t *slot);

/* After the channel of a slot has combined: what it is parked for now. */
void rbx_round_visited(struct rbx_turns *turns, struct rbx_round *round,
		       uint32_t slot, enum rbx_parked parked);

/* True: the caller is done. False: another round is wanted, and has begun. */
bool rbx_round_end(struct rbx_turns *turns, struct rbx_round *round);

/* Leaves a round that has begun: somebody has to make another one, and soon. */
void rbx_round_leave(struct rbx_turns *turns);

#endif
