/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dma.c - maps the memory of I/Os and copies for the device, whichever it is now.
 *
 * Normally an I/O is mapped when it is submitted, and unmapped when it has ended.
 *
 * When the device is removed (device.h) nothing is posted any more. Submitters see that
 * there is no device and leave their I/Os unmapped. RCU waits for submitters that have
 * not seen it. Then every I/O in flight is found by its pieces and unmapped. When there
 * is a device again, submitters map for it. The same walk maps what is not mapped yet,
 * and sets the new address in each piece and its parts. This is done under the lock of
 * the piece's slab, as parts take the address of their piece only under that lock; and
 * under poller.lock, as I/Os end there.
 *
 * An I/O is cut where its scatter list is cut, whatever an IOMMU has joined. So each
 * piece is one range for any device.
 */
#include "kernel/lib/volume/volume.h"

/* With checksums, a read's data may be written to a replica that had wrong data. */
static enum dma_data_direction direction_of(const struct rbx_volume *volume,
					    const struct rbx_io *io)
{
	if (io->op == RBX_IO_WRITE)
		return DMA_TO_DEVICE;
	return volume->control.flow.map->shape.checksums ? DMA_BIDIRECTIONAL :
						   DMA_FROM_DEVICE;
}

/* ---- One I/O ------------------------------------------------------------------*/

/* As if it were mapped, but without addresses. */
static void map_none(struct rbx_io *io)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sg(io->sg, sg, io->sg_count, i) {
		sg_dma_address(sg) = 0;
		sg_dma_len(sg) = sg->length;
	}
	io->mapped_count = io->sg_count;
}

int rbx_volume_io_map(const struct rbx_volume *volume, struct rbx_io *io,
		      struct ib_device *device)
{
	io->is_mapped = device;
	if (!device) {
		map_none(io);
		return 0;
	}
	io->mapped_count = (u32)ib_dma_map_sg(device, io->sg, (int)io->sg_count,
					      direction_of(volume, io));
	io->is_mapped = io->mapped_count;
	return io->is_mapped ? 0 : -ENOMEM;
}

void rbx_volume_io_unmap(const struct rbx_volume *volume, struct rbx_io *io,
			 struct ib_device *device)
{
	if (io->is_mapped)
		ib_dma_unmap_sg(device, io->sg, (int)io->sg_count,
				direction_of(volume, io));
	io->is_mapped = false;
}

/* The device's address of a byte of the I/O. */
static u64 address_of(const struct rbx_io *io, u64 offset_bytes)
{
	struct scatterlist *sg = io->sg;

	while (offset_bytes >= sg_dma_len(sg)) {
		offset_bytes -= sg_dma_len(sg);
		sg = sg_next(sg);
	}
	return sg_dma_address(sg) + offset_bytes;
}

/* ---- All I/Os in flight ----------------------------------------------------------*/

static void piece_relocate(struct rbx_piece *piece, u64 addr)
{
	struct rbx_slab *slab = READ_ONCE(piece->slab);
	bool again;

	/* A copy may go on to another slab meanwhile; then this is done once more. */
	do {
		rbx_slab_lock(slab);
		rbx_piece_relocate(piece, addr);
		rbx_slab_unlock(slab);
		again = READ_ONCE(piece->slab) != slab;
		slab = READ_ONCE(piece->slab);
	} while (again);
}

/* The I/O of a piece that is in use. NULL: it has none, or it is being submitted; then
 * the submitter maps it. */
static struct rbx_io *io_of(const struct rbx_volume *volume, u32 index,
			    struct rbx_piece **piece)
{
	*piece = rbx_piece_pool_used(&volume->control.flow.pool, index);
	return *piece ? smp_load_acquire(&(*piece)->user) : NULL;
}

static void ios_unmap(struct rbx_volume *volume, struct ib_device *device)
{
	struct rbx_piece *piece;
	struct rbx_io *io;
	u32 i;

	for (i = 0; i < volume->control.flow.pool.count; i++) {
		io = io_of(volume, i, &piece);
		if (io)
			rbx_volume_io_unmap(volume, io, device);
	}
}

static int ios_map(struct rbx_volume *volume, struct ib_device *device)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	struct rbx_piece *piece;
	struct rbx_io *io;
	u32 i;

	for (i = 0; i < volume->control.flow.pool.count; i++) {
		io = io_of(volume, i, &piece);
		if (!io)
			continue;
		if (!io->is_mapped && rbx_volume_io_map(volume, io, device))
			return -ENOMEM;
		piece_relocate(piece,
			       address_of(io, rbx_volume_map_offset(map, piece) -
						      io->offset_bytes));
	}
	return 0;
}

/* ---- Copies of a rebuild ----------------------------------------------------------*/

static size_t copy_bytes(const struct rbx_volume *volume)
{
	return (size_t)1 << volume->control.flow.map->shape.cell_shift;
}

/* Unmaps the first `count` copies. */
static void copies_unmap(struct rbx_volume *volume, struct ib_device *device,
			 u32 count)
{
	while (count--)
		ib_dma_unmap_single(
			device, volume->control.flow.rebuild.copies[count]->local_addr,
			copy_bytes(volume), DMA_BIDIRECTIONAL);
	volume->copies_are_mapped = false;
}

static int copies_map(struct rbx_volume *volume, struct ib_device *device)
{
	u32 i;

	for (i = 0; i < RBX_COPIES_MAX; i++) {
		struct rbx_piece *copy = volume->control.flow.rebuild.copies[i];
		u64 addr = ib_dma_map_single(device, volume->copies_memory[i],
					     copy_bytes(volume),
					     DMA_BIDIRECTIONAL);

		if (ib_dma_mapping_error(device, addr)) {
			copies_unmap(volume, device, i);
			return -ENOMEM;
		}
		piece_relocate(copy, addr);
	}
	volume->copies_are_mapped = true;
	return 0;
}

/* ---- Following the device ---------------------------------------------------------*/

static void unmap(struct rbx_mappings *mappings, struct ib_device *device)
{
	struct rbx_volume *volume =
		container_of(mappings, struct rbx_volume, mappings);

	ios_unmap(volume, device);
	if (volume->copies_are_mapped)
		copies_unmap(volume, device, RBX_COPIES_MAX);
}

static int map(struct rbx_mappings *mappings, struct ib_device *device)
{
	struct rbx_volume *volume =
		container_of(mappings, struct rbx_volume, mappings);
	int err = ios_map(volume, device);

	if (!err && !volume->copies_are_mapped)
		err = copies_map(volume, device);
	return err;
}

int rbx_volume_mappings_open(struct rbx_volume *volume)
{
	volume->mappings = (struct rbx_mappings){ .map = map, .unmap = unmap };
	return rbx_context_add_mappings(volume->ctx, &volume->mappings);
}

void rbx_volume_mappings_close(struct rbx_volume *volume)
{
	rbx_context_remove_mappings(volume->ctx, &volume->mappings);
}
