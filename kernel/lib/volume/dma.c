/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dma.c - maps the memory of I/Os for the device of the volume, if it has only one.
 *
 * Normally an I/O is mapped when it is submitted, and unmapped when it has ended. If there is no
 * device just now, or there are several, it is late (late.h): each peer maps what it posts.
 *
 * When the device is removed (device.h) nothing is posted any more. Submitters see that
 * there is no device. RCU waits for submitters that have not seen it. Then every I/O in flight is
 * found by its pieces, and is unmapped and late from now on. A piece and its parts get their late
 * addresses under the lock of the piece's slab, as parts take the address of their piece only
 * under that lock; and under poller.lock, as I/Os end there.
 *
 * When a volume gets its second device, I/Os that are submitted from then on are late. Those that
 * are mapped must not be sent to a server behind the other device. So no such server is connected
 * until they have ended; each ends in time, as every I/O does.
 *
 * Which pollers end an I/O: one that is mapped has parts at servers behind the first device alone,
 * so the pollers of that device end and unmap it, and the removal has their locks while it unmaps.
 * An I/O that is late is mapped by nobody but peers, each for itself, so the pollers of any device
 * may end it at any time; and the removal leaves its piece alone. It knows a late piece by its
 * address, which is set before the piece can be found: pieces are in memory of the volume. Only of
 * one that is not late does it look at the I/O, which cannot end meanwhile.
 *
 * An I/O is cut where its scatter list is cut, whatever an IOMMU has joined. So each
 * piece is one range for any device.
 */
#include "client/opening.h"
#include "kernel/lib/late.h"
#include "kernel/lib/volume/volume.h"

/* So many peer timeouts an I/O takes at most, unless only one server has its data. */
#define IO_TIMES 2u

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

	for_each_sg(io->sg, sg, io->sg_count, i)
		sg_dma_len(sg) = sg->length;
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

/* ---- All I/Os in flight ----------------------------------------------------------*/

/* The piece of this number in the pool, if it is in flight and not late; or NULL. */
static struct rbx_piece *mapped_piece(const struct rbx_volume *volume, u32 index)
{
	struct rbx_piece *piece = rbx_piece_pool_used(&volume->control.flow.pool, index);

	/* Pairs with the release of aim(), after which it has its address. */
	return piece && smp_load_acquire(&piece->user) &&
			       !rbx_addr_is_late(READ_ONCE(piece->local_addr)) ?
		       piece :
		       NULL;
}

/* Nothing of it is posted. */
static void piece_leave(const struct rbx_volume *volume, struct rbx_piece *piece)
{
	rbx_slab_lock(piece->slab);
	rbx_piece_relocate(piece, rbx_late_addr(piece->memory));
	rbx_volume_tails_leave(volume, piece);
	rbx_slab_unlock(piece->slab);
}

/* ---- Following the device ---------------------------------------------------------*/

static void unmap(struct rbx_mappings *mappings, struct ib_device *device)
{
	struct rbx_volume *volume =
		container_of(mappings, struct rbx_volume, mappings);
	struct rbx_piece *piece;
	u32 i;

	for (i = 0; i < volume->control.flow.pool.count; i++) {
		piece = mapped_piece(volume, i);
		if (!piece)
			continue;
		rbx_volume_io_unmap(volume, piece->user, device);
		piece_leave(volume, piece);
	}
	rbx_volume_tails_unmap(volume, device);
}

/* I/Os that wait are late. */
static int map(struct rbx_mappings *mappings, struct ib_device *device)
{
	return rbx_volume_tails_map(container_of(mappings, struct rbx_volume, mappings), device);
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

/* ---- Several devices -----------------------------------------------------------------*/

/* Waits for all I/Os that were submitted before. */
static int earlier_wait(struct rbx_volume *volume)
{
	struct rbx_piece_pool *pool = &volume->control.flow.pool;
	u64 timeout_ns = (u64)volume->client.options.peer_timeout_ms * NSEC_PER_MSEC;
	u64 until_ns = rbx_now_ns() + IO_TIMES * timeout_ns;
	u64 fence = rbx_piece_pool_fence(pool);
	u32 cursor = 0;
	int err = 0;

	rbx_piece_pool_unfence(pool);
	while (!err && rbx_piece_pool_older(pool, fence, &cursor))
		err = rbx_now_ns() < until_ns ? rbx_volume_turn_wait(&volume->control) : -EAGAIN;
	return err;
}

int rbx_volume_map_late(struct rbx_volume *volume)
{
	int err;

	WRITE_ONCE(volume->maps_late, true);
	if (!RBX_LOAD_ACQUIRE(&volume->control.flow.map) || volume->all_is_late)
		return 0; /* there are no I/Os yet; or it was done */
	lockdep_assert_held(&volume->add_lock);
	/* A submitter that has not seen it has its pieces by then. */
	synchronize_rcu();
	err = earlier_wait(volume);
	volume->all_is_late = !err;
	return err;
}
