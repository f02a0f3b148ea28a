/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* workspace.c - see workspace.h. */
#include "client/workspace.h"

#include "client/opening.h"
#include "core/status.h"
#include "core/tails.h"

#define PAUSE_NS 1000000u
#define CELL_PAGES_MAX (RBX_FRAGMENT_BYTES_MAX / RBX_PAGE_BYTES)

/* ---- Reading and writing ------------------------------------------------------------*/

static struct rbx_fragment *ios_done(struct rbx_fragment *list)
{
	while (list && list->done == ios_done) {
		struct rbx_workspace_io *io =
			RBX_CONTAINER_OF(list, struct rbx_workspace_io, part.fragment);
		struct rbx_fragment *next = rbx_fragment_next(list);

		if (list->status && rbx_status_class(list->status) == RBX_STATUS_LOCAL)
			RBX_STORE_RELAXED(&io->space->local_err, list->status);
		else if (list->status)
			RBX_STORE_RELAXED(&io->space->sources[io->replica].is_bad, true);
		/* The thread that waits for it may free all that is here. */
		RBX_FETCH_ADD(&io->space->left_count, (uint32_t)-1);
		list = next;
	}
	return list;
}

static uint64_t addr_of(const struct rbx_workspace *space, const void *memory)
{
	const struct rbx_scratch_chunk *chunk = space->chunks;

	while ((uintptr_t)memory - (uintptr_t)chunk->memory >= chunk->bytes)
		chunk++;
	return chunk->addr + ((uintptr_t)memory - (uintptr_t)chunk->memory);
}

void rbx_workspace_begin(struct rbx_workspace *space, uint32_t replica,
			 enum rbx_direction direction, uint64_t offset_bytes, const void *memory,
			 uint32_t length_bytes)
{
	struct rbx_workspace_source *source = &space->sources[replica];
	struct rbx_flow *flow = &space->control->flow;
	struct rbx_workspace_io *io = &space->ios[space->ios_count++];

	*io = (struct rbx_workspace_io){
		.part = {
			.fragment = {
				.direction = (uint8_t)direction,
				.rkey = source->loan.rkey,
				.remote_addr = source->loan.remote_addr + offset_bytes,
				.local_addr = addr_of(space, memory),
				.length_bytes = length_bytes,
				.done = ios_done,
			},
			.piece = space->piece,
			.server = (uint16_t)source->server,
			.slot = (uint8_t)source->slot,
		},
		.space = space,
		.replica = replica,
	};
	RBX_FETCH_ADD(&space->left_count, 1);
	flow->ops->submit(flow, source->server, &io->part.fragment, &io->part.fragment);
}

int rbx_workspace_wait(struct rbx_workspace *space)
{
	int err;

	while (RBX_LOAD_ACQUIRE(&space->left_count))
		if (rbx_volume_turn_wait(space->control))
			rbx_pause_ns(PAUSE_NS); /* it ends in time, and its memory is ours */
	space->ios_count = 0;
	err = space->local_err; /* nobody else writes it now */
	space->local_err = 0;
	return err;
}

/* ---- Memory -------------------------------------------------------------------------*/

void rbx_workspace_free(struct rbx_workspace *space)
{
	rbx_scratch_free(&space->scratch);
	rbx_memory_free(space->piece);
	rbx_memory_free(space->ios);
	rbx_memory_free(space);
}

static int room_make(struct rbx_workspace *space)
{
	const struct rbx_slab_shape *shape = &space->control->flow.map->shape;
	uint32_t tail_bytes = (1u << shape->slab_shift) / RBX_PAGE_BYTES * RBX_WIRE_CHECKSUM_BYTES;
	uint32_t reads = (tail_bytes >> shape->cell_shift) + 1, i;

	/* Of each replica: the parts of its tail, or each page of a cell and its checksum. */
	space->ios = rbx_memory_make(RBX_SLOTS_MAX * (size_t)RBX_MAX(reads, 2 * CELL_PAGES_MAX) *
				    sizeof(*space->ios));
	space->piece = rbx_memory_make(sizeof(*space->piece));
	if (!space->ios || !space->piece)
		return -ENOMEM;
	for (i = 0; i < shape->slots; i++) {
		space->chunks[2 * i].bytes = tail_bytes;
		space->chunks[2 * i + 1].bytes = 1u << shape->cell_shift;
	}
	space->scratch.chunks = space->chunks;
	space->scratch.chunks_count = 2 * shape->slots;
	return rbx_scratch_make(&space->scratch);
}

struct rbx_workspace *rbx_workspace_make(struct rbx_volume_control *control)
{
	struct rbx_workspace *space = rbx_memory_make(sizeof(*space));

	if (!space)
		return NULL;
	space->control = control;
	if (!room_make(space))
		return space;
	rbx_workspace_free(space);
	return NULL;
}
