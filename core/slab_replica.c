/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_replica.c - the life of a slab's replicas: borrowed, live, lost, given back.
 * slab_rebuild.c rebuilds them.
 *
 * A slab has one slot more than replicas, so a replica can be made anew while the old one
 * still serves (eviction) or still has requests under way (loss). slab_spare.h says where the
 * replica of a slot is kept.
 *
 * Normally: a replica is missing (rbx_slab_task() says BORROW), memory is borrowed, the
 * replica is REBUILDING, all cells are copied, and the replica is LIVE. If a server wanted
 * the memory of another one back, that one is now in excess and LOST.
 */
#include "core/slab_away.h"
#include "core/slab_rebuild.h"

void rbx_slab_init(struct rbx_slab *slab)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);

	RBX_ASSERT(shape->replicas >= 1 && shape->replicas <= RBX_REPLICAS_MAX);
	RBX_ASSERT(shape->slots == shape->replicas + 1);
	RBX_ASSERT(shape->cell_shift <= shape->slab_shift);
	rbx_port_fill(slab, 0, rbx_slab_size(shape->replicas));
	slab->blank = shape->on_demand;
	slab->has_checksums = shape->checksums != NULL;
}

#define TO(state) (1u << RBX_REPLICA_##state)

void rbx_slab_move(struct rbx_slab *slab, uint32_t slot,
		   enum rbx_replica_state state)
{
	static const uint8_t legal[] = {
		[RBX_REPLICA_EMPTY] = TO(BORROWING),
		[RBX_REPLICA_BORROWING] = TO(REBUILDING) | TO(LIVE) | TO(EMPTY) |
					 TO(RETURNED),
		[RBX_REPLICA_REBUILDING] = TO(LIVE) | TO(LEAVING) | TO(LOST),
		[RBX_REPLICA_LIVE] = TO(LEAVING) | TO(LOST) | TO(REBUILDING) | TO(AWAY),
		[RBX_REPLICA_LEAVING] = TO(LOST) | TO(REBUILDING) | TO(LIVE),
		[RBX_REPLICA_LOST] = TO(EMPTY),
		[RBX_REPLICA_RETURNED] = TO(REBUILDING) | TO(LOST),
		[RBX_REPLICA_AWAY] = TO(RETURNED) | TO(LIVE) | TO(LOST),
	};

	RBX_ASSERT(slot < rbx_slab_shape(slab)->slots);
	RBX_ASSERT(legal[rbx_slab_state(slab, slot)] >> state & 1);
	slab->states = (uint16_t)((slab->states & ~(7u << 3 * slot)) |
				  (uint32_t)state << 3 * slot);
	slab->attention = true;
	rbx_slab_masks(slab);
	if ((TO(LOST) | TO(LEAVING)) >> state & 1)
		rbx_slab_moves_end(slab);
}

RBX_STATIC_ASSERT(RBX_REPLICA_AWAY == 7, "no other state has these three bits");

void rbx_slab_masks(struct rbx_slab *slab)
{
	uint32_t i;

	slab->read_mask = 0;
	slab->write_mask = 0;
	/* AWAY is the state with all three bits set. */
	slab->has_away = (slab->states & slab->states >> 1 & slab->states >> 2 & 01111) != 0;
	/* Borrowed memory is not used before all of it is there. */
	if (slab->blank || slab->placing)
		return;
	for (i = 0; i < rbx_slab_shape(slab)->slots; i++) {
		uint32_t bit = 1u << rbx_slab_state(slab, i);

		if (bit & (TO(LIVE) | TO(LEAVING) | TO(REBUILDING) | TO(RETURNED)))
			slab->write_mask |= (uint8_t)(1u << i);
		if (bit & (TO(LIVE) | TO(LEAVING)))
			slab->read_mask |= (uint8_t)(1u << i);
	}
}

uint32_t rbx_slab_count(const struct rbx_slab *slab, enum rbx_replica_state state)
{
	uint32_t slot, n = 0;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		n += rbx_slab_state(slab, slot) == state;
	return n;
}

/* A lost replica without parts under way, or -1. */
static int find_drained(const struct rbx_slab *slab)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LOST &&
		    !rbx_replica_flights(rbx_slab_replica(slab, slot)))
			return (int)slot;
	return -1;
}

bool rbx_slab_is_lent(const struct rbx_slab *slab, uint32_t slot)
{
	return (TO(REBUILDING) | TO(LIVE) | TO(LEAVING) | TO(RETURNED) | TO(AWAY)) >>
		       rbx_slab_state(slab, slot) &
	       1;
}

int rbx_slab_slot_of(const struct rbx_slab *slab, uint32_t server)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_is_lent(slab, slot) &&
		    rbx_replica_server(rbx_slab_replica(slab, slot)) == server)
			return (int)slot;
	return -1;
}

void rbx_slab_lose(struct rbx_slab *slab, uint32_t slot)
{
	if (!rbx_slab_is_lent(slab, slot))
		return;
	rbx_slab_move(slab, slot, RBX_REPLICA_LOST);
	if (!slab->read_mask)
		rbx_slab_source_replace(slab);
	if (!slab->read_mask)
		rbx_slab_away_serve(slab);
}

/* Some replicas are being rebuilt. */
static enum rbx_slab_task target_task(const struct rbx_slab *slab)
{
	int slot = rbx_slab_unlabelled(slab);

	if (rbx_slab_copies_count(slab) || slot == -EAGAIN)
		return RBX_TASK_NONE;
	return slot == -ENOENT ? RBX_TASK_COPY : RBX_TASK_LABEL;
}

enum rbx_slab_task rbx_slab_task(const struct rbx_slab *slab)
{
	/* The slab is left alone until the server has answered. */
	if (rbx_slab_find(slab, RBX_REPLICA_BORROWING) >= 0)
		return RBX_TASK_NONE;
	if (find_drained(slab) >= 0)
		return RBX_TASK_GIVE_BACK;
	if (slab->has_pages && !slab->has_holes)
		return RBX_TASK_FREE_PAGES;
	if (rbx_slab_may_return_record(slab))
		return RBX_TASK_RETURN_RECORD;
	/* Not before all parts to the discarded or lost replicas have ended: then none of
	 * them reaches what is borrowed now. */
	if (!slab->read_mask)
		return slab->waits && !rbx_slab_copies_count(slab) &&
				       !rbx_slab_has_memory(slab) ?
			       RBX_TASK_LEND :
			       RBX_TASK_NONE;
	if (rbx_slab_targets(slab))
		return target_task(slab);
	if (rbx_slab_copies_count(slab))
		return RBX_TASK_NONE;
	if (rbx_slab_superfluous(slab) >= 0)
		return RBX_TASK_UNLABEL;
	if (rbx_slab_count(slab, RBX_REPLICA_LIVE) < rbx_slab_shape(slab)->replicas &&
	    rbx_slab_find(slab, RBX_REPLICA_EMPTY) >= 0)
		return RBX_TASK_BORROW;
	return RBX_TASK_NONE;
}

/* The first empty slot with a frame, or else the spare one. */
static uint32_t find_room(const struct rbx_slab *slab)
{
	uint32_t slot, spare = rbx_slab_spare_slot(slab);

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (slot != spare &&
		    rbx_slab_state(slab, slot) == RBX_REPLICA_EMPTY)
			return slot;
	RBX_ASSERT(slab->has_record);
	return spare;
}

uint32_t rbx_slab_borrow(struct rbx_slab *slab, uint32_t server)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);
	uint32_t slot = find_room(slab);

	RBX_ASSERT(server < RBX_SERVERS_MAX);
	RBX_ASSERT(!rbx_slab_has_server(slab, server));
	rbx_replica_set_server(rbx_slab_replica(slab, slot), server);
	if (record) {
		record->unlabel_asked_mask &= (uint8_t)~(1u << slot);
		record->unlabelled_mask &= (uint8_t)~(1u << slot);
	}
	rbx_slab_move(slab, slot, RBX_REPLICA_BORROWING);
	return slot;
}

void rbx_slab_lent(struct rbx_slab *slab, uint32_t slot,
		   const struct rbx_loan *loan, enum rbx_replica_state state)
{
	struct rbx_replica *replica = rbx_slab_replica(slab, slot);

	RBX_ASSERT(!rbx_replica_flights(replica));
	rbx_replica_set_loan(replica, loan);
	if (state == RBX_REPLICA_REBUILDING)
		rbx_slab_target_join(slab, slot);
	else
		rbx_slab_move(slab, slot, state);
}

/* A copy under way ends with its target. */
void rbx_slab_discard(struct rbx_slab *slab)
{
	uint32_t slot;

	RBX_ASSERT(rbx_slab_shape(slab)->on_demand);
	rbx_slab_away_lose(slab);
	/* Memory borrowed for a first write that waits is kept: it is still empty. */
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (slab->write_mask >> slot & 1)
			rbx_slab_lose(slab, slot);
	slab->blank = true;
	slab->placing = false;
	slab->has_holes = false;
	slab->attention = true;
}

void rbx_slab_refused(struct rbx_slab *slab, uint32_t slot)
{
	rbx_slab_move(slab, slot, RBX_REPLICA_EMPTY);
}

uint32_t rbx_slab_servers(const struct rbx_slab *slab,
			  struct rbx_server_set *servers)
{
	uint32_t slot, n = 0;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_EMPTY)
			continue;
		rbx_server_set_add(servers,
				   rbx_replica_server(rbx_slab_replica(slab, slot)));
		n++;
	}
	return n;
}

bool rbx_slab_has_server(const struct rbx_slab *slab, uint32_t server)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) != RBX_REPLICA_EMPTY &&
		    rbx_replica_server(rbx_slab_replica(slab, slot)) == server)
			return true;
	return false;
}

void rbx_slab_holders(const struct rbx_slab *slab, struct rbx_server_set *servers)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if ((TO(BORROWING) | TO(REBUILDING) | TO(LIVE) | TO(RETURNED)) >>
			    rbx_slab_state(slab, slot) & 1)
			rbx_server_set_add(servers,
					   rbx_replica_server(rbx_slab_replica(slab, slot)));
}

bool rbx_slab_is_together(const struct rbx_slab *slab)
{
	const struct rbx_domains *domains = rbx_slab_shape(slab)->domains;
	uint32_t slot, other, servers[RBX_SLOTS_MAX], n = 0;

	if (!domains || !rbx_domains_are_any(domains))
		return false;
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		if (rbx_slab_state(slab, slot) != RBX_REPLICA_LIVE)
			continue;
		servers[n] = rbx_replica_server(rbx_slab_replica(slab, slot));
		for (other = 0; other < n; other++)
			if (rbx_domains_are_same(domains, servers[n], servers[other]))
				return true;
		n++;
	}
	return false;
}

bool rbx_slab_has_memory(const struct rbx_slab *slab)
{
	return rbx_slab_count(slab, RBX_REPLICA_EMPTY) < rbx_slab_shape(slab)->slots;
}

bool rbx_slab_server_down(struct rbx_slab *slab, uint32_t server)
{
	bool had = false;
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		if (!rbx_slab_is_lent(slab, slot) ||
		    rbx_replica_server(rbx_slab_replica(slab, slot)) != server)
			continue;
		rbx_slab_lose(slab, slot);
		had = true;
	}
	return had;
}

/* It leaves already, now for a server that waits for it. */
static void is_wanted_back(struct rbx_slab *slab, uint32_t slot)
{
	if (slab->has_record)
		rbx_slab_record(slab)->moves_mask &= (uint8_t)~(1u << slot);
}

/* It is written to, or is AWAY. */
static bool is_used(const struct rbx_slab *slab, uint32_t slot)
{
	return slab->write_mask >> slot & 1 || rbx_slab_state(slab, slot) == RBX_REPLICA_AWAY;
}

bool rbx_slab_evict(struct rbx_slab *slab, uint32_t server, uint64_t slab_id,
		    uint64_t epoch)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		if (!is_used(slab, slot) || !rbx_replica_is(rbx_slab_replica(slab, slot), server,
							    slab_id, epoch))
			continue;
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE)
			rbx_slab_move(slab, slot, RBX_REPLICA_LEAVING);
		else if (rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING)
			is_wanted_back(slab, slot);
		else if (rbx_slab_stands_in(slab, slot) || rbx_slab_may_be_labelled(slab, slot))
			return false; /* it will be LIVE soon, and asked for again */
		else
			rbx_slab_lose(slab, slot);
		return true;
	}
	return false;
}

bool rbx_slab_leaving(const struct rbx_slab *slab, uint32_t *server,
		      struct rbx_loan *loan)
{
	int slot = rbx_slab_find(slab, RBX_REPLICA_LEAVING);
	const struct rbx_replica *replica;

	if (slot < 0)
		return false;
	replica = rbx_slab_replica(slab, (uint32_t)slot);
	*server = rbx_replica_server(replica);
	*loan = rbx_replica_loan(replica);
	return true;
}

void rbx_slab_revoked(struct rbx_slab *slab, uint32_t server,
		      const struct rbx_loan *loan)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (is_used(slab, slot) && rbx_replica_is(rbx_slab_replica(slab, slot), server,
							  loan->slab_id, loan->epoch))
			rbx_slab_lose(slab, slot);
}

void rbx_slab_abandon(struct rbx_slab *slab)
{
	uint32_t slot;

	RBX_ASSERT(rbx_slab_find(slab, RBX_REPLICA_BORROWING) < 0);
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		rbx_slab_lose(slab, slot);
}

uint32_t rbx_slab_drained_server(const struct rbx_slab *slab)
{
	int slot = find_drained(slab);

	RBX_ASSERT(slot >= 0);
	return rbx_replica_server(rbx_slab_replica(slab, (uint32_t)slot));
}

uint32_t rbx_slab_give_back(struct rbx_slab *slab, uint32_t *server,
			    struct rbx_loan *loan)
{
	int slot = find_drained(slab);
	const struct rbx_replica *replica;

	RBX_ASSERT(slot >= 0);
	replica = rbx_slab_replica(slab, (uint32_t)slot);
	*server = rbx_replica_server(replica);
	*loan = rbx_replica_loan(replica);
	rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_EMPTY);
	return (uint32_t)slot;
}

enum rbx_slab_health rbx_slab_health(const struct rbx_slab *slab)
{
	if (slab->blank)
		return RBX_SLAB_BLANK;
	if (!slab->read_mask)
		return RBX_SLAB_DEAD;
	/* One of those that leave may be a target as well (slab_leaving.c). */
	if (rbx_slab_targets(slab))
		return RBX_SLAB_REBUILDING;
	return rbx_slab_count(slab, RBX_REPLICA_LIVE) == rbx_slab_shape(slab)->replicas ?
		       RBX_SLAB_WHOLE :
		       RBX_SLAB_LACKING;
}
