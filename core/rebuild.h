/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rebuild.h - copies the cells of a slab to a new replica.
 *
 * Slabs are rebuilt one at a time, with RBX_COPIES_MAX cells under way. Upkeep starts a
 * rebuild. Then the end of each copy starts the next one, and the last wakes upkeep for the
 * next slab. Requests go on meanwhile, and writes go to the new replica too.
 *
 * While copies yield, or keep to a rate (copy_pace.h), a copy that has ended is parked, and
 * upkeep starts it again.
 *
 * The host provides the pieces and a cell of memory for each in advance: a rebuild must not
 * fail for lack of memory.
 */
#ifndef RBX_REBUILD_H
#define RBX_REBUILD_H

#include "core/copy_pace.h"
#include "core/slab.h"

struct rbx_flow;

struct rbx_rebuild {
	struct rbx_slab *slab; /* atomic; NULL: none is under way */
	struct rbx_piece *copies[RBX_COPIES_MAX];
	uint32_t parked_mask; /* of copies; with the lock of the slab */
	struct rbx_copy_pace pace;
	uint64_t copied_bytes; /* atomic: ever */
};

/* Bytes of memory for the piece of a copy. */
size_t rbx_rebuild_copy_size(const struct rbx_slab_shape *shape);
/* Gives the rebuild zeroed memory of that size for a piece of the flow's map, with a cell at
 * local_addr, for the copy of this number. Before the first rebuild. */
void rbx_rebuild_lend(struct rbx_flow *flow, uint32_t number, void *memory,
		      uint64_t local_addr);

/* Begins the rebuild of a slab; none is under way. By the upkeep thread alone, as the two below. */
void rbx_rebuild_start(struct rbx_flow *flow, struct rbx_slab *slab, uint64_t now_ns);
/* Starts the copies that are parked, as many as may be. Returns when to call it again; UINT64_MAX:
 * when it is woken. */
uint64_t rbx_rebuild_go_on(struct rbx_flow *flow, uint64_t now_ns);
/* Nothing is to be copied any more: the rebuild ends with the copies that are under way. */
void rbx_rebuild_run_out(struct rbx_flow *flow);

bool rbx_rebuild_is_under_way(const struct rbx_flow *flow);

/* A copy has ended; starts the next. For flow.c. */
void rbx_rebuild_copy_ended(struct rbx_flow *flow, struct rbx_piece *copy);

#endif
