/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * extents_stale.c - what a server that was OUT may lack of a slab (extents.h): what is noted and
 * what is behind, until it is copied to a replica that has returned. The slab's lock is held.
 */
#include "core/extents.h"

void rbx_extents_begin(struct rbx_slab *slab)
{
	struct rbx_extents *extents = rbx_slab_group(slab)->extents;

	if (extents && RBX_LOAD_ACQUIRE(&extents->is_tracking))
		rbx_extent_word_of(slab)->behind = UINT64_MAX;
}

uint64_t rbx_extents_returned(struct rbx_slab *slab)
{
	struct rbx_extent_word *own = rbx_extent_word_of(slab);

	if (rbx_slab_find(slab, RBX_REPLICA_RETURNED) < 0)
		own->stale = 0; /* of one that was lost before its turn came */
	own->stale |= own->noted | own->behind;
	return own->stale;
}

void rbx_extents_stale_add(struct rbx_slab *slab, uint32_t cell)
{
	rbx_extent_word_of(slab)->stale |= rbx_extents_of_cell(rbx_slab_shape(slab), cell);
}

uint64_t rbx_extents_stale_take(struct rbx_slab *slab)
{
	uint64_t stale = rbx_extent_word_of(slab)->stale;

	rbx_extent_word_of(slab)->stale = 0;
	return stale;
}
