/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rebuild.c - one copy after another, see rebuild.h.
 */
#include "core/flow.h"

#include "core/slab_rebuild.h"

/* A copy writes to tails as well. */
static uint32_t pages_of(const struct rbx_slab_shape *shape)
{
	return shape->has_tails ? (1u << shape->cell_shift) / RBX_PAGE_BYTES : 0;
}

size_t rbx_rebuild_copy_size(const struct rbx_slab_shape *shape)
{
	return rbx_piece_size(shape->slots, pages_of(shape));
}

void rbx_rebuild_lend(struct rbx_flow *flow, uint32_t number, void *memory,
		      uint64_t local_addr)
{
	struct rbx_piece *copy = memory;

	rbx_piece_init(copy, flow->map->shape.slots, pages_of(&flow->map->shape), flow,
		       rbx_flow_parts_done);
	copy->kind = RBX_PIECE_COPY;
	copy->local_addr = local_addr;
	flow->rebuild.copies[number] = copy;
}

bool rbx_rebuild_is_under_way(const struct rbx_flow *flow)
{
	return RBX_LOAD_ACQUIRE(&flow->rebuild.slab) != NULL;
}

/* Upkeep decides what is next. */
static void rebuild_ended(struct rbx_flow *flow)
{
	RBX_STORE_RELEASE(&flow->rebuild.slab, NULL);
	flow->ops->wake(flow);
}

void rbx_rebuild_start(struct rbx_flow *flow, struct rbx_slab *slab)
{
	struct rbx_piece_list list = { 0 };
	uint32_t i;

	RBX_ASSERT(!rbx_rebuild_is_under_way(flow));
	RBX_STORE_RELEASE(&flow->rebuild.slab, slab);
	/* All of them before the first starts: the rebuild ends with the last one, and the
	 * next rebuild may begin at any time, with a write that fails. */
	rbx_slab_lock(slab);
	for (i = 0; i < RBX_COPIES_MAX; i++)
		if (rbx_slab_copy_next(slab, flow->rebuild.copies[i]))
			rbx_piece_list_add(&list, flow->rebuild.copies[i]);
	/* A target that was still to be labelled was lost since: the others wait for nothing. */
	if (!list.first && rbx_slab_copied_all(slab))
		(void)rbx_attention_note(&flow->map->attention, slab);
	rbx_slab_unlock(slab);
	if (list.first)
		rbx_flow_start(flow, &list);
	else
		rebuild_ended(flow);
}

void rbx_rebuild_copy_ended(struct rbx_flow *flow, struct rbx_piece *copy)
{
	struct rbx_slab *slab = copy->slab;
	struct rbx_piece_list list = { 0 };
	bool last, more;

	if (copy->status == 0) {
		RBX_ADD_RELAXED(&flow->rebuild.copied_bytes,
				copy->length_bytes);
		RBX_ADD_RELAXED(&flow->counters->rebuilt_bytes,
				copy->length_bytes);
	}
	rbx_slab_lock(slab);
	last = rbx_slab_copy_done(slab, copy);
	more = !last && rbx_slab_copy_next(slab, copy);
	(void)rbx_attention_note(&flow->map->attention, slab);
	rbx_slab_unlock(slab);
	/* If there is no more, the piece may be part of the next rebuild by now. */
	if (more) {
		rbx_piece_list_add(&list, copy);
		rbx_flow_start(flow, &list);
	} else if (last) {
		rebuild_ended(flow);
	}
}
