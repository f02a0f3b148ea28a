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
 * A cell is 16 bytes for each fragment_bytes of the volume (0.012 %), directly
 * indexed: no table to size, no collisions. Zeroed memory is an idle cell.
 */
#ifndef RBX_CELL_H
#define RBX_CELL_H

#include "core/piece.h"

#define RBX_CELL_GRANULES 64u

struct rbx_cell {
	uint64_t busy; /* a bit for each granule */
	struct rbx_node *last; /* the queue as a ring: last->next is first */
};

/* The granules of a range; cell_shift is log2 of the cell's bytes. */
static inline uint64_t rbx_cell_granules(uint32_t offset_in_cell_bytes,
					 uint32_t length_bytes,
					 uint32_t cell_shift)
{
	uint32_t shift = cell_shift - 6;
	uint32_t first = offset_in_cell_bytes >> shift;
	uint32_t last = (offset_in_cell_bytes + length_bytes - 1) >> shift;

	RBX_DEBUG_ASSERT(first <= last && last < RBX_CELL_GRANULES);
	return (UINT64_MAX >> (63 - (last - first))) << first;
}

/* Puts a piece at the end of the queue. */
void rbx_cell_queue(struct rbx_cell *cell, struct rbx_piece *piece);

/* The first of the queue where it has its granules now, taken off the queue; or
 * NULL. To be asked until it says so, whenever granules were given back. */
struct rbx_piece *rbx_cell_grant(struct rbx_cell *cell);

/* true: the piece has its granules. false: it stands in the queue. */
static inline bool rbx_cell_take(struct rbx_cell *cell, struct rbx_piece *piece)
{
	RBX_DEBUG_ASSERT(piece->granules && !piece->cell);
	if (cell->last || (cell->busy & piece->granules)) {
		rbx_cell_queue(cell, piece);
		return false;
	}
	cell->busy |= piece->granules;
	piece->cell = cell;
	return true;
}

/* Gives the granules back, which somebody in the queue may wait for. */
static inline void rbx_cell_give(struct rbx_piece *piece)
{
	struct rbx_cell *cell = piece->cell;

	RBX_DEBUG_ASSERT((cell->busy & piece->granules) == piece->granules);
	cell->busy &= ~piece->granules;
	piece->cell = NULL;
}

static inline bool rbx_cell_has_queue(const struct rbx_cell *cell)
{
	return cell->last != NULL;
}

#endif
