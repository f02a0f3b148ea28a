/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tails.c - where a device finds the checksums that are written to servers (core/tails.h).
 *
 * Each piece has a place in the chunks here, which its checksums are copied to before it is
 * sent. Those of a piece itself could not be mapped: the pool has no pages of its own.
 *
 * The chunks are mapped for the first device as long as it is there, as mapping a place for each
 * write would cost more than it is worth. Pieces whose I/O is mapped find them there; those whose
 * I/O is late, and copies, have late addresses of their places. A device only reads them, so
 * nothing in them changes when they are unmapped, whoever else is using them.
 *
 * Show does nothing while they are not mapped, as whoever maps a place shows it. It finds the
 * device in an RCU section, and RCU waits for those that have found it before it is unmapped
 * (context.c).
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/tails.h"
#include "kernel/lib/late.h"
#include "kernel/lib/volume/volume.h"

/* Of a piece, or of a copy: the checksums of a cell. */
#define PLACE_BYTES (RBX_FRAGMENT_BYTES_DEFAULT / RBX_PAGE_BYTES * RBX_WIRE_CHECKSUM_BYTES)
#define CHUNK_PLACES ((u32)PAGE_SIZE / PLACE_BYTES)

/* Pieces of the pool come first. */
static u32 place_of(const struct rbx_volume *volume, const struct rbx_piece *piece)
{
	u32 i;

	if (piece->kind != RBX_PIECE_COPY)
		return piece->pool_index;
	for (i = 0; volume->control.flow.rebuild.copies[i] != piece; i++)
		continue;
	return volume->control.flow.pool.count + i;
}

static struct rbx_volume_tails_chunk *chunk_of(const struct rbx_volume *volume, u32 place)
{
	return &volume->tails.chunks[place / CHUNK_PLACES];
}

static u32 at_bytes(u32 place)
{
	return place % CHUNK_PLACES * PLACE_BYTES;
}

static char *memory_of(const struct rbx_volume *volume, u32 place)
{
	return (char *)chunk_of(volume, place)->memory + at_bytes(place);
}

/* ---- Pieces ------------------------------------------------------------------------------- */

void rbx_volume_tails_leave(const struct rbx_volume *volume, struct rbx_piece *piece)
{
	if (volume->tails.chunks)
		rbx_tails_relocate(piece,
				   rbx_late_addr(memory_of(volume, place_of(volume, piece))));
}

void rbx_volume_tails_aim(const struct rbx_volume *volume, struct rbx_piece *piece,
			  bool is_mapped)
{
	u32 place = piece->pool_index;

	if (!volume->tails.chunks)
		return;
	/* Pairs with the release of rbx_volume_tails_map(). */
	if (is_mapped && smp_load_acquire(&volume->tails.are_mapped))
		rbx_tails_relocate(piece, chunk_of(volume, place)->addr + at_bytes(place));
	else
		rbx_volume_tails_leave(volume, piece);
}

void rbx_volume_tails_show(struct rbx_flow *flow, struct rbx_piece *piece)
{
	struct rbx_volume *volume = rbx_volume_of_flow(flow);
	u32 bytes = rbx_piece_pages_count(piece) * RBX_WIRE_CHECKSUM_BYTES;
	u32 place = place_of(volume, piece);
	struct ib_device *device;

	memcpy(memory_of(volume, place), rbx_piece_checksums(piece), bytes);
	rcu_read_lock();
	device = READ_ONCE(volume->ctx->open_device);
	if (device && smp_load_acquire(&volume->tails.are_mapped))
		ib_dma_sync_single_for_device(device, chunk_of(volume, place)->addr +
						      at_bytes(place),
					      bytes, DMA_TO_DEVICE);
	rcu_read_unlock();
}

/* ---- Following the first device ------------------------------------------------------------- */

void rbx_volume_tails_unmap(struct rbx_volume *volume, struct ib_device *device)
{
	struct rbx_volume_tails *tails = &volume->tails;

	WRITE_ONCE(tails->are_mapped, false);
	while (tails->mapped_count)
		ib_dma_unmap_single(device, tails->chunks[--tails->mapped_count].addr, PAGE_SIZE,
				    DMA_TO_DEVICE);
}

int rbx_volume_tails_map(struct rbx_volume *volume, struct ib_device *device)
{
	struct rbx_volume_tails *tails = &volume->tails;

	if (tails->are_mapped)
		return 0;
	while (tails->mapped_count < tails->chunks_count) {
		struct rbx_volume_tails_chunk *chunk = &tails->chunks[tails->mapped_count];

		chunk->addr = ib_dma_map_single(device, chunk->memory, PAGE_SIZE, DMA_TO_DEVICE);
		if (ib_dma_mapping_error(device, chunk->addr))
			return -ENOMEM;
		tails->mapped_count++;
	}
	/* Pairs with the load of rbx_volume_tails_aim(): then they have addresses. */
	smp_store_release(&tails->are_mapped, tails->chunks_count);
	return 0;
}

/* ---- Open and close -------------------------------------------------------------------------- */

static int chunks_make(struct rbx_volume_tails *tails)
{
	u32 i;

	tails->chunks = kvcalloc(tails->chunks_count, sizeof(*tails->chunks), GFP_KERNEL);
	for (i = 0; tails->chunks && i < tails->chunks_count; i++) {
		tails->chunks[i].memory = kzalloc(PAGE_SIZE, GFP_KERNEL);
		if (!tails->chunks[i].memory)
			return -ENOMEM;
	}
	return tails->chunks ? 0 : -ENOMEM;
}

int rbx_volume_tails_open(struct rbx_volume *volume)
{
	const struct rbx_flow *flow = &volume->control.flow;
	u32 i;
	int err;

	BUILD_BUG_ON(PAGE_SIZE % PLACE_BYTES);
	if (!flow->map->shape.has_tails)
		return 0;
	volume->tails.chunks_count =
		DIV_ROUND_UP(flow->pool.count + RBX_COPIES_MAX, CHUNK_PLACES);
	err = chunks_make(&volume->tails);
	for (i = 0; !err && i < RBX_COPIES_MAX; i++)
		rbx_volume_tails_leave(volume, flow->rebuild.copies[i]);
	return err;
}

void rbx_volume_tails_close(struct rbx_volume *volume)
{
	struct rbx_volume_tails *tails = &volume->tails;
	u32 i;

	for (i = 0; tails->chunks && i < tails->chunks_count; i++)
		kfree(tails->chunks[i].memory);
	kvfree(tails->chunks);
	tails->chunks = NULL;
}
