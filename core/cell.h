/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cell.h - keeps what overlaps in a cell one after another.
 *
 * Replicas must not diverge: of two writes that overlap, each replica has to
 * see the same one last. So a write makes its granules (64ths of the cell)
 * busy before it is sent and free when every replica has answered. Whoever
 * finds a granule busy waits in the cell's queue. The queue is served strictly
 * in order: nobody passes, so a copy of the whole cell is never starved, and
 * taking and giving cost the same however many wait.
 *
 * The rounding to granules makes neighbours wait that do not overlap; the
 * cell is a fragment long, so a granule is 2 KiB with the default.
 *
 * A cell is there only while somebody is at it, in a hash table of the slabs that
 * share a lock (slab.h). Its memory is lent as with the turnstiles of an operating
 * system: each piece owns one cell. The first one at a place lends its own; those
 * that join it leave theirs with it; and each that goes takes one of these along, the
 * last one the cell itself. So there are always enough, nothing is allocated, and a
 * volume costs the same however many cells it has.
 */
#ifndef RBX_CELL_H
#define RBX_CELL_H

#include "core/limits.h"
#include "core/piece.h"

#define RBX_CELL_GRANULES 64u

/* Zeroed: nobody is at any cell. A cell's bucket is that of its number in the slab. */
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

/* Takes the cell at a place where others may be, in the same bucket at least. */
bool rbx_cell_take_slowly(struct rbx_cell **bucket, struct rbx_piece *piece,
			  uint64_t place);

/* true: the piece has its granules of the cell at this place, which is a slab above 32
 * bits of a cell. false: it stands in the queue there. */
static inline bool rbx_cell_take(struct rbx_cells *cells,
				 struct rbx_piece *piece, uint64_t place)
{
	struct rbx_cell **bucket = &cells->buckets[place % RBX_CELL_BUCKETS];
	struct rbx_cell *own = piece->spare_cell;

	RBX_DEBUG_ASSERT(piece->granules && !piece->cell);
	if (*bucket)
		return rbx_cell_take_slowly(bucket, piece, place);
	RBX_DEBUG_ASSERT(!own->last && !own->spare);
	own->busy = piece->granules;
	own->place = place;
	own->next = NULL;
	own->link = bucket;
	*bucket = own;
	piece->cell = own;
	return true;
}

/* A piece that has no granules there is at this cell no longer, and takes one along. */
static inline void rbx_cell_leave(struct rbx_piece *piece,
				  struct rbx_cell *cell)
{
	if (cell->spare) {
		piece->spare_cell = cell->spare;
		cell->spare = cell->spare->next;
		return;
	}
	RBX_DEBUG_ASSERT(!cell->busy && !cell->last);
	piece->spare_cell = cell;
	*cell->link = cell->next;
	if (cell->next)
		cell->next->link = cell->link;
}

/* Gives the granules back, which somebody in the queue may wait for. */
static inline void rbx_cell_give(struct rbx_piece *piece)
{
	struct rbx_cell *cell = piece->cell;

	RBX_DEBUG_ASSERT((cell->busy & piece->granules) == piece->granules);
	cell->busy &= ~piece->granules;
	piece->cell = NULL;
	rbx_cell_leave(piece, cell);
}

/* A piece waits at a place where nobody has granules; and the first that does goes, of
 * at least one. *more: whether others wait there. */
void rbx_cell_wait(struct rbx_cells *cells, struct rbx_piece *piece,
		   uint64_t place);
struct rbx_piece *rbx_cell_dismiss(struct rbx_cells *cells, uint64_t place,
				   bool *more);

/* The first of the queue where it has its granules now, taken off the queue; or
 * NULL. To be asked until it says so, whenever granules were given back. */
struct rbx_piece *rbx_cell_admit(struct rbx_cell *cell);

static inline bool rbx_cell_has_queue(const struct rbx_cell *cell)
{
	return cell->last != NULL;
}

#endif
