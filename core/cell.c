/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cell.c - the queue behind the busy granules of a cell, see cell.h.
 *
 * The caller holds the lock of the slab.
 */
#include "core/cell.h"

RBX_STATIC_ASSERT(RBX_FRAGMENT_BYTES_MIN >= RBX_CELL_GRANULES,
		  "a granule is at least one byte");

void rbx_cell_queue(struct rbx_cell *cell, struct rbx_piece *piece)
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

struct rbx_piece *rbx_cell_grant(struct rbx_cell *cell)
{
	struct rbx_piece *first = cell_first(cell);

	if (!first || (cell->busy & first->granules))
		return NULL;
	cell_remove_first(cell);
	cell->busy |= first->granules;
	first->cell = cell;
	return first;
}
