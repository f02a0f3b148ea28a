/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_replica.c - the life of a slab's replicas: lent, rebuilt, live, lost,
 * given back.
 *
 * A slab has one slot more than replicas, so that a copy can be made anew while
 * the old one still serves (eviction) or still has requests under way (loss).
 *
 * Normally: a lack is seen (rbx_slab_task() says BORROW), memory is borrowed,
 * the replica is REBUILDING, copies go over all cells, the replica is LIVE, and
 * if a server wanted its memory back, that replica is now in excess and LOST.
 *
 * When the target fails it is lost like any other, and the next look sees the
 * lack again. When the last source fails the target is lost with it, and the next
 * copy ends with -EIO. The slab is dead then: when all of it was given back and a
 * write waits, it is placed anew, as a slab is that was never written.
 *
 * There is one rebuild of a slab at a time, but it may have several targets: after
 * a write that failed for a fault of this machine, replicas that are there may
 * differ in its cell. They join the rebuild, or it is one for them; what is copied
 * goes to all targets. When the last source is lost meanwhile, one of them that was
 * there takes its place at once: what they may differ in is what failed writes left,
 * and there is nobody left to differ from.
 *
 * Left out: skipping cells that were never written.
 */
#include "core/slab.h"

#include "core/status.h"

void rbx_slab_init(struct rbx_slab *slab, const struct rbx_slab_shape *shape,
		   uint32_t index)
{
	RBX_ASSERT(shape->replicas >= 1 && shape->replicas <= RBX_REPLICAS_MAX);
	RBX_ASSERT(shape->slots == shape->replicas + 1);
	RBX_ASSERT(shape->cell_shift <= shape->slab_shift);
	rbx_port_fill(slab, 0, rbx_slab_size(shape->slots));
	slab->shape = shape;
	slab->index = index;
	slab->blank = shape->on_demand;
	slab->has_checksums = shape->checksums != NULL;
}

#define TO(state) (1u << RBX_REPLICA_##state)

void rbx_slab_move(struct rbx_slab *slab, uint32_t slot,
		   enum rbx_replica_state state)
{
	static const uint8_t legal[] = {
		[RBX_REPLICA_EMPTY] = TO(BORROWING),
		[RBX_REPLICA_BORROWING] = TO(REBUILDING) | TO(LIVE) | TO(EMPTY),
		[RBX_REPLICA_REBUILDING] = TO(LIVE) | TO(LOST),
		[RBX_REPLICA_LIVE] = TO(LEAVING) | TO(LOST) | TO(REBUILDING),
		[RBX_REPLICA_LEAVING] = TO(LOST),
		[RBX_REPLICA_LOST] = TO(EMPTY),
	};

	RBX_ASSERT(slot < slab->shape->slots);
	RBX_ASSERT(legal[rbx_slab_state(slab, slot)] >> state & 1);
	slab->states = (uint16_t)((slab->states & ~(0xfu << 4 * slot)) |
				  (uint32_t)state << 4 * slot);
	slab->attention = true;
	rbx_slab_masks(slab);
}

void rbx_slab_masks(struct rbx_slab *slab)
{
	uint32_t i;

	slab->read_mask = 0;
	slab->write_mask = 0;
	/* What is lent is not in use before all of it is. */
	if (slab->blank || slab->placing)
		return;
	for (i = 0; i < slab->shape->slots; i++) {
		uint32_t bit = 1u << rbx_slab_state(slab, i);

		if (bit & (TO(LIVE) | TO(LEAVING) | TO(REBUILDING)))
			slab->write_mask |= (uint8_t)(1u << i);
		if (bit & (TO(LIVE) | TO(LEAVING)))
			slab->read_mask |= (uint8_t)(1u << i);
	}
}

/* The first slot in this state, or -1. */
static int find(const struct rbx_slab *slab, enum rbx_replica_state state)
{
	uint32_t slot;

	for (slot = 0; slot < slab->shape->slots; slot++)
		if (rbx_slab_state(slab, slot) == state)
			return (int)slot;
	return -1;
}

static uint32_t count(const struct rbx_slab *slab, enum rbx_replica_state state)
{
	uint32_t slot, n = 0;

	for (slot = 0; slot < slab->shape->slots; slot++)
		n += rbx_slab_state(slab, slot) == state;
	return n;
}

/* A lost replica whose memory nobody uses any more, or -1. */
static int find_drained(const struct rbx_slab *slab)
{
	uint32_t slot;

	for (slot = 0; slot < slab->shape->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LOST &&
		    !slab->replicas[slot].flight_count)
			return (int)slot;
	return -1;
}

uint8_t rbx_slab_targets(const struct rbx_slab *slab)
{
	return slab->write_mask & ~slab->read_mask;
}

static void targets_lose(struct rbx_slab *slab)
{
	uint8_t targets = rbx_slab_targets(slab);

	for (; targets; targets &= targets - 1)
		rbx_slab_move(slab, (uint32_t)__builtin_ctz(targets),
			      RBX_REPLICA_LOST);
}

/* The last source is lost. The other targets get the cells that are still to be copied
 * from the one that stands in for it; those that were went to all of them. What was
 * read from a lost source is read again (slab_way.c). Where none stands in the slab is
 * dead, and they are of no use. */
static void source_replace(struct rbx_slab *slab)
{
	uint8_t targets = rbx_slab_targets(slab);

	for (; targets; targets &= targets - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(targets);

		if (rbx_slab_has_all(slab, slot)) {
			rbx_slab_move(slab, slot, RBX_REPLICA_LIVE);
			return;
		}
	}
	targets_lose(slab);
}

void rbx_slab_lose(struct rbx_slab *slab, uint32_t slot)
{
	if (!(slab->write_mask >> slot & 1))
		return;
	rbx_slab_move(slab, slot, RBX_REPLICA_LOST);
	if (!slab->read_mask)
		source_replace(slab);
}

enum rbx_slab_task rbx_slab_task(const struct rbx_slab *slab)
{
	if (find_drained(slab) >= 0)
		return RBX_TASK_GIVE_BACK;
	if (slab->has_pages && !slab->has_holes)
		return RBX_TASK_FREE_PAGES;
	/* Not before all of what was discarded or lost has ended: then nothing of it
	 * meets what is lent now. */
	if (!slab->read_mask)
		return slab->waits && !slab->copies_count &&
				       !rbx_slab_has_memory(slab) ?
			       RBX_TASK_LEND :
			       RBX_TASK_NONE;
	if (rbx_slab_targets(slab))
		return slab->copies_count ? RBX_TASK_NONE : RBX_TASK_COPY;
	if (slab->copies_count || find(slab, RBX_REPLICA_BORROWING) >= 0)
		return RBX_TASK_NONE;
	if (count(slab, RBX_REPLICA_LIVE) < slab->shape->replicas &&
	    find(slab, RBX_REPLICA_EMPTY) >= 0)
		return RBX_TASK_BORROW;
	return RBX_TASK_NONE;
}

uint32_t rbx_slab_borrow(struct rbx_slab *slab, uint32_t server)
{
	int slot = find(slab, RBX_REPLICA_EMPTY);

	RBX_ASSERT(slot >= 0 && server < RBX_SERVERS_MAX);
	RBX_ASSERT(!rbx_slab_has_server(slab, server));
	slab->replicas[slot].server = server;
	rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_BORROWING);
	return (uint32_t)slot;
}

/* Cells are to be copied when those that are to be now have been. */
static void copies_want(struct rbx_slab *slab, uint32_t first, uint32_t end)
{
	if (slab->again_next == slab->again_end) {
		slab->again_next = first;
		slab->again_end = end;
		return;
	}
	slab->again_next = RBX_MIN(slab->again_next, first);
	slab->again_end = RBX_MAX(slab->again_end, end);
}

static void target_add(struct rbx_slab *slab, uint32_t slot, bool stands_in)
{
	if (!rbx_slab_targets(slab)) {
		slab->copy_next = slab->copy_end = 0;
		slab->again_next = slab->again_end = 0;
		slab->copy_failures_count = 0;
		slab->copy_failed = false;
		slab->rebuild++;
	}
	slab->stands_in_mask &= ~(1u << slot);
	slab->stands_in_mask |= (uint32_t)stands_in << slot;
	rbx_slab_move(slab, slot, RBX_REPLICA_REBUILDING);
}

void rbx_slab_lent(struct rbx_slab *slab, uint32_t slot,
		   const struct rbx_loan *loan, enum rbx_replica_state state)
{
	RBX_ASSERT(!slab->replicas[slot].flight_count);
	rbx_replica_set_loan(&slab->replicas[slot], loan);
	if (state == RBX_REPLICA_REBUILDING)
		target_add(slab, slot, false);
	else
		rbx_slab_move(slab, slot, state);
	/* Discarded or lost meanwhile: there is nothing to copy. */
	if (!slab->read_mask && state == RBX_REPLICA_REBUILDING)
		rbx_slab_move(slab, slot, RBX_REPLICA_LOST);
	else if (state == RBX_REPLICA_REBUILDING)
		copies_want(slab, 0, rbx_slab_cells(slab->shape));
}

void rbx_slab_differ(struct rbx_slab *slab, uint8_t mask, uint32_t cell)
{
	mask &= slab->write_mask;
	RBX_ASSERT(!mask || slab->read_mask & ~mask);
	for (uint8_t left = mask; left; left &= left - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(left);

		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE)
			target_add(slab, slot, true);
		else if (rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING)
			rbx_slab_lose(slab, slot); /* it goes anyway */
	}
	/* What this pass has not come to it will copy as it is now. */
	if (mask & rbx_slab_targets(slab) &&
	    (cell < slab->copy_next || cell >= slab->copy_end))
		copies_want(slab, cell, cell + 1);
}

/* A copy that is being made ends with its target. */
void rbx_slab_discard(struct rbx_slab *slab)
{
	uint32_t slot;

	RBX_ASSERT(slab->shape->on_demand);
	for (slot = 0; slot < slab->shape->slots; slot++)
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

	for (slot = 0; slot < slab->shape->slots; slot++) {
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_EMPTY)
			continue;
		rbx_server_set_add(servers, slab->replicas[slot].server);
		n++;
	}
	return n;
}

bool rbx_slab_has_server(const struct rbx_slab *slab, uint32_t server)
{
	uint32_t slot;

	for (slot = 0; slot < slab->shape->slots; slot++)
		if (rbx_slab_state(slab, slot) != RBX_REPLICA_EMPTY &&
		    slab->replicas[slot].server == server)
			return true;
	return false;
}

bool rbx_slab_has_memory(const struct rbx_slab *slab)
{
	return count(slab, RBX_REPLICA_EMPTY) < slab->shape->slots;
}

bool rbx_slab_server_down(struct rbx_slab *slab, uint32_t server)
{
	bool had = false;
	uint32_t slot;

	for (slot = 0; slot < slab->shape->slots; slot++) {
		if (!(slab->write_mask >> slot & 1) ||
		    slab->replicas[slot].server != server)
			continue;
		rbx_slab_lose(slab, slot);
		had = true;
	}
	return had;
}

bool rbx_slab_evict(struct rbx_slab *slab, uint32_t server, uint64_t slab_id,
		    uint64_t epoch)
{
	uint32_t slot;

	for (slot = 0; slot < slab->shape->slots; slot++) {
		if (!(slab->write_mask >> slot & 1) ||
		    !rbx_replica_is(&slab->replicas[slot], server, slab_id, epoch))
			continue;
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE)
			rbx_slab_move(slab, slot, RBX_REPLICA_LEAVING);
		else if (rbx_slab_state(slab, slot) != RBX_REPLICA_REBUILDING)
			return true; /* it is leaving */
		else if (slab->stands_in_mask >> slot & 1)
			return false; /* soon it is live, and asked for again */
		else
			rbx_slab_lose(slab, slot);
		return true;
	}
	return false;
}

bool rbx_slab_leaving(const struct rbx_slab *slab, uint32_t *server,
		      struct rbx_loan *loan)
{
	int slot = find(slab, RBX_REPLICA_LEAVING);

	if (slot < 0)
		return false;
	*server = slab->replicas[slot].server;
	*loan = rbx_replica_loan(&slab->replicas[slot]);
	return true;
}

void rbx_slab_revoked(struct rbx_slab *slab, uint32_t server,
		      const struct rbx_loan *loan)
{
	uint32_t slot;

	for (slot = 0; slot < slab->shape->slots; slot++) {
		const struct rbx_replica *replica = &slab->replicas[slot];

		if (slab->write_mask >> slot & 1 &&
		    rbx_replica_is(replica, server, loan->slab_id, loan->epoch))
			rbx_slab_lose(slab, slot);
	}
}

void rbx_slab_abandon(struct rbx_slab *slab)
{
	uint32_t slot;

	RBX_ASSERT(find(slab, RBX_REPLICA_BORROWING) < 0);
	for (slot = 0; slot < slab->shape->slots; slot++)
		rbx_slab_lose(slab, slot);
}

uint32_t rbx_slab_give_back(struct rbx_slab *slab, uint32_t *server,
			    struct rbx_loan *loan)
{
	int slot = find_drained(slab);

	RBX_ASSERT(slot >= 0);
	*server = slab->replicas[slot].server;
	*loan = rbx_replica_loan(&slab->replicas[slot]);
	rbx_slab_move(slab, (uint32_t)slot, RBX_REPLICA_EMPTY);
	return (uint32_t)slot;
}

/* Whether there is a cell to copy, which copy_next is then. */
static bool copy_find(struct rbx_slab *slab)
{
	if (!rbx_slab_targets(slab) || slab->copy_failed)
		return false;
	if (slab->copy_next == slab->copy_end) {
		slab->copy_next = slab->again_next;
		slab->copy_end = slab->again_end;
		slab->again_next = slab->again_end = 0;
	}
	return slab->copy_next != slab->copy_end;
}

bool rbx_slab_copy_next(struct rbx_slab *slab, struct rbx_piece *piece)
{
	const struct rbx_slab_shape *shape = slab->shape;

	RBX_ASSERT(piece->kind == RBX_PIECE_COPY);
	if (!copy_find(slab))
		return false;
	piece->slab = slab;
	piece->rebuild = slab->rebuild;
	piece->offset_bytes = slab->copy_next++ << shape->cell_shift;
	piece->length_bytes = 1u << shape->cell_shift;
	slab->copies_count++;
	return true;
}

/* All cells are there. What a server wants back has been replaced if there is
 * one replica more than wanted. */
static void rebuild_succeed(struct rbx_slab *slab)
{
	uint8_t targets = rbx_slab_targets(slab);
	int leaving;

	for (; targets; targets &= targets - 1)
		rbx_slab_move(slab, (uint32_t)__builtin_ctz(targets),
			      RBX_REPLICA_LIVE);
	leaving = find(slab, RBX_REPLICA_LEAVING);
	if (rbx_slab_readable(slab) > slab->shape->replicas) {
		RBX_ASSERT(leaving >= 0);
		rbx_slab_lose(slab, (uint32_t)leaving);
	}
}

/* A cell has not been copied. For a fault of this machine it is tried again, a
 * bounded number of times. */
static void copy_fail(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	uint32_t cell = piece->offset_bytes >> slab->shape->cell_shift;

	if (slab->read_mask &&
	    rbx_status_class(piece->status) == RBX_STATUS_LOCAL &&
	    slab->copy_failures_count++ < RBX_RETRIES_MAX)
		copies_want(slab, cell, cell + 1);
	else
		slab->copy_failed = true;
}

bool rbx_slab_copy_done(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	RBX_ASSERT(piece->state == RBX_PIECE_IDLE && slab->copies_count > 0);
	slab->copies_count--;
	/* One that is left of a rebuild that is over says nothing of those who are
	 * targets now: it was not for them. */
	if (piece->rebuild == slab->rebuild) {
		if (piece->status == 0)
			slab->copy_failures_count = 0;
		else
			copy_fail(slab, piece);
	}
	if (slab->copies_count || copy_find(slab))
		return false;
	if (slab->copy_failed)
		targets_lose(slab);
	else
		rebuild_succeed(slab);
	slab->attention = true;
	return true;
}

enum rbx_slab_health rbx_slab_health(const struct rbx_slab *slab)
{
	if (slab->blank)
		return RBX_SLAB_BLANK;
	if (!slab->read_mask)
		return RBX_SLAB_DEAD;
	if (count(slab, RBX_REPLICA_LIVE) == slab->shape->replicas)
		return RBX_SLAB_WHOLE;
	if (rbx_slab_targets(slab))
		return RBX_SLAB_REBUILDING;
	return RBX_SLAB_LACKING;
}
