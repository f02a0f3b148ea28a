/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_spare.c - gives records to slabs and takes them back, and moves replicas into frames,
 * see slab_spare.h.
 *
 * Only the upkeep thread empties and fills slots, so only it moves replicas. Between two of
 * its steps an empty slot stays empty and its frame unused, and a used slot stays used. But a
 * replica may be lost meanwhile, and a rebuild may begin.
 *
 * The locks of the slab and of the index are never held together. So a replica that moves is
 * in the index under its old place, or its new one, or both. Both are of one slab, and the
 * words of the replica are the same in both: an eviction finds it at any time.
 */
#include "core/slab_spare.h"

#include "core/extents.h"
#include "core/loan_index.h"
#include "core/slab_rebuild.h"

/* ---- Records ----------------------------------------------------------------------*/

static struct rbx_slab_record **record_link(const struct rbx_slab *slab)
{
	struct rbx_slab_record **link = &rbx_slab_group(slab)->records;
	uint32_t index = rbx_slab_index(slab);

	/* Bounded by the records: it is in the chain. */
	RBX_ASSERT(slab->has_record);
	while ((*link)->slab_index != index)
		link = &(*link)->next;
	return link;
}

struct rbx_slab_record *rbx_slab_record(const struct rbx_slab *slab)
{
	return slab->has_record ? *record_link(slab) : NULL;
}

static struct rbx_doubts *doubts_of(const struct rbx_slab_shape *shape,
				    const struct rbx_slab_record *record)
{
	return shape->doubts ? &shape->doubts[record - shape->records->all] : NULL;
}

struct rbx_doubts *rbx_slab_doubts(const struct rbx_slab *slab)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);

	return slab->has_record ? doubts_of(shape, *record_link(slab)) : NULL;
}

/* Replicas that were found to differ while there was no record: they are copied whole, but for what
 * is known to be equal. */
static void targets_join(struct rbx_slab *slab, struct rbx_slab_record *record)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_REBUILDING)
			record->stands_in_mask |= (uint8_t)(1u << slot);
	if (record->stands_in_mask) {
		record->again_end = rbx_slab_cells(rbx_slab_shape(slab));
		if (rbx_slab_shape(slab)->is_guarded)
			record->copy_extents = rbx_extents_unequal(slab);
	}
	rbx_slab_returned_join(slab, record);
}

static bool record_give(struct rbx_slab *slab, uint32_t kept_count)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);
	struct rbx_slab_group *group = rbx_slab_group(slab);
	struct rbx_slab_record *record;

	if (slab->has_record)
		return true;
	record = rbx_slab_records_take(shape->records, kept_count);
	if (!record)
		return false;
	if (shape->doubts)
		doubts_of(shape, record)->count = 0;
	record->slab_index = rbx_slab_index(slab);
	record->next = group->records;
	group->records = record;
	targets_join(slab, record);
	slab->has_record = true;
	return true;
}

bool rbx_slab_record_give(struct rbx_slab *slab)
{
	return record_give(slab, 0);
}

bool rbx_slab_record_give_at_once(struct rbx_slab *slab)
{
	return record_give(slab, RBX_SLAB_RECORDS_KEPT);
}

static struct rbx_slab_record *record_leave(struct rbx_slab *slab)
{
	struct rbx_slab_record **link = record_link(slab);
	struct rbx_slab_record *record = *link;

	*link = record->next;
	slab->has_record = false;
	return record;
}

/* ---- Slots and frames -------------------------------------------------------------*/

uint32_t rbx_slab_spare_slot(const struct rbx_slab *slab)
{
	return slab->swapped ? slab->swapped - 1u :
			       rbx_slab_shape(slab)->replicas;
}

/* The frame of a slot that is not the spare one. */
static uint32_t frame_of(const struct rbx_slab *slab, uint32_t slot)
{
	return slot == rbx_slab_shape(slab)->replicas ? slab->swapped - 1u :
							slot;
}

struct rbx_replica *rbx_slab_replica_moved(const struct rbx_slab *slab,
					   uint32_t slot)
{
	if (slot == rbx_slab_spare_slot(slab))
		return &rbx_slab_record(slab)->spare;
	return rbx_slab_frame(slab, frame_of(slab, slot));
}

/* ---- Numbers ----------------------------------------------------------------------*/

static uint32_t frame_number(const struct rbx_slab *slab, uint32_t frame)
{
	return RBX_SLAB_RECORDS +
	       rbx_slab_index(slab) * rbx_slab_shape(slab)->replicas + frame;
}

uint32_t rbx_replica_number(const struct rbx_slab *slab, uint32_t slot)
{
	if (slot != rbx_slab_spare_slot(slab))
		return frame_number(slab, frame_of(slab, slot));
	return (uint32_t)(rbx_slab_record(slab) -
			  rbx_slab_shape(slab)->records->all);
}

uint32_t rbx_replica_slot(const struct rbx_slab *slab, uint32_t number)
{
	uint32_t spare = rbx_slab_spare_slot(slab);
	uint32_t replicas = rbx_slab_shape(slab)->replicas;
	uint32_t frame;

	if (number < RBX_SLAB_RECORDS)
		return spare;
	frame = (number - RBX_SLAB_RECORDS) % replicas;
	return frame == spare ? replicas : frame;
}

struct rbx_replica *rbx_replica_numbered(const struct rbx_slab_shape *shape,
					 uint32_t number)
{
	if (number < RBX_SLAB_RECORDS)
		return &shape->records->all[number].spare;
	number -= RBX_SLAB_RECORDS;
	return rbx_slab_frame(rbx_slab_at(shape, number / shape->replicas),
			      number % shape->replicas);
}

uint32_t rbx_replica_slab(const struct rbx_slab_shape *shape, uint32_t number)
{
	if (number < RBX_SLAB_RECORDS)
		return shape->records->all[number].slab_index;
	return (number - RBX_SLAB_RECORDS) / shape->replicas;
}

/* ---- Moving replicas into frames ---------------------------------------------- */

static bool is_empty(const struct rbx_slab *slab, uint32_t slot)
{
	return rbx_slab_state(slab, slot) == RBX_REPLICA_EMPTY;
}

/* Whether no rebuild is under way, or about to begin. */
static bool is_idle(const struct rbx_slab *slab)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_BORROWING ||
		    rbx_slab_is_unlabelling(slab, slot))
			return false;
	return !rbx_slab_targets(slab) && !rbx_slab_copies_count(slab);
}

/* An empty slot: the spare one, if it is empty, or one with a frame; or -1. */
static int find_empty(const struct rbx_slab *slab)
{
	uint32_t slot, spare = rbx_slab_spare_slot(slab);

	if (is_empty(slab, spare))
		return (int)spare;
	/* A replica in another slot's frame moves to its own, if possible. */
	for (slot = rbx_slab_shape(slab)->slots; slot-- > 0;)
		if (is_empty(slab, slot))
			return (int)slot;
	return -1;
}

/* Whether a readable slab keeps its record because a replica may have data that the checksums
 * do not say. Most records are not kept for that, because it may be for ever. */
static bool keeps_doubts(const struct rbx_slab *slab)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	return doubts && slab->read_mask && rbx_doubts_are_later(doubts) &&
	       rbx_slab_records_free(rbx_slab_shape(slab)->records) >=
		       RBX_SLAB_RECORDS - RBX_SLAB_RECORDS_DOUBTED;
}

bool rbx_slab_may_return_record(const struct rbx_slab *slab)
{
	return slab->has_record && is_idle(slab) && find_empty(slab) >= 0 &&
	       !keeps_doubts(slab);
}

/* Moves the replica of the last slot from a frame into that of an empty slot, because the
 * frame's own replica is to be moved in. No other thread writes the frame of an empty slot. */
static void frame_clear(struct rbx_slab *slab, struct rbx_loan_index *loans,
			uint32_t frame, uint32_t empty)
{
	const struct rbx_replica *from = rbx_slab_frame(slab, frame);
	struct rbx_replica *to = rbx_slab_frame(slab, empty);
	struct rbx_loan loan = rbx_replica_loan(from);

	rbx_replica_set_server(to, rbx_replica_server(from));
	rbx_replica_set_loan(to, &loan);
	rbx_loan_index_add(loans, frame_number(slab, empty));
	rbx_loan_index_remove(loans, frame_number(slab, frame));
}

/* In one step: the spare slot has a frame now, and the empty one has none. */
static void switch_over(struct rbx_slab *slab, uint32_t frame, uint32_t empty)
{
	uint32_t replicas = rbx_slab_shape(slab)->replicas;

	if (frame != empty && empty != replicas)
		rbx_replica_take_flights(rbx_slab_frame(slab, empty),
					 rbx_slab_frame(slab, frame));
	*rbx_slab_frame(slab, frame) = rbx_slab_record(slab)->spare;
	slab->swapped = empty == replicas ? 0 : empty + 1;
}

/* The replica of the spare slot moves into a frame: its own, if it has one. */
static void spare_move(struct rbx_slab *slab, struct rbx_loan_index *loans,
		       uint32_t spare, uint32_t empty)
{
	uint32_t replicas = rbx_slab_shape(slab)->replicas;
	uint32_t frame = spare == replicas ? empty : spare;
	uint32_t from;

	if (frame != empty && empty != replicas)
		frame_clear(slab, loans, frame, empty);
	rbx_slab_lock(slab);
	from = rbx_replica_number(slab, spare);
	switch_over(slab, frame, empty);
	rbx_slab_unlock(slab);
	rbx_loan_index_add(loans, frame_number(slab, frame));
	rbx_loan_index_remove(loans, from);
}

void rbx_slab_return_record(struct rbx_slab *slab, struct rbx_loan_index *loans)
{
	struct rbx_slab_record *record = NULL;
	uint32_t spare;
	int empty;

	rbx_slab_lock(slab);
	empty = rbx_slab_may_return_record(slab) ? find_empty(slab) : -1;
	spare = rbx_slab_spare_slot(slab);
	rbx_slab_unlock(slab);
	if (empty < 0)
		return;
	if ((uint32_t)empty != spare)
		spare_move(slab, loans, spare, (uint32_t)empty);
	/* A rebuild that began meanwhile keeps the record, and so does a write that failed. */
	rbx_slab_lock(slab);
	if (is_idle(slab) && !keeps_doubts(slab))
		record = record_leave(slab);
	rbx_slab_unlock(slab);
	if (record)
		rbx_slab_records_put(rbx_slab_shape(slab)->records, record);
}
