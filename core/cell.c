/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cell.c - cells in use, and the queues of pieces that wait for granules, see cell.h.
 *
 * The caller holds the lock of the slab, which guards its cells.
 */
#include "core/cell.h"

RBX_STATIC_ASSERT(RBX_FRAGMENT_BYTES_MIN >= RBX_CELL_GRANULES,
		  "a granule is at least one byte");

/* Puts a piece at the end of the queue. */
static void cell_queue(struct rbx_cell *cell, struct rbx_piece *piece)
{
	struct rbx_node *node = &piece->node;

	if (cell->last) {
		node->next = cell->last->next;
		cell->last->next = node;
	} else {
		node->next = node;
	}
	cell->last = node;
}

/* The first piece at a place puts its own cell there. */
static void cell_begin(struct rbx_cell **bucket, struct rbx_cell *own,
		       uint64_t place)
{
	own->place = place;
	own->next = *bucket;
	own->link = bucket;
	if (own->next)
		own->next->link = &own->next;
	*bucket = own;
}

/* The cell at a place; the piece puts its own cell there, or leaves it with the one that is
 * there. Bounded by the pieces, and short: see RBX_CELL_BUCKETS. */
static struct rbx_cell *cell_join(struct rbx_cell **bucket,
				  struct rbx_piece *piece, uint64_t place)
{
	struct rbx_cell *own = piece->spare_cell, *cell = *bucket;

	RBX_DEBUG_ASSERT(!own->busy && !own->last && !own->spare);
	while (cell && cell->place != place)
		cell = cell->next;
	if (!cell) {
		cell_begin(bucket, own, place);
		return own;
	}
	own->next = cell->spare;
	cell->spare = own;
	return cell;
}

bool rbx_cell_take_slowly(struct rbx_cell **bucket, struct rbx_piece *piece,
			  uint64_t place)
{
	struct rbx_cell *cell = cell_join(bucket, piece, place);

	if (cell->last || (cell->busy & piece->granules)) {
		cell_queue(cell, piece);
		return false;
	}
	cell->busy |= piece->granules;
	piece->cell = cell;
	return true;
}

static struct rbx_piece *cell_first(const struct rbx_cell *cell)
{
	return cell->last ? rbx_piece_of(cell->last->next) : NULL;
}

static void cell_remove_first(struct rbx_cell *cell)
{
	struct rbx_node *first = cell->last->next;

	if (first == cell->last)
		cell->last = NULL;
	else
		cell->last->next = first->next;
}

struct rbx_piece *rbx_cell_admit(struct rbx_cell *cell)
{
	struct rbx_piece *first = cell_first(cell);

	if (!first || (cell->busy & first->granules))
		return NULL;
	cell_remove_first(cell);
	cell->busy |= first->granules;
	first->cell = cell;
	return first;
}

static struct rbx_cell **bucket_of(struct rbx_cells *cells, uint64_t place)
{
	return &cells->buckets[place % RBX_CELL_BUCKETS];
}

void rbx_cell_wait(struct rbx_cells *cells, struct rbx_piece *piece,
		   uint64_t place)
{
	cell_queue(cell_join(bucket_of(cells, place), piece, place), piece);
}

struct rbx_piece *rbx_cell_dismiss(struct rbx_cells *cells, uint64_t place,
				   bool *more)
{
	struct rbx_cell *cell = *bucket_of(cells, place);
	struct rbx_piece *piece;

	while (cell->place != place)
		cell = cell->next;
	piece = cell_first(cell);
	cell_remove_first(cell);
	*more = rbx_cell_has_queue(cell);
	if (cell->spare)
		rbx_cell_leave(piece, cell);
	else
		rbx_cell_end(piece, cell);
	return piece;
}
