/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cell.h - serializes pieces that overlap within a cell.
 *
 * Replicas must not diverge: if two writes overlap, the same one must be last at each
 * replica. So a write marks its granules (64ths of the cell) busy before it is sent, and
 * frees them when every replica has answered. A piece that finds a granule busy waits in the
 * queue of the cell. The queue is strictly first in, first out. So a copy of the whole cell
 * is never starved, and taking and giving back cost the same however many pieces wait.
 *
 * Rounding to granules makes some neighbours wait that do not overlap. A cell is as long as a
 * fragment, so a granule is 2 KiB by default.
 *
 * A cell exists only while pieces use it, in a hash table of the slabs that share a lock
 * (slab.h). Its memory comes from the pieces, as with the turnstiles of an operating system:
 * each piece owns one cell. The first piece at a place puts in its own; pieces that join
 * leave theirs with it; each piece that leaves takes one of these along, and the last takes
 * the cell itself. So there are always enough cells and nothing is allocated. The cost of a
 * volume does not depend on its number of cells.
 */
#ifndef RBX_CELL_H
#define RBX_CELL_H

#include "core/limits.h"
#include "core/piece.h"

#define RBX_CELL_GRANULES 64u

/* Zeroed: no cell is in use. A cell's bucket follows from its number in the slab. */
struct rbx_cells {
	struct rbx_cell *buckets[RBX_CELL_BUCKETS];
};

/* The granules of a range of a slab that lies in one cell; cell_shift is log2 of the
 * cell's bytes. */
static inline uint64_t rbx_cell_granules(uint32_t offset_bytes,
					 uint32_t length_bytes,
					 uint32_t cell_shift)
{
	uint32_t shift = cell_shift - 6;
	uint32_t first = offset_bytes >> shift;
	uint32_t last = (offset_bytes + length_bytes - 1) >> shift;

	RBX_DEBUG_ASSERT(first <= last && first / RBX_CELL_GRANULES ==
						  last / RBX_CELL_GRANULES);
	return (((uint64_t)2 << (last - first)) - 1)
	       << (first % RBX_CELL_GRANULES);
}

/* Takes the cell at a place if others may be there, or at least in the same bucket. */
bool rbx_cell_take_slowly(struct rbx_cell **bucket, struct rbx_piece *piece,
			  uint64_t place);

/* true: the piece has its granules of the cell at this place. A place is the slab above 32
 * bits of cell number. false: the piece waits in the queue there. */
static inline bool rbx_cell_take(struct rbx_cells *cells,
				 struct rbx_piece *piece, uint64_t place)
{
	struct rbx_cell **bucket = &cells->buckets[place % RBX_CELL_BUCKETS];
	struct rbx_cell *own = piece->spare_cell;

	RBX_DEBUG_ASSERT(piece->granules && !piece->cell);
	if (*bucket)
		return rbx_cell_take_slowly(bucket, piece, place);
	RBX_DEBUG_ASSERT(!own->last && !own->spare);
	/* As cell_begin() of cell.c, but the place is the only one in its bucket. */
	own->busy = piece->granules;
	own->place = place;
	own->next = NULL;
	own->link = bucket;
	*bucket = own;
	piece->cell = own;
	return true;
}

static inline bool rbx_cell_has_queue(const struct rbx_cell *cell)
{
	return cell->last != NULL;
}

/* The last piece leaves this cell, and takes it along. */
static inline void rbx_cell_end(struct rbx_piece *piece, struct rbx_cell *cell)
{
	RBX_DEBUG_ASSERT(!cell->busy && !cell->last && !cell->spare);
	piece->spare_cell = cell;
	*cell->link = cell->next;
	if (cell->next)
		cell->next->link = cell->link;
}

/* A piece leaves this cell to other pieces, and takes a spare cell along. */
static inline void rbx_cell_leave(struct rbx_piece *piece,
				  struct rbx_cell *cell)
{
	piece->spare_cell = cell->spare;
	cell->spare = cell->spare->next;
}

/* Gives the granules back. Returns whether pieces in the queue may wait for them. */
static inline bool rbx_cell_give(struct rbx_piece *piece)
{
	struct rbx_cell *cell = piece->cell;

	RBX_DEBUG_ASSERT((cell->busy & piece->granules) == piece->granules);
	piece->cell = NULL;
	/* Each piece but the first has left its own cell here, so there is no other. */
	if (!cell->spare) {
		RBX_DEBUG_ASSERT(cell->busy == piece->granules);
		cell->busy = 0;
		rbx_cell_end(piece, cell);
		return false;
	}
	cell->busy &= ~piece->granules;
	rbx_cell_leave(piece, cell);
	return rbx_cell_has_queue(cell);
}

/* Queues a piece at a place where no piece holds granules, and admits the first of the queue.
 * *more: whether others wait there. */
void rbx_cell_wait(struct rbx_cells *cells, struct rbx_piece *piece,
		   uint64_t place);
struct rbx_piece *rbx_cell_dismiss(struct rbx_cells *cells, uint64_t place,
				   bool *more);

/* The first piece of the queue if it gets its granules now, taken off the queue; else NULL.
 * To be called until it returns NULL, whenever granules were given back. */
struct rbx_piece *rbx_cell_admit(struct rbx_cell *cell);

#endif
