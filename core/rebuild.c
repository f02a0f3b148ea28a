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

/* A server may end, or take the memory back, before the replica has left. Or it only moves
 * (balance.h), and another slab that lacks a replica waits for its turn. */
static bool is_hurried(const struct rbx_flow *flow, const struct rbx_slab *slab)
{
	uint8_t moves_mask = slab->has_record ? rbx_slab_record(slab)->moves_mask : 0;
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING && !(moves_mask >> slot & 1))
			return true;
	return moves_mask && rbx_attention_count(&flow->map->attention, RBX_SLAB_LACKING);
}

/* Takes the copies that may start now off the parked ones. Returns when to look again. */
static uint64_t parked_take(struct rbx_flow *flow, struct rbx_slab *slab,
			    struct rbx_piece_list *list, uint64_t now_ns)
{
	struct rbx_rebuild *rebuild = &flow->rebuild;
	uint32_t cell_bytes = 1u << flow->map->shape.cell_shift;
	uint64_t due_ns;

	while (rebuild->parked_mask) {
		struct rbx_piece *copy = rebuild->copies[__builtin_ctz(rebuild->parked_mask)];

		due_ns = rbx_copy_pace_next(&rebuild->pace, rbx_slab_copies_count(slab), cell_bytes,
					    is_hurried(flow, slab), now_ns);
		if (due_ns)
			return due_ns;
		rebuild->parked_mask &= rebuild->parked_mask - 1;
		if (rbx_slab_copy_next(slab, copy))
			rbx_piece_list_add(list, copy);
	}
	return UINT64_MAX;
}

uint64_t rbx_rebuild_go_on(struct rbx_flow *flow, uint64_t now_ns)
{
	struct rbx_slab *slab = RBX_LOAD_ACQUIRE(&flow->rebuild.slab);
	struct rbx_piece_list list = { 0 };
	uint64_t due_ns = UINT64_MAX;
	bool ended = false;

	if (!slab)
		return UINT64_MAX;
	rbx_copy_pace_look(&flow->rebuild.pace, rbx_piece_pool_uses(&flow->pool), now_ns);
	rbx_slab_lock(slab);
	/* If none is parked, the rebuild may have ended just now. */
	if (flow->rebuild.parked_mask) {
		due_ns = parked_take(flow, slab, &list, now_ns);
		ended = !flow->rebuild.parked_mask && !rbx_slab_copies_count(slab);
	}
	/* A target that was still to be labelled was lost since: the others wait for nothing. */
	if (ended && rbx_slab_copied_all(slab))
		(void)rbx_attention_note(&flow->map->attention, slab);
	rbx_slab_unlock(slab);
	if (list.first)
		rbx_flow_start(flow, &list);
	if (ended)
		rebuild_ended(flow);
	return due_ns;
}

/* All copies are parked before the first one starts: the rebuild ends with the last one. */
void rbx_rebuild_start(struct rbx_flow *flow, struct rbx_slab *slab, uint64_t now_ns)
{
	RBX_ASSERT(!rbx_rebuild_is_under_way(flow));
	rbx_slab_lock(slab);
	flow->rebuild.parked_mask = (1u << RBX_COPIES_MAX) - 1;
	rbx_slab_unlock(slab);
	RBX_STORE_RELEASE(&flow->rebuild.slab, slab);
	(void)rbx_rebuild_go_on(flow, now_ns);
}

void rbx_rebuild_run_out(struct rbx_flow *flow)
{
	struct rbx_slab *slab = RBX_LOAD_ACQUIRE(&flow->rebuild.slab);
	bool ended;

	if (!slab)
		return;
	rbx_slab_lock(slab);
	ended = flow->rebuild.parked_mask && !rbx_slab_copies_count(slab);
	flow->rebuild.parked_mask = 0;
	rbx_slab_unlock(slab);
	if (ended)
		rebuild_ended(flow);
}

static void park(struct rbx_rebuild *rebuild, const struct rbx_piece *copy)
{
	uint32_t number = 0;

	while (rebuild->copies[number] != copy)
		number++;
	rebuild->parked_mask |= 1u << number;
}

void rbx_rebuild_copy_ended(struct rbx_flow *flow, struct rbx_piece *copy)
{
	struct rbx_slab *slab = copy->slab;
	struct rbx_piece_list list = { 0 };
	bool last, more, goes_on = rbx_copy_pace_goes_on(&flow->rebuild.pace,
							 rbx_piece_pool_uses(&flow->pool));

	if (copy->status == 0) {
		RBX_ADD_RELAXED(&flow->rebuild.copied_bytes,
				copy->length_bytes);
		RBX_ADD_RELAXED(&flow->counters->rebuilt_bytes,
				copy->length_bytes);
	}
	rbx_slab_lock(slab);
	last = rbx_slab_copy_done(slab, copy);
	more = !last && goes_on && rbx_slab_copy_next(slab, copy);
	if (last)
		flow->rebuild.parked_mask = 0;
	else if (!goes_on)
		park(&flow->rebuild, copy);
	(void)rbx_attention_note(&flow->map->attention, slab);
	rbx_slab_unlock(slab);
	/* If there is no more, the piece may be part of the next rebuild by now. */
	if (more) {
		rbx_piece_list_add(&list, copy);
		rbx_flow_start(flow, &list);
	} else if (last) {
		rebuild_ended(flow);
	} else if (!goes_on) {
		flow->ops->wake(flow);
	}
}
