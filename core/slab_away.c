/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* slab_away.c - see slab_away.h. */
#include "core/slab_away.h"

#include "core/slab_rebuild.h"

static uint64_t *word_of(const struct rbx_slab *slab)
{
	return &rbx_slab_shape(slab)->missed[rbx_slab_index(slab)];
}

/*
 * Whether a replica can be AWAY: it is the same as another one that stays, where no write is
 * under way to. While the slab has a record that may not be so, or it is not known (doubts.h).
 */
static bool may_be_away(const struct rbx_slab *slab, uint32_t slot)
{
	return RBX_LOAD_ACQUIRE(&rbx_slab_shape(slab)->missed) && !slab->has_record &&
	       !rbx_slab_targets(slab) &&
	       rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE && rbx_slab_readable(slab) > 1;
}

bool rbx_slab_server_silent(struct rbx_slab *slab, uint32_t server)
{
	int slot = rbx_slab_slot_of(slab, server);

	if (slot < 0 || rbx_slab_state(slab, (uint32_t)slot) == RBX_REPLICA_AWAY)
		return false;
	if (!may_be_away(slab, (uint32_t)slot)) {
		rbx_slab_lose(slab, (uint32_t)slot);
		return true;
	}
	if (!slab->has_away)
		*word_of(slab) = 0;
	rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_AWAY);
	return true;
}

bool rbx_slab_is_away(const struct rbx_slab *slab, uint32_t server)
{
	int slot = slab->has_away ? rbx_slab_slot_of(slab, server) : -1;

	return slot >= 0 && rbx_slab_state(slab, (uint32_t)slot) == RBX_REPLICA_AWAY;
}

/* Replicas that were never complete are given up: to copy what the one that is back has missed is
 * less. */
static void newcomers_lose(struct rbx_slab *slab)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);
	uint32_t slot;

	for (slot = 0; record && slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_REBUILDING &&
		    !((record->stands_in_mask | record->returned_mask) >> slot & 1))
			rbx_slab_lose(slab, slot);
}

int rbx_slab_server_back(struct rbx_slab *slab, uint32_t server, uint64_t *missed)
{
	uint32_t slot;

	if (!rbx_slab_is_away(slab, server))
		return -ENOENT;
	slot = (uint32_t)rbx_slab_slot_of(slab, server);
	/* What is being borrowed would be one too many when it comes; and if it does not, another
	 * server may have been asked already. */
	if (rbx_replica_flights(rbx_slab_replica(slab, slot)) ||
	    rbx_slab_find(slab, RBX_REPLICA_BORROWING) >= 0)
		return -EAGAIN;
	newcomers_lose(slab);
	*missed = *word_of(slab);
	if (!*missed) { /* so it has all that was acknowledged, and may be the last one that has */
		rbx_slab_move(slab, slot, RBX_REPLICA_LIVE);
		return 0;
	}
	rbx_slab_move(slab, slot, RBX_REPLICA_RETURNED);
	if (slab->has_record)
		rbx_slab_returned_join(slab, rbx_slab_record(slab));
	return 0;
}

void rbx_slab_part_lost(struct rbx_slab *slab, uint32_t slot)
{
	if (rbx_slab_state(slab, slot) != RBX_REPLICA_AWAY)
		rbx_slab_lose(slab, slot);
}

void rbx_slab_missed(struct rbx_slab *slab, uint32_t offset_bytes, uint32_t length_bytes)
{
	*word_of(slab) |= rbx_extents_of(offset_bytes, length_bytes,
					 rbx_slab_shape(slab)->slab_shift);
}

uint64_t rbx_slab_missed_take(struct rbx_slab *slab)
{
	uint64_t missed = *word_of(slab);

	/* Others may lack less; but all of it is copied to them. */
	if (!slab->has_away)
		*word_of(slab) = 0;
	return missed;
}

void rbx_slab_away_lose(struct rbx_slab *slab)
{
	int slot;

	while (slab->has_away) { /* each time there is one fewer */
		slot = rbx_slab_find(slab, RBX_REPLICA_AWAY);
		rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_LOST);
	}
}

void rbx_slab_away_serve(struct rbx_slab *slab)
{
	int slot;

	if (slab->has_away && *word_of(slab)) /* what they have is not known to be all */
		rbx_slab_away_lose(slab);
	while (slab->has_away) {
		slot = rbx_slab_find(slab, RBX_REPLICA_AWAY);
		rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_LIVE);
	}
}

void rbx_slab_away_replaced(struct rbx_slab *slab)
{
	int slot;

	/* Those that leave take a slot, too, which the one is to have that takes their place. */
	while (slab->has_away &&
	       rbx_slab_readable(slab) + rbx_slab_count(slab, RBX_REPLICA_AWAY) >
		       rbx_slab_shape(slab)->replicas) {
		slot = rbx_slab_find(slab, RBX_REPLICA_AWAY);
		rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_LOST);
	}
}
