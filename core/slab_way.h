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
 * Nearly all pieces are on the fast path: requests of a program to a slab that has nothing
 * special, none of whose parts has failed. Its two steps are here and inline, for flow.c, which
 * takes them without a list. slab_way.c has all other steps, and those of slab.h.
 */
#ifndef RBX_SLAB_WAY_H
#define RBX_SLAB_WAY_H

#include "core/extents.h"
#include "core/server_runs.h"
#include "core/slab.h"

/* ---- Any piece: slab_way.c -------------------------------------------------- */

/* Takes an idle piece of this slab and its group; adds to todo what the host has to do. */
void rbx_slab_start(struct rbx_slab *slab, struct rbx_slab_group *group,
		    struct rbx_piece *piece, struct rbx_piece_list *todo);

/* A part is done. status: 0, -errno, or -EBADMSG for data whose checksum does not match. If
 * the part's piece goes on or has ended, it is on todo, and so are pieces that waited for it. */
void rbx_slab_done(struct rbx_slab *slab, struct rbx_slab_group *group,
		   struct rbx_part *part, int32_t status,
		   struct rbx_piece_list *todo);

/* ---- For the files of the slab only ------------------------------------------ */

/* A piece takes its granules, and begins or waits. */
void rbx_way_take(struct rbx_slab *slab, struct rbx_slab_group *group,
		  struct rbx_piece *piece, struct rbx_piece_list *todo);
/* If it held granules, others may wait for them: see rbx_way_serve_queue(). */
void rbx_way_end(struct rbx_piece *piece, int32_t status,
		 struct rbx_piece_list *todo);
/* Granules of the cell may have been given back. */
void rbx_way_serve_queue(struct rbx_slab *slab, struct rbx_slab_group *group,
			 struct rbx_cell *cell, uint64_t place,
			 struct rbx_piece_list *todo) RBX_RARE;
/* A live replica that was not tried in vain, or -1. */
int rbx_way_source(const struct rbx_slab *slab, const struct rbx_piece *piece);
/* All that was tried has bad pages or is lost: reads these from another replica. If a checksum is
 * another one now, all are tried again. false: no replica is left. */
bool rbx_way_search(struct rbx_slab *slab, struct rbx_piece *piece, struct rbx_piece_list *todo);
/* Bad pages are left that this replica was not asked for: it is. false: there are none. */
bool rbx_way_search_on(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
		       struct rbx_piece_list *todo);
/* Which of several replicas is read: its bit. */
uint8_t rbx_way_choose(const struct rbx_slab *slab,
		       const struct rbx_piece *piece, uint8_t candidates);

/* slab_write.c: a part of the second half of a piece has failed: its replica is lost, unless this
 * machine is at fault; or is done: if it was the last one, the piece ends. */
void rbx_way_write_failed(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
			  int32_t status);
void rbx_way_write_done(struct rbx_slab *slab, struct rbx_piece *piece,
			struct rbx_piece_list *todo);

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

/* Zeroes what an earlier request has left. */
static inline void rbx_way_clear(struct rbx_slab *slab,
				 struct rbx_slab_group *group,
				 struct rbx_piece *piece)
{
	RBX_DEBUG_ASSERT(piece->slab == slab && rbx_slab_group(slab) == group);
	RBX_DEBUG_ASSERT(piece->slab_index == rbx_slab_index(slab));
	RBX_DEBUG_ASSERT(piece->state == RBX_PIECE_IDLE && !piece->cell);
	RBX_DEBUG_ASSERT(piece->length_bytes > 0);
	(void)slab, (void)group;
	piece->status = 0;
	piece->tried_mask = 0;
	piece->failed_mask = 0;
	piece->reads_zeros = false;
	rbx_way_move(piece, RBX_PIECE_IDLE);
}

static inline void rbx_way_prepare(struct rbx_piece *piece,
				   struct rbx_part *part,
				   struct rbx_replica *replica,
				   enum rbx_direction direction)
{
	struct rbx_fragment *fragment = &part->fragment;

	fragment->status = 0;
	fragment->retries_count = 0;
	fragment->flushes_count = 0;
	rbx_replica_take_off(replica);
	part->server = (uint16_t)rbx_replica_server(replica);
	fragment->direction = (uint8_t)direction;
	fragment->flags = piece->fragment_flags;
	fragment->rkey = replica->rkey;
	fragment->remote_addr = rbx_replica_addr(replica) + piece->offset_bytes;
	fragment->local_addr = piece->local_addr;
	fragment->length_bytes = piece->length_bytes;
	fragment->lkey = piece->lkey;
}

/* Prepares one part for each slot of a mask, which the host has to send. runs: they are added
 * here, and the slab is plain; NULL, as a constant: any slab. */
static inline void rbx_way_send(struct rbx_slab *slab, struct rbx_piece *piece,
				enum rbx_piece_state state, uint32_t mask,
				struct rbx_server_runs *runs)
{
	enum rbx_direction direction = state == RBX_PIECE_READING ?
					       RBX_DIRECTION_READ :
					       RBX_DIRECTION_WRITE;
	struct rbx_replica *frame = slab->frames;
	struct rbx_part *part = piece->parts;

	RBX_DEBUG_ASSERT(mask && !(mask & ~(uint32_t)slab->write_mask));
	rbx_way_move(piece, state);
	piece->send_mask = (uint8_t)mask;
	piece->flight_mask = (uint8_t)mask;
	/* Masks are dense, so counting slots is cheaper than finding the next one. */
	for (;;) {
		if (mask & 1) {
			rbx_way_prepare(piece, part,
					runs ? frame :
					       rbx_slab_replica(slab, part->slot),
					direction);
			if (runs)
				rbx_server_runs_add(runs, part->server,
						    &part->fragment);
		}
		mask >>= 1;
		if (!mask)
			break;
		frame++;
		part++;
	}
}

/* The number of a piece's cell among those of all slabs that share a lock. */
static inline uint64_t rbx_way_place(const struct rbx_slab_group *group,
				     const struct rbx_piece *piece)
{
	return (uint64_t)piece->slab_index << 32 |
	       piece->offset_bytes >> group->cell_shift;
}

/* false: it waits. */
static inline bool rbx_way_take_granules(struct rbx_slab_group *group,
					 struct rbx_piece *piece)
{
	piece->granules = rbx_cell_granules(piece->offset_bytes,
					    piece->length_bytes,
					    group->cell_shift);
	if (rbx_cell_take(&group->cells, piece, rbx_way_place(group, piece)))
		return true;
	rbx_way_move(piece, RBX_PIECE_WAITING);
	return false;
}

/* Whether it has to be noted first that a write comes (extents.h). Called before it takes granules:
 * from then on its extents stay safe, because it has its cell in use, or waits for it. */
static inline bool rbx_way_must_wait(const struct rbx_slab *slab,
				     const struct rbx_slab_group *group,
				     const struct rbx_piece *piece)
{
	return group->extents &&
	       !rbx_extents_may_write(group->extents, piece, rbx_slab_shape(slab)->slab_shift);
}

/* ---- The fast path ------------------------------------------------------------- */

/* A slab keeps its record from before a copy starts until it has ended, so there are no copies
 * of plain slabs. */
static inline bool rbx_way_starts_fast(const struct rbx_slab *slab,
				       const struct rbx_piece *piece)
{
	if (!slab->read_mask || !rbx_slab_is_plain(slab))
		return false;
	RBX_DEBUG_ASSERT(piece->kind != RBX_PIECE_COPY);
	(void)piece;
	return true;
}

/* The first step of such a piece: adds its parts to the runs, or it waits. */
static inline void rbx_way_start_fast(struct rbx_slab *slab,
				      struct rbx_slab_group *group,
				      struct rbx_piece *piece,
				      struct rbx_server_runs *runs)
{
	uint32_t mask = slab->read_mask;

	rbx_way_clear(slab, group, piece);
	if (piece->kind == RBX_PIECE_READ) {
		if (mask & (mask - 1))
			mask = rbx_way_choose(slab, piece, (uint8_t)mask);
		rbx_way_send(slab, piece, RBX_PIECE_READING, mask, runs);
	} else if (rbx_way_must_wait(slab, group, piece)) {
		rbx_extents_wait(slab, group, piece);
	} else if (rbx_way_take_granules(group, piece)) {
		rbx_way_send(slab, piece, RBX_PIECE_WRITING, slab->write_mask,
			     runs);
	}
}

/*
 * A part has succeeded at a replica that may be read, of a piece none of whose parts has failed by
 * a fault of this machine. So a read has its data, and a write is where readers look for it.
 * Replicas that a write missed by another fault are lost by now.
 */
static inline bool rbx_way_is_done_fast(const struct rbx_slab *slab,
					const struct rbx_part *part)
{
	const struct rbx_piece *piece = part->piece;

	return piece->flight_mask & slab->read_mask & part->bit &&
	       rbx_slab_is_plain(slab) &&
	       !(part->fragment.status | piece->tried_mask);
}

/* The step for such a part. Returns whether its piece has ended, with status 0. */
static inline bool rbx_way_done_fast(struct rbx_slab *slab,
				     struct rbx_slab_group *group,
				     const struct rbx_part *part,
				     struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	struct rbx_replica *replica = rbx_slab_frame(slab, part->slot);
	uint8_t left_mask = piece->flight_mask ^ part->bit;
	struct rbx_cell *cell;

	RBX_DEBUG_ASSERT(piece->kind != RBX_PIECE_COPY && !piece->status);
	RBX_DEBUG_ASSERT(rbx_replica_flights(replica) > 0);
	rbx_replica_land(replica);
	piece->flight_mask = left_mask;
	if (left_mask)
		return false;
	rbx_way_move(piece, RBX_PIECE_IDLE);
	cell = piece->cell;
	if (cell && rbx_cell_give(piece))
		rbx_way_serve_queue(slab, group, cell,
				    rbx_way_place(group, piece), todo);
	return true;
}

#endif
