/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * turns.c - the order of a round.
 *
 * Each thread that wants a round raises wanted_count. The thread that raises it from zero
 * makes the round; the others return at once. At the end the maker subtracts what was wanted
 * when the round began. If more was added since, it makes another. So whatever was changed
 * before rbx_round_begin() is seen by a round that begins after it.
 *
 * A round ends when a lap has found no channel that used up its turn, and at the latest after
 * RBX_ROUND_VISITS_MAX visits. A channel that still waits then has something in flight before
 * it, whose completion begins the next round.
 */
#include "core/turns.h"

static void start(struct rbx_turns *turns, struct rbx_round *round)
{
	*round = (struct rbx_round){
		.wanted_count = RBX_LOAD_ORDERED(&turns->wanted_count),
		.slot = turns->next_slot,
	};
}

bool rbx_round_want(struct rbx_turns *turns, struct rbx_round *round)
{
	if (RBX_FETCH_ADD(&turns->wanted_count, 1) != 0)
		return false;
	start(turns, round);
	return true;
}

/* The first slot with a parked channel, from one on and below end; end: none. */
static uint32_t next_parked(const struct rbx_turns *turns, uint32_t slot,
			    uint32_t end)
{
	while (slot < end) {
		/* Pairs with park() in channel.c, as the count does. */
		uint64_t parked =
			RBX_LOAD_ORDERED(&turns->parked_slots[slot / 64]) >>
			slot % 64;

		if (parked)
			return RBX_MIN(end, slot + (uint32_t)__builtin_ctzll(
							   parked));
		slot += 64 - slot % 64;
	}
	return end;
}

bool rbx_round_slot(struct rbx_turns *turns, struct rbx_round *round,
		    uint32_t slot_count, uint32_t *slot)
{
	uint32_t first, passed_count;

	if (round->quiet_count >= slot_count ||
	    round->visits_count == RBX_ROUND_VISITS_MAX)
		return false;
	first = round->slot % slot_count;
	*slot = next_parked(turns, first, slot_count);
	passed_count = *slot - first;
	if (*slot == slot_count) {
		*slot = next_parked(turns, 0, first);
		passed_count += *slot;
	}
	round->quiet_count += passed_count + 1;
	if (round->quiet_count > slot_count)
		return false; /* a lap is over, and no channel is parked any more */
	round->visits_count++;
	round->slot = (*slot + 1) % slot_count;
	if (!round->is_held)
		turns->next_slot = round->slot;
	return true;
}

void rbx_round_visited(struct rbx_turns *turns, struct rbx_round *round,
		       uint32_t slot, enum rbx_parked parked)
{
	if (parked == RBX_PARKED_TURN && !round->is_held)
		round->quiet_count = 0;
	if (parked != RBX_PARKED_CREDIT || round->is_held)
		return;
	round->is_held = true;
	turns->next_slot = slot;
}

bool rbx_round_end(struct rbx_turns *turns, struct rbx_round *round)
{
	uint32_t wanted = round->wanted_count;

	if (RBX_FETCH_ADD(&turns->wanted_count, -wanted) == wanted)
		return true;
	start(turns, round);
	return false;
}

/* A thread that comes from here on finds that no round is being made, and makes it. Threads
 * that came before rely on the round that the caller has to arrange. */
void rbx_round_leave(struct rbx_turns *turns)
{
	RBX_EXCHANGE(&turns->wanted_count, 0);
}
