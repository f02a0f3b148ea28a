/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rebuild.h - copies the cells of a slab to a new replica.
 *
 * Slabs are rebuilt one at a time, with RBX_COPIES_MAX cells under way. Upkeep starts a
 * rebuild. Then the end of each copy starts the next one, and the last wakes upkeep for the
 * next slab. Requests go on meanwhile, and writes go to the new replica too.
 *
 * The host provides the pieces and a cell of memory for each in advance: a rebuild must not
 * fail for lack of memory.
 */
#ifndef RBX_REBUILD_H
#define RBX_REBUILD_H

#include "core/slab.h"

struct rbx_flow;

struct rbx_rebuild {
	struct rbx_slab *slab; /* atomic; NULL: none is under way */
	struct rbx_piece *copies[RBX_COPIES_MAX];
	uint64_t copied_bytes; /* atomic: ever */
};

/* Bytes of memory for the piece of a copy. */
size_t rbx_rebuild_copy_size(const struct rbx_slab_shape *shape);
/* Gives the rebuild zeroed memory of that size for a piece of the flow's map, with a cell at
 * local_addr, for the copy of this number. Before the first rebuild. */
void rbx_rebuild_lend(struct rbx_flow *flow, uint32_t number, void *memory,
		      uint64_t local_addr);

/* Starts the rebuild of a slab, if none is under way. By the upkeep thread alone. */
void rbx_rebuild_start(struct rbx_flow *flow, struct rbx_slab *slab);

bool rbx_rebuild_is_under_way(const struct rbx_flow *flow);

/* A copy has ended; starts the next. For flow.c. */
void rbx_rebuild_copy_ended(struct rbx_flow *flow, struct rbx_piece *copy);

#endif
