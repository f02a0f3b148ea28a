/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_way.h - the path of a piece through its slab, see slab.h.
 *
 * A write waits for its granules, goes to all replicas at once, and ends when the last one
 * has answered. A read goes to one replica and ends with it, or goes on to the next one. If
 * it found bad data before it found good data, it then writes the good data over the bad. A
 * copy is a read and then a write to its targets.
 *
 * A piece that ends gives its granules back. Pieces that waited for them begin in the same
 * step, one after another and not by recursion: a thousand waiters of a dead slab all end
 * here. Each piece is put on the host's list at most once in a step.
 *
 * The common path is inline, so that flow.c, which takes every piece this way, makes no call
 * for it. slab_way.c has the rare parts.
 */
#ifndef RBX_SLAB_WAY_H
#define RBX_SLAB_WAY_H

#include "core/slab.h"

/* ---- Rare parts: slab_way.c ------------------------------------------------ */

void rbx_way_read_without_source(const struct rbx_slab *slab,
				 struct rbx_piece *piece,
				 struct rbx_piece_list *todo) RBX_RARE;
void rbx_way_write_without_replica(struct rbx_slab *slab,
				   struct rbx_slab_group *group,
				   struct rbx_piece *piece) RBX_RARE;
/* Which of several replicas is read: its bit. */
uint8_t rbx_way_choose(const struct rbx_slab *slab,
		       const struct rbx_piece *piece, uint8_t candidates);
bool rbx_way_may_read(const struct rbx_slab *slab,
		      const struct rbx_piece *piece) RBX_RARE;
bool rbx_way_may_write(const struct rbx_slab *slab,
		       const struct rbx_piece *piece) RBX_RARE;
/* A read is done that is not just a program's read with good data. */
void rbx_way_read_more(struct rbx_slab *slab, struct rbx_piece *piece,
		       uint32_t slot, struct rbx_piece_list *todo) RBX_RARE;
/* After a program's write that needs more bookkeeping than usual. */
void rbx_way_note_written(struct rbx_slab *slab,
			  struct rbx_piece *piece) RBX_RARE;
/* All parts of a write are done, and one failed, or it is not a program's write. */
void rbx_way_write_more(struct rbx_slab *slab, struct rbx_piece *piece,
			struct rbx_piece_list *todo) RBX_RARE;
/* Like rbx_slab_done(), for a part that has failed. */
void rbx_way_failed(struct rbx_slab *slab, struct rbx_slab_group *group,
		    struct rbx_part *part, int32_t status,
		    struct rbx_piece_list *todo) RBX_RARE;
/* Granules of the cell may have been given back. */
void rbx_way_serve_queue(struct rbx_slab *slab, struct rbx_slab_group *group,
			 struct rbx_cell *cell, uint64_t place,
			 struct rbx_piece_list *todo) RBX_RARE;

/* ---- Steps --------------------------------------------------------------------*/

#define RBX_FROM(state) (1u << RBX_PIECE_##state)

/* The one function that changes the state of a piece. */
static inline void rbx_way_move(struct rbx_piece *piece,
				enum rbx_piece_state state)
{
	/* The states from which each state is entered. */
	static const uint8_t legal[] = {
		[RBX_PIECE_IDLE] = RBX_FROM(IDLE) | RBX_FROM(WAITING) |
				   RBX_FROM(READING) | RBX_FROM(WRITING),
		[RBX_PIECE_WAITING] = RBX_FROM(IDLE) | RBX_FROM(WAITING) |
				      RBX_FROM(READING),
		[RBX_PIECE_READING] = RBX_FROM(IDLE) | RBX_FROM(WAITING) |
				      RBX_FROM(READING),
		[RBX_PIECE_WRITING] = RBX_FROM(IDLE) | RBX_FROM(WAITING) |
				      RBX_FROM(READING),
	};

	RBX_DEBUG_ASSERT(legal[state] >> piece->state & 1);
	RBX_DEBUG_ASSERT(!piece->flight_mask);
	(void)legal;
	piece->state = (uint8_t)state;
}

/* If it held granules, others may wait for them: see rbx_way_serve_queue(). */
static inline void rbx_way_end(struct rbx_piece *piece, int32_t status,
			       struct rbx_piece_list *todo)
{
	rbx_way_move(piece, RBX_PIECE_IDLE);
	piece->status = status;
	if (piece->cell)
		rbx_cell_give(piece);
	rbx_piece_list_add(todo, piece);
}

static inline void rbx_way_prepare(struct rbx_slab *slab,
				   struct rbx_piece *piece, uint32_t slot,
				   enum rbx_direction direction)
{
	struct rbx_replica *replica = rbx_slab_replica(slab, slot);
	struct rbx_part *part = &piece->parts[slot];
	struct rbx_fragment *fragment = &part->fragment;

	RBX_DEBUG_ASSERT(slab->write_mask >> slot & 1);
	rbx_replica_take_off(replica);
	part->server = (uint16_t)rbx_replica_server(replica);
	fragment->direction = (uint8_t)direction;
	fragment->flags = piece->fragment_flags;
	fragment->retries_count = 0;
	fragment->flushes_count = 0;
	fragment->status = 0;
	fragment->rkey = replica->rkey;
	fragment->remote_addr = rbx_replica_addr(replica) + piece->offset_bytes;
	fragment->local_addr = piece->local_addr;
	fragment->length_bytes = piece->length_bytes;
	fragment->lkey = piece->lkey;
}

/* The host has to send one part for each slot of the mask. */
static inline void rbx_way_hand_over(struct rbx_piece *piece,
				     enum rbx_piece_state state, uint8_t mask,
				     struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(mask);
	rbx_way_move(piece, state);
	piece->send_mask = mask;
	piece->flight_mask = mask;
	rbx_piece_list_add(todo, piece);
}

static inline void rbx_way_send_read(struct rbx_slab *slab,
				     struct rbx_piece *piece, uint32_t slot,
				     struct rbx_piece_list *todo)
{
	rbx_way_hand_over(piece, RBX_PIECE_READING, (uint8_t)(1u << slot), todo);
	rbx_way_prepare(slab, piece, slot, RBX_DIRECTION_READ);
}

static inline void rbx_way_send_write(struct rbx_slab *slab,
				      struct rbx_piece *piece, uint8_t mask,
				      struct rbx_piece_list *todo)
{
	uint32_t left = mask;

	rbx_way_hand_over(piece, RBX_PIECE_WRITING, mask, todo);
	do {
		rbx_way_prepare(slab, piece, (uint32_t)__builtin_ctz(left),
				RBX_DIRECTION_WRITE);
		left &= left - 1;
	} while (left);
}

/* A live replica that was not tried in vain, or -1. */
static inline int rbx_way_source(const struct rbx_slab *slab,
				 const struct rbx_piece *piece)
{
	uint8_t candidates = slab->read_mask & ~piece->tried_mask;

	if (!candidates)
		return -1;
	if (candidates & (candidates - 1))
		candidates = rbx_way_choose(slab, piece, candidates);
	return __builtin_ctz(candidates);
}

static inline void rbx_way_read(struct rbx_slab *slab, struct rbx_piece *piece,
				struct rbx_piece_list *todo)
{
	int source = rbx_way_source(slab, piece);

	if (source < 0)
		rbx_way_read_without_source(slab, piece, todo);
	else if (slab->has_holes && !rbx_way_may_read(slab, piece))
		rbx_way_end(piece, -EIO, todo);
	else
		rbx_way_send_read(slab, piece, (uint32_t)source, todo);
}

static inline void rbx_way_write(struct rbx_slab *slab,
				 struct rbx_slab_group *group,
				 struct rbx_piece *piece,
				 struct rbx_piece_list *todo)
{
	if (!slab->read_mask)
		rbx_way_write_without_replica(slab, group, piece);
	else if (slab->has_holes && !rbx_way_may_write(slab, piece))
		rbx_way_end(piece, -EIO, todo);
	else
		rbx_way_send_write(slab, piece, slab->write_mask, todo);
}

/* The piece has its granules. */
static inline void rbx_way_begin(struct rbx_slab *slab,
				 struct rbx_slab_group *group,
				 struct rbx_piece *piece,
				 struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(piece->cell);
	if (piece->kind == RBX_PIECE_WRITE)
		rbx_way_write(slab, group, piece, todo);
	else
		rbx_way_read(slab, piece, todo);
}

/* The number of a piece's cell among those of all slabs that share a lock. */
static inline uint64_t rbx_way_place(const struct rbx_slab *slab,
				     const struct rbx_piece *piece)
{
	return (uint64_t)piece->slab_index << 32 |
	       piece->offset_bytes >> rbx_slab_shape(slab)->cell_shift;
}

static inline void rbx_way_take(struct rbx_slab *slab,
				struct rbx_slab_group *group,
				struct rbx_piece *piece,
				struct rbx_piece_list *todo)
{
	piece->granules = rbx_cell_granules(piece->offset_bytes,
					    piece->length_bytes,
					    rbx_slab_shape(slab)->cell_shift);
	if (rbx_cell_take(&group->cells, piece, rbx_way_place(slab, piece)))
		rbx_way_begin(slab, group, piece, todo);
	else
		rbx_way_move(piece, RBX_PIECE_WAITING);
}

/* Takes an idle piece of this slab and its group; adds to todo what the host has to do. */
static inline void rbx_slab_start(struct rbx_slab *slab,
				  struct rbx_slab_group *group,
				  struct rbx_piece *piece,
				  struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(piece->slab == slab && rbx_slab_group(slab) == group);
	RBX_DEBUG_ASSERT(piece->slab_index == rbx_slab_index(slab));
	RBX_DEBUG_ASSERT(piece->state == RBX_PIECE_IDLE && !piece->cell);
	RBX_DEBUG_ASSERT(piece->length_bytes > 0);
	piece->status = 0;
	piece->reads_zeros = false;
	piece->written_mask = 0;
	piece->tried_mask = 0;
	if (piece->kind == RBX_PIECE_READ)
		rbx_way_read(slab, piece, todo);
	else
		rbx_way_take(slab, group, piece, todo);
}

/* A part is no longer under way. */
static inline void rbx_way_land(struct rbx_slab *slab,
				const struct rbx_part *part)
{
	struct rbx_piece *piece = part->piece;
	struct rbx_replica *replica = rbx_slab_replica(slab, part->slot);

	RBX_ASSERT(piece->flight_mask & part->bit);
	RBX_DEBUG_ASSERT(rbx_replica_flights(replica) > 0);
	piece->flight_mask ^= part->bit;
	/* The replica is lost if nothing new is sent to it. */
	rbx_replica_land(replica);
	if (!(slab->write_mask & part->bit) && !rbx_replica_flights(replica))
		slab->attention = true;
}

static inline void rbx_way_read_done(struct rbx_slab *slab,
				     struct rbx_piece *piece, uint32_t slot,
				     struct rbx_piece_list *todo)
{
	if (piece->kind == RBX_PIECE_COPY || piece->tried_mask)
		rbx_way_read_more(slab, piece, slot, todo);
	else if (!(slab->read_mask >> slot & 1)) /* its memory may be lent again by then */
		rbx_way_read(slab, piece, todo);
	else
		rbx_way_end(piece, 0, todo);
}

static inline void rbx_way_write_succeed(struct rbx_slab *slab,
					 struct rbx_piece *piece,
					 struct rbx_piece_list *todo)
{
	if (slab->has_holes || slab->has_checksums)
		rbx_way_note_written(slab, piece);
	rbx_way_end(piece, 0, todo);
}

static inline void rbx_way_write_done(struct rbx_slab *slab,
				      struct rbx_piece *piece,
				      struct rbx_piece_list *todo)
{
	uint32_t all = piece->send_mask;

	if (piece->flight_mask)
		return;
	/* All of them have it, and at least one of them is readable. */
	if (piece->written_mask == all && all & slab->read_mask)
		rbx_way_write_succeed(slab, piece, todo);
	else
		rbx_way_write_more(slab, piece, todo);
}

/* A part is done. status: 0, -errno, or -EBADMSG for data whose checksum does not match. If
 * the part's piece goes on or has ended, it is on todo, and so are pieces that waited for it. */
static inline void rbx_slab_done(struct rbx_slab *slab,
				 struct rbx_slab_group *group,
				 struct rbx_part *part, int32_t status,
				 struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	struct rbx_cell *cell = piece->cell;

	if (status) {
		rbx_way_failed(slab, group, part, status, todo);
		return;
	}
	rbx_way_land(slab, part);
	if (piece->state == RBX_PIECE_READING) {
		rbx_way_read_done(slab, piece, part->slot, todo);
	} else {
		piece->written_mask |= part->bit;
		rbx_way_write_done(slab, piece, todo);
	}
	if (cell && rbx_cell_has_queue(cell))
		rbx_way_serve_queue(slab, group, cell,
				    rbx_way_place(slab, piece), todo);
}

#endif
