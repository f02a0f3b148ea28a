/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * turns.c - the order of a round.
 *
 * wanted_count is raised by each who wants a round. Who raises it from zero
 * makes it; the others return at once. At the end the maker takes off what was
 * wanted when the round began: where more has been added since, it makes
 * another. So whatever was changed before rbx_round_begin() is seen by a round
 * that begins after it.
 *
 * A round ends when a lap has met nobody who used up a turn, and at the latest
 * after RBX_ROUND_VISITS_MAX visits: whoever still waits then has somebody in
 * flight before it, whose completion begins the next round.
 */
#include "core/turns.h"

static void start(struct rbx_turns *turns, struct rbx_round *round)
{
	*round = (struct rbx_round){
		.wanted_count = RBX_LOAD_ORDERED(&turns->wanted_count),
		.slot = turns->next_slot,
	};
}

bool rbx_round_begin(struct rbx_turns *turns, struct rbx_round *round)
{
	/* Pairs with park() in channel.c: who parks is counted first and looks
	 * at the cause afterwards; we changed the cause first. */
	if (RBX_LOAD_ORDERED(&turns->parked_count) == 0 ||
	    RBX_FETCH_ADD(&turns->wanted_count, 1) != 0)
		return false;
	start(turns, round);
	return true;
}

/* The first slot below end, from one on, whose channel is parked; end: none. */
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
		return false; /* a lap, and nobody is parked any more */
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

/* Who comes from here on finds that none is made, and makes it. Who came before relies
 * on the one that the caller has somebody make. */
void rbx_round_leave(struct rbx_turns *turns)
{
	RBX_EXCHANGE(&turns->wanted_count, 0);
}
