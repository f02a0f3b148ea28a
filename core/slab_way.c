/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_way.c - the slow path of a piece through a slab, see slab_way.h.
 *
 * Pieces that are not on the fast path find no replica, or lost pages; their data has checksums; a
 * part fails, and its replica is lost or another one is tried; they are copies, or repair bad data;
 * others wait for their granules. slab_write.c has how writes end, slab_replica.c the life of the
 * replicas, slab_rebuild.c their rebuild.
 */
#include "core/slab_way.h"

#include "core/checksum.h"
#include "core/slab_away.h"
#include "core/slab_doubts.h"
#include "core/slab_rebuild.h"
#include "core/status.h"
#include "core/tails.h"

/* ---- Missing replicas and pages ----------------------------------------------- */

/* No server is asked, so only this says that the volume is another client's. */
static bool is_over(const struct rbx_slab *slab)
{
	const struct rbx_extents *extents = rbx_slab_group(slab)->extents;

	return extents && RBX_LOAD_ACQUIRE(&extents->is_over);
}

/* No replica can be read. A blank slab has none and needs none. */
RBX_RARE static void read_without_source(const struct rbx_slab *slab,
					 struct rbx_piece *piece,
					 struct rbx_piece_list *todo)
{
	piece->reads_zeros = slab->blank && piece->kind == RBX_PIECE_READ && !is_over(slab);
	rbx_way_end(piece, piece->reads_zeros ? 0 : -EIO, todo);
}

/* A copy takes zeros from bad pages, too: they are never read. */
static bool may_read(const struct rbx_slab *slab, const struct rbx_piece *piece)
{
	return piece->kind == RBX_PIECE_COPY ||
	       rbx_lost_pages_may_read(rbx_slab_pages(slab), piece->offset_bytes,
				       piece->length_bytes);
}

/* The first writes of a blank or dead slab wait until there is memory. They hold no granules,
 * so they wait for nothing else. */
RBX_RARE static void write_without_replica(struct rbx_slab *slab,
					   struct rbx_slab_group *group,
					   struct rbx_piece *piece)
{
	(void)rbx_cell_give(piece);
	rbx_way_move(piece, RBX_PIECE_WAITING);
	rbx_cell_wait(&group->cells, piece, rbx_slab_waiting_place(slab));
	slab->waits = true;
	slab->attention = true;
}

/* It has its granules: a write of the whole page has ended, or comes later. */
static bool may_write(const struct rbx_slab *slab, const struct rbx_piece *piece)
{
	return rbx_lost_pages_may_write(rbx_slab_pages(slab), piece->offset_bytes,
					piece->length_bytes);
}

/* ---- Beginning and ending -------------------------------------------------------- */

void rbx_way_end(struct rbx_piece *piece, int32_t status,
		 struct rbx_piece_list *todo)
{
	rbx_way_move(piece, RBX_PIECE_IDLE);
	piece->status = status;
	piece->source_mask = 0;
	if (piece->cell)
		(void)rbx_cell_give(piece);
	rbx_piece_list_add(todo, piece);
}

static void send_read(struct rbx_slab *slab, struct rbx_piece *piece,
		      uint32_t slot, struct rbx_piece_list *todo)
{
	rbx_way_send(slab, piece, RBX_PIECE_READING, 1u << slot, NULL);
	rbx_piece_list_add(todo, piece);
}

static void send_write(struct rbx_slab *slab, struct rbx_piece *piece,
		       uint8_t mask, struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(!piece->failed_mask); /* a piece writes once */
	if (slab->has_away && piece->kind == RBX_PIECE_WRITE)
		rbx_slab_missed(slab, piece->offset_bytes, piece->length_bytes);
	rbx_way_send(slab, piece, RBX_PIECE_WRITING, mask, NULL);
	if (rbx_slab_shape(slab)->has_tails)
		rbx_tails_prepare(slab, piece);
	rbx_piece_list_add(todo, piece);
}

int rbx_way_source(const struct rbx_slab *slab, const struct rbx_piece *piece)
{
	uint8_t candidates = slab->read_mask & ~piece->tried_mask;

	if (!candidates)
		return -1;
	if (piece->kind == RBX_PIECE_READ && candidates & piece->source_mask)
		candidates &= piece->source_mask;
	if (candidates & (candidates - 1))
		candidates = rbx_way_choose(slab, piece, candidates);
	return __builtin_ctz(candidates);
}

static void way_read(struct rbx_slab *slab, struct rbx_piece *piece,
		     struct rbx_piece_list *todo)
{
	int source = rbx_way_source(slab, piece);

	if (source < 0)
		read_without_source(slab, piece, todo);
	else if (slab->has_holes && !may_read(slab, piece))
		rbx_way_end(piece, -EIO, todo);
	else
		send_read(slab, piece, (uint32_t)source, todo);
}

static void way_write(struct rbx_slab *slab, struct rbx_slab_group *group,
		      struct rbx_piece *piece, struct rbx_piece_list *todo)
{
	if (!slab->read_mask)
		write_without_replica(slab, group, piece);
	else if (slab->has_holes && !may_write(slab, piece))
		rbx_way_end(piece, -EIO, todo);
	else
		send_write(slab, piece, slab->write_mask, todo);
}

/* The piece has its granules. */
static void way_begin(struct rbx_slab *slab, struct rbx_slab_group *group,
		      struct rbx_piece *piece, struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(piece->cell);
	if (piece->kind == RBX_PIECE_WRITE)
		way_write(slab, group, piece, todo);
	else
		way_read(slab, piece, todo);
}

void rbx_way_take(struct rbx_slab *slab, struct rbx_slab_group *group,
		  struct rbx_piece *piece, struct rbx_piece_list *todo)
{
	if (piece->kind == RBX_PIECE_WRITE && slab->read_mask &&
	    rbx_way_must_wait(slab, group, piece))
		rbx_extents_wait(slab, group, piece);
	else if (rbx_way_take_granules(group, piece))
		way_begin(slab, group, piece, todo);
}

/* Bounded: no piece joins the queue meanwhile. But the last one takes the cell along, and may
 * already use it to wait for something else. */
void rbx_way_serve_queue(struct rbx_slab *slab, struct rbx_slab_group *group,
			 struct rbx_cell *cell, uint64_t place,
			 struct rbx_piece_list *todo)
{
	struct rbx_piece *piece;

	while (cell->place == place && (piece = rbx_cell_admit(cell)))
		way_begin(slab, group, piece, todo);
}

void rbx_slab_start(struct rbx_slab *slab, struct rbx_slab_group *group,
		    struct rbx_piece *piece, struct rbx_piece_list *todo)
{
	rbx_way_clear(slab, group, piece);
	if (piece->kind == RBX_PIECE_READ)
		way_read(slab, piece, todo);
	else
		rbx_way_take(slab, group, piece, todo);
}

/* ---- Reads, and the first half of a copy ----------------------------------------*/

/* Neighbours within a stripe go to the same replica, so that they merge. */
uint8_t rbx_way_choose(const struct rbx_slab *slab,
		       const struct rbx_piece *piece, uint8_t candidates)
{
	uint32_t stripe = piece->offset_bytes / RBX_READ_STRIPE_BYTES + rbx_slab_index(slab);
	uint32_t number = stripe % rbx_slab_readable(slab);
	uint8_t mask = slab->read_mask;

	while (number--)
		mask &= (uint8_t)(mask - 1);
	mask &= (uint8_t)-mask;
	return mask & candidates ? mask : candidates;
}

/* The second half of a copy; its targets may be lost meanwhile. */
static void copy_write(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
		       uint8_t slots, struct rbx_piece_list *todo)
{
	if (!rbx_slab_targets(slab)) {
		rbx_way_end(piece, -EIO, todo);
		return;
	}
	piece->source_mask = (uint8_t)(1u << slot);
	piece->failed_mask = 0; /* of the read */
	rbx_way_copy_begins(slab, piece);
	send_write(slab, piece, slots, todo);
}

/* The data that a copy has read is the truth if its source still is one, or if it was searched for:
 * then each page matches its checksum. If it was bad in all readable replicas, and now comes from
 * a target, they get it, too. */
static void copy_read(struct rbx_slab *slab, struct rbx_piece *piece,
		      uint32_t slot, struct rbx_piece_list *todo)
{
	if (slab->read_mask >> slot & 1)
		copy_write(slab, piece, slot, rbx_slab_targets(slab), todo);
	else if (piece->tried_mask)
		copy_write(slab, piece, slot, slab->write_mask, todo);
	else
		way_read(slab, piece, todo);
}

/* The second half of a read that found good data at last: live replicas with bad data get the
 * good data. The granules have been held since the first bad data was found, so nothing was
 * written meanwhile. */
static void read_repair(struct rbx_slab *slab, struct rbx_piece *piece,
			struct rbx_piece_list *todo)
{
	uint8_t bad = piece->tried_mask & slab->read_mask;

	piece->failed_mask = 0; /* of the read */
	if (!bad)
		rbx_way_end(piece, 0, todo);
	else
		send_write(slab, piece, bad, todo);
}

/* A read is done that is not just a program's read with good data. */
static void read_more(struct rbx_slab *slab, struct rbx_piece *piece,
		      uint32_t slot, struct rbx_piece_list *todo)
{
	rbx_way_look_ends(slab, piece);
	if (piece->kind == RBX_PIECE_COPY)
		copy_read(slab, piece, slot, todo);
	else
		read_repair(slab, piece, todo);
}

static void read_done(struct rbx_slab *slab, struct rbx_piece *piece,
		      uint32_t slot, struct rbx_piece_list *todo)
{
	if (piece->kind == RBX_PIECE_COPY || piece->tried_mask)
		read_more(slab, piece, slot, todo);
	else if (!(slab->read_mask >> slot & 1)) /* its memory may be lent again by then */
		way_read(slab, piece, todo);
	else
		rbx_way_end(piece, 0, todo);
}

/* Some page in the memory of the piece does not match its checksum. */
static void read_mismatched(struct rbx_slab *slab, struct rbx_slab_group *group,
			    struct rbx_piece *piece, uint32_t slot,
			    struct rbx_piece_list *todo)
{
	if (!piece->cell) {
		rbx_way_take(slab, group, piece, todo);
		return;
	}
	if (rbx_way_search_on(slab, piece, slot, todo))
		return;
	piece->tried_mask |= (uint8_t)(1u << slot);
	if (rbx_way_search(slab, piece, todo))
		return;
	if (piece->kind == RBX_PIECE_COPY) /* bad everywhere, and stays so */
		copy_write(slab, piece, slot, rbx_slab_targets(slab), todo);
	else
		way_read(slab, piece, todo);
}

/* What is sent to a server that has FAILED fails (held.h). Nothing was acknowledged that it has and
 * others do not have. */
static bool read_elsewhere(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
			   int32_t status, struct rbx_piece_list *todo)
{
	uint8_t others;

	if (status != -EIO || !rbx_slab_shape(slab)->is_guarded || piece->tried_mask)
		return false;
	piece->failed_mask |= (uint8_t)(1u << slot);
	others = slab->read_mask & ~piece->failed_mask;
	if (others)
		send_read(slab, piece, (uint32_t)__builtin_ctz(others), todo);
	return others != 0;
}

static void read_failed(struct rbx_slab *slab, struct rbx_slab_group *group,
			struct rbx_piece *piece, uint32_t slot, int32_t status,
			struct rbx_piece_list *todo)
{
	if (status == -EBADMSG) {
		read_mismatched(slab, group, piece, slot, todo);
	} else if (rbx_status_class(status) == RBX_STATUS_LOCAL) {
		if (read_elsewhere(slab, piece, slot, status, todo))
			return;
		rbx_way_look_ends(slab, piece);
		rbx_way_end(piece, status, todo);
	} else {
		rbx_slab_part_lost(slab, slot);
		if (!piece->tried_mask || !rbx_way_search(slab, piece, todo))
			way_read(slab, piece, todo);
	}
}

/* ---- Parts that are done ------------------------------------------------------------*/

/* A part is no longer under way. */
static void land(struct rbx_slab *slab, const struct rbx_part *part)
{
	struct rbx_piece *piece = part->piece;
	struct rbx_replica *replica = rbx_slab_replica(slab, part->slot);

	RBX_ASSERT(piece->flight_mask & part->bit);
	RBX_DEBUG_ASSERT(rbx_replica_flights(replica) > 0);
	piece->flight_mask ^= part->bit;
	/* The replica is lost or AWAY if nothing new is sent to it. */
	rbx_replica_land(replica);
	if (!(slab->write_mask >> part->slot & 1) && !rbx_replica_flights(replica))
		slab->attention = true;
}

static void part_done(struct rbx_slab *slab, struct rbx_slab_group *group,
		      struct rbx_part *part, int32_t status,
		      struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	struct rbx_cell *cell = piece->cell;

	land(slab, part);
	if (piece->state == RBX_PIECE_READING) {
		if (status)
			read_failed(slab, group, piece, part->slot, status, todo);
		else
			read_done(slab, piece, part->slot, todo);
	} else {
		if (status)
			rbx_way_write_failed(slab, piece, part->slot, status);
		rbx_way_write_done(slab, piece, todo);
	}
	if (cell && rbx_cell_has_queue(cell))
		rbx_way_serve_queue(slab, group, cell,
				    rbx_way_place(group, piece), todo);
}

void rbx_slab_done(struct rbx_slab *slab, struct rbx_slab_group *group,
		   struct rbx_part *part, int32_t status,
		   struct rbx_piece_list *todo)
{
	struct rbx_piece_list begun = { 0 };

	if (status || !rbx_way_is_done_fast(slab, part)) {
		part_done(slab, group, part, status, todo);
		return;
	}
	if (rbx_way_done_fast(slab, group, part, &begun))
		rbx_piece_list_add(todo, part->piece);
	rbx_piece_list_append(todo, &begun);
}
