/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_rebuild.c - the targets of a rebuild: replicas that do not have all data yet, to which
 * the cells of a slab are copied.
 *
 * If the target fails it is lost like any other, and the lack of a replica is seen again. If
 * the last source fails, the target is lost with it, and the next copy ends with -EIO. The
 * slab is dead then. When all of it was given back and a write waits, it is placed anew, like
 * a slab that was never written.
 *
 * There is one rebuild of a slab at a time, but it may have several targets: after a write
 * that failed by a fault of this machine, existing replicas may differ in its cell. They join
 * the rebuild, or it is one for them; each copy goes to all targets. If the last source is
 * lost meanwhile, one of these existing replicas takes its place at once: they differ only in
 * what failed writes left, and no other replica is left to differ from.
 *
 * Replicas of a guarded volume that differ are copied only in the extents that may have been
 * written (extents.h), and so are those that have returned. These take every write from then
 * on, as any target. They lack acknowledged data, so they stand in for none, also without a
 * record. Not done: skipping cells of other volumes that were never written.
 */
#include "core/slab_rebuild.h"

#include "core/extents.h"
#include "core/slab_away.h"
#include "core/status.h"

/* ---- Targets --------------------------------------------------------------*/

uint8_t rbx_slab_targets(const struct rbx_slab *slab)
{
	return slab->write_mask & ~slab->read_mask;
}

/* With one of them another one may be lost (rbx_slab_moves_end()). */
static void targets_lose(struct rbx_slab *slab, uint8_t targets)
{
	for (; targets; targets &= targets - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(targets);

		if (rbx_slab_is_lent(slab, slot))
			rbx_slab_move(slab, slot, RBX_REPLICA_LOST);
	}
}

/*
 * The target has everything. If a server wanted it back it still does, or asks again if that
 * was not noted.
 */
static void target_is_done(struct rbx_slab *slab, uint32_t slot)
{
	const struct rbx_slab_record *record = rbx_slab_record(slab);

	rbx_slab_move(slab, slot,
		      record && record->leaves_mask >> slot & 1 ?
			      RBX_REPLICA_LEAVING :
			      RBX_REPLICA_LIVE);
}

/* It has all that was acknowledged, but the checksums may be of later data. */
static void stand_in(struct rbx_slab *slab, uint32_t slot)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	target_is_done(slab, slot);
	if (doubts)
		rbx_doubts_resolve(doubts, rbx_slab_checksums(slab), slot,
				   rbx_slab_targets(slab));
}

void rbx_slab_source_replace(struct rbx_slab *slab)
{
	uint8_t targets = rbx_slab_targets(slab);

	for (; targets; targets &= targets - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(targets);

		if (rbx_slab_has_all(slab, slot)) {
			stand_in(slab, slot);
			return;
		}
	}
	targets_lose(slab, rbx_slab_targets(slab));
}

bool rbx_slab_stands_in(const struct rbx_slab *slab, uint32_t slot)
{
	const struct rbx_slab_record *record = rbx_slab_record(slab);

	if (rbx_slab_state(slab, slot) != RBX_REPLICA_REBUILDING)
		return false;
	/* A new replica has a record; one that differs may not have got any. */
	return !record || record->stands_in_mask >> slot & 1;
}

uint32_t rbx_slab_copies_count(const struct rbx_slab *slab)
{
	return slab->has_record ? rbx_slab_record(slab)->copies_count : 0;
}

/* More cells are to be copied after those of the present pass. */
static void copies_want(struct rbx_slab_record *record, uint32_t first,
			uint32_t end)
{
	if (record->again_next == record->again_end) {
		record->again_next = first;
		record->again_end = end;
		return;
	}
	record->again_next = RBX_MIN(record->again_next, first);
	record->again_end = RBX_MAX(record->again_end, end);
}

static void rebuild_begin(struct rbx_slab_record *record)
{
	record->copy_next = record->copy_end = 0;
	record->again_next = record->again_end = 0;
	record->copy_extents = 0;
	record->copy_failures_count = 0;
	record->copy_failed = false;
	record->rebuild++;
}

/* Without a record it stands in. */
static void target_add(struct rbx_slab *slab, uint32_t slot, bool stands_in)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);
	bool leaves = rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING;

	RBX_ASSERT(record || stands_in);
	if (doubts)
		rbx_doubts_forget(doubts, slot);
	if (record) {
		if (!rbx_slab_targets(slab))
			rebuild_begin(record);
		record->stands_in_mask &= (uint8_t)~(1u << slot);
		record->stands_in_mask |= (uint8_t)(stands_in << slot);
		record->leaves_mask &= (uint8_t)~(1u << slot);
		record->leaves_mask |= (uint8_t)(leaves << slot);
		record->returned_mask &= (uint8_t)~(1u << slot);
		record->label_asked_mask &= (uint8_t)~(1u << slot);
		record->labelled_mask &= (uint8_t)~(1u << slot);
	}
	rbx_slab_move(slab, slot, RBX_REPLICA_REBUILDING);
}

void rbx_slab_target_join(struct rbx_slab *slab, uint32_t slot)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);

	target_add(slab, slot, false);
	/* Discarded or lost meanwhile: there is nothing to copy. */
	if (!slab->read_mask) {
		rbx_slab_move(slab, slot, RBX_REPLICA_LOST);
		return;
	}
	copies_want(record, 0, rbx_slab_cells(rbx_slab_shape(slab)));
	record->copy_extents = 0;
}

uint8_t rbx_slab_returned(const struct rbx_slab *slab)
{
	uint8_t mask = 0;
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		mask |= (uint8_t)((rbx_slab_state(slab, slot) == RBX_REPLICA_RETURNED) << slot);
	return mask;
}

void rbx_slab_returned_join(struct rbx_slab *slab, struct rbx_slab_record *record)
{
	uint8_t mask = rbx_slab_returned(slab), left = mask;
	bool are_others = rbx_slab_targets(slab) & ~mask;
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);
	uint64_t stale;

	if (!mask)
		return;
	stale = rbx_slab_shape(slab)->is_guarded ? rbx_extents_stale_take(slab) :
						   rbx_slab_missed_take(slab);
	if (!are_others)
		rebuild_begin(record);
	record->stands_in_mask &= (uint8_t)~mask;
	record->leaves_mask &= (uint8_t)~mask;
	record->returned_mask |= mask;
	record->label_asked_mask &= (uint8_t)~mask;
	record->labelled_mask &= (uint8_t)~mask;
	for (; left; left &= left - 1) {
		if (doubts)
			rbx_doubts_forget(doubts, (uint32_t)__builtin_ctz(left));
		rbx_slab_move(slab, (uint32_t)__builtin_ctz(left), RBX_REPLICA_REBUILDING);
	}
	if (!stale)
		return;
	/* Others that are copied whole stay so. */
	if (!are_others || record->copy_extents)
		record->copy_extents |= stale;
	copies_want(record, 0, rbx_slab_cells(rbx_slab_shape(slab)));
}

/* A replica that has returned lacks what is being written to this cell. */
static void stale_add(struct rbx_slab *slab, uint32_t cell)
{
	if (rbx_slab_shape(slab)->is_guarded)
		rbx_extents_stale_add(slab, cell);
	else
		rbx_slab_missed(slab, cell << rbx_slab_shape(slab)->cell_shift,
				1u << rbx_slab_shape(slab)->cell_shift);
}

void rbx_slab_differ(struct rbx_slab *slab, uint8_t mask, uint32_t cell)
{
	struct rbx_slab_record *record;

	mask &= slab->write_mask;
	RBX_ASSERT(!mask || slab->read_mask & ~mask);
	if (mask)
		(void)rbx_slab_record_give_at_once(slab);
	for (uint8_t left = mask; left; left &= left - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(left);

		if (rbx_slab_state(slab, slot) == RBX_REPLICA_RETURNED)
			stale_add(slab, cell);
		else if (rbx_slab_state(slab, slot) != RBX_REPLICA_REBUILDING)
			target_add(slab, slot, true);
	}
	record = rbx_slab_record(slab);
	if (record && record->copy_extents)
		record->copy_extents |= rbx_extents_of_cell(rbx_slab_shape(slab), cell);
	/* Cells that this pass has not reached will be copied as they are now. */
	if (record && mask & rbx_slab_targets(slab) &&
	    (cell < record->copy_next || cell >= record->copy_end))
		copies_want(record, cell, cell + 1);
}

void rbx_slab_differ_everywhere(struct rbx_slab *slab)
{
	uint8_t others = slab->read_mask & (uint8_t)(slab->read_mask - 1);

	RBX_ASSERT(!slab->has_record);
	for (; others; others &= (uint8_t)(others - 1))
		target_add(slab, (uint32_t)__builtin_ctz(others), true);
}

/* ---- Copies ---------------------------------------------------------------*/

/* Passes over cells of other extents than those that are copied: at most 64 steps. */
static void cells_pass(const struct rbx_slab_shape *shape, struct rbx_slab_record *record)
{
	uint32_t extent_bytes = 1u << (shape->slab_shift - 6);
	uint32_t step = RBX_MAX(extent_bytes >> shape->cell_shift, 1u);

	while (record->copy_extents && record->copy_next != record->copy_end &&
	       !(record->copy_extents & rbx_extents_of_cell(shape, record->copy_next)))
		record->copy_next = RBX_MIN((record->copy_next / step + 1) * step,
					    record->copy_end);
}

/* Whether there is a cell to copy; copy_next is then that one. */
static bool copy_find(const struct rbx_slab *slab,
		      struct rbx_slab_record *record)
{
	/* Without a record its targets were lost while copies were parked. Another has come. */
	if (!rbx_slab_targets(slab) || !record)
		return false;
	if (record->copy_failed)
		return false;
	cells_pass(rbx_slab_shape(slab), record);
	if (record->copy_next == record->copy_end) {
		record->copy_next = record->again_next;
		record->copy_end = record->again_end;
		record->again_next = record->again_end = 0;
		cells_pass(rbx_slab_shape(slab), record);
	}
	return record->copy_next != record->copy_end;
}

bool rbx_slab_copy_next(struct rbx_slab *slab, struct rbx_piece *piece)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);
	struct rbx_slab_record *record = rbx_slab_record(slab);

	RBX_ASSERT(piece->kind == RBX_PIECE_COPY);
	if (!copy_find(slab, record))
		return false;
	piece->slab = slab;
	piece->group = rbx_slab_group(slab);
	piece->slab_index = rbx_slab_index(slab);
	piece->rebuild = record->rebuild;
	piece->offset_bytes = record->copy_next++ << shape->cell_shift;
	piece->length_bytes = 1u << shape->cell_shift;
	record->copies_count++;
	return true;
}

/* Those that have never been complete, as their servers know. */
static uint8_t unlabelled(const struct rbx_slab *slab)
{
	const struct rbx_slab_record *record;

	if (!rbx_slab_shape(slab)->is_guarded || !slab->has_record)
		return 0;
	record = rbx_slab_record(slab);
	return rbx_slab_targets(slab) & (uint8_t)~(record->stands_in_mask | record->labelled_mask);
}

/* All cells are copied. A replica that a server wants back has been replaced if there is one
 * more than wanted. */
static void rebuild_succeed(struct rbx_slab *slab)
{
	uint8_t targets = rbx_slab_targets(slab);
	int leaving;

	if (unlabelled(slab))
		return; /* rbx_slab_labelled() goes on */
	for (; targets; targets &= targets - 1)
		target_is_done(slab, (uint32_t)__builtin_ctz(targets));
	if (rbx_slab_shape(slab)->is_guarded) {
		rbx_slab_unlabelled_lose(slab); /* what is superfluous has a label yet */
		return;
	}
	leaving = rbx_slab_find(slab, RBX_REPLICA_LEAVING);
	if (rbx_slab_readable(slab) > rbx_slab_shape(slab)->replicas) {
		RBX_ASSERT(leaving >= 0);
		rbx_slab_lose(slab, (uint32_t)leaving);
	}
	rbx_slab_away_replaced(slab);
}

/* A cell was not copied. After a fault of this machine it is tried again, a bounded number of
 * times. Otherwise the targets of this copy are lost, and it goes to those that have joined
 * since, if any. That is bounded, as each time there is one fewer. */
static void copy_fail(const struct rbx_slab *slab,
		      struct rbx_slab_record *record,
		      const struct rbx_piece *piece)
{
	uint32_t cell = piece->offset_bytes >> rbx_slab_shape(slab)->cell_shift;

	if (!rbx_slab_targets(slab))
		return;
	copies_want(record, cell, cell + 1);
	if (rbx_status_class(piece->status) == RBX_STATUS_LOCAL &&
	    record->copy_failures_count++ >= RBX_RETRIES_MAX)
		record->copy_failed = true;
}

/* It failed too often. A replica that stands in has all that was acknowledged. It stays while
 * another one may be the cause, and is copied to in its turn. */
static void rebuild_fail(struct rbx_slab *slab, struct rbx_slab_record *record)
{
	uint8_t targets = rbx_slab_targets(slab);
	uint8_t others = targets & (uint8_t)~record->stands_in_mask;

	/* Of those that are complete, as their servers know, none may be lost (held.h). */
	if (rbx_slab_shape(slab)->is_guarded)
		targets = others &= (uint8_t)~record->label_asked_mask;
	record->copy_rests = !targets;
	targets_lose(slab, others ? others : targets);
	record->copy_failed = false;
	record->copy_failures_count = 0;
}

bool rbx_slab_copy_done(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);

	RBX_ASSERT(piece->state == RBX_PIECE_IDLE && record->copies_count > 0);
	record->copies_count--;
	/* A copy left over from an earlier rebuild says nothing about the present targets: it
	 * was not for them. */
	if (piece->rebuild == record->rebuild) {
		if (piece->status == 0)
			record->copy_failures_count = 0;
		else
			copy_fail(slab, record, piece);
	}
	if (record->copies_count || copy_find(slab, record))
		return false;
	if (record->copy_failed)
		rebuild_fail(slab, record);
	else
		rebuild_succeed(slab);
	slab->attention = true;
	return true;
}

bool rbx_slab_copied_all(struct rbx_slab *slab)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);

	if (!record || !rbx_slab_targets(slab) || record->copies_count || copy_find(slab, record))
		return false;
	rebuild_succeed(slab);
	slab->attention = true;
	return true;
}

/* ---- Labels of named volumes --------------------------------------------------*/

/* Whether cells are being copied, or are still to be. */
static bool is_copying(const struct rbx_slab_record *record)
{
	return record->copies_count || record->copy_next != record->copy_end ||
	       record->again_next != record->again_end;
}

int rbx_slab_unlabelled(const struct rbx_slab *slab)
{
	const struct rbx_slab_record *record;
	uint32_t mask = unlabelled(slab);

	if (!mask)
		return -ENOENT;
	record = rbx_slab_record(slab);
	if (is_copying(record))
		return -ENOENT;
	mask &= (uint32_t)~record->label_asked_mask;
	return mask ? __builtin_ctz(mask) : -EAGAIN;
}

bool rbx_slab_may_be_labelled(const struct rbx_slab *slab, uint32_t slot)
{
	return slab->has_record && rbx_slab_record(slab)->label_asked_mask >> slot & 1;
}

void rbx_slab_label_asked(struct rbx_slab *slab, uint32_t slot)
{
	rbx_slab_record(slab)->label_asked_mask |= (uint8_t)(1u << slot);
}

void rbx_slab_label_not_asked(struct rbx_slab *slab, uint32_t slot)
{
	if (slab->has_record)
		rbx_slab_record(slab)->label_asked_mask &= (uint8_t)~(1u << slot);
	slab->attention = true;
}

void rbx_slab_labelled(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);
	uint32_t targets = rbx_slab_targets(slab);

	if (!record)
		return; /* it was lost meanwhile */
	for (; targets; targets &= targets - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(targets);

		if (rbx_replica_is(rbx_slab_replica(slab, slot), server, loan->slab_id,
				   loan->epoch))
			record->labelled_mask |= (uint8_t)(1u << slot);
	}
	if (rbx_slab_targets(slab) && !is_copying(record))
		rebuild_succeed(slab);
	slab->attention = true;
}
