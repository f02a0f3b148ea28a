/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cell.c - the busy granules of a cell and the queue behind them, see cell.h.
 *
 * The caller holds the lock of the slab.
 */
#include "core/cell.h"

RBX_STATIC_ASSERT(RBX_FRAGMENT_BYTES_MIN >= RBX_CELL_GRANULES,
		  "a granule is at least one byte");

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

bool rbx_cell_take(struct rbx_cell *cell, struct rbx_piece *piece)
{
	RBX_ASSERT(piece->granules && !piece->holds);
	if (cell->last || (cell->busy & piece->granules)) {
		cell_queue(cell, piece);
		return false;
	}
	cell->busy |= piece->granules;
	piece->holds = true;
	return true;
}

void rbx_cell_give(struct rbx_cell *cell, struct rbx_piece *piece,
		   struct rbx_piece_list *granted)
{
	struct rbx_piece *first;

	RBX_ASSERT(piece->holds);
	RBX_ASSERT((cell->busy & piece->granules) == piece->granules);
	cell->busy &= ~piece->granules;
	piece->holds = false;
	/* Bounded: each turn makes a granule busy, and there are 64. */
	while ((first = cell_first(cell)) && !(cell->busy & first->granules)) {
		cell_remove_first(cell);
		cell->busy |= first->granules;
		first->holds = true;
		rbx_piece_list_add(granted, first);
	}
}
