/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit.c - an I/O of a volume: mapped for DMA, split into pieces, started, joined.
 *
 * All pieces that an I/O needs are taken in one step: all or nothing. The core decides
 * what happens to them (flow.h). Ended pieces come back and are joined into their I/O.
 * With checksums a piece consists of whole pages of the volume, in one range of memory
 * (stretch.h). Nothing here allocates or blocks.
 */
#include <linux/bottom_half.h>
#include <linux/module.h>

#include "kernel/lib/broken.h"
#include "kernel/lib/late.h"
#include "kernel/lib/stretch.h"
#include "kernel/lib/trace.h"
#include "kernel/lib/volume/volume.h"

/* ---- Ending -------------------------------------------------------------------*/

/* Adds the I/Os whose last piece is among these to a list. A piece that reads zeros is
 * kept for its I/O. */
static struct rbx_io *ended_ios(struct rbx_piece_list *ended)
{
	struct rbx_piece_list left = { 0 };
	struct rbx_io *list = NULL;
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(ended))) {
		struct rbx_io *io = piece->user;
		int none = 0;

		if (piece->reads_zeros) {
			/* Pieces of one I/O may end in several pollers at once. */
			piece->node.next = RBX_LOAD_RELAXED(&io->zeros);
			while (!RBX_COMPARE_EXCHANGE(
				&io->zeros, &piece->node.next, &piece->node))
				;
		} else {
			WRITE_ONCE(piece->user, NULL);
			rbx_piece_list_add(&left, piece);
		}
		/* The status of an I/O is that of its first piece that failed. */
		if (piece->status)
			(void)RBX_COMPARE_EXCHANGE(&io->status, &none,
						   piece->status);
		if (RBX_FETCH_ADD(&io->pieces_left, (uint32_t)-1) != 1)
			continue;
		io->next = list;
		list = io;
	}
	*ended = left;
	return list;
}

/*
 * Fills with zeros what was read from slabs that no server has lent, and puts these
 * pieces back. This is done after the memory was unmapped, as unmapping may copy into it
 * what the device has left there. The place of a piece is computed from its offset in the
 * I/O, since its address is one of the device.
 */
static void zeros_fill(struct rbx_volume *volume, struct rbx_io *io)
{
	struct rbx_piece_list filled = { 0 };
	struct rbx_node *node, *next;

	for (node = io->zeros; node; node = next) {
		struct rbx_piece *piece = rbx_piece_of(node);
		u64 offset_bytes = rbx_volume_map_offset(volume->control.flow.map, piece);

		next = node->next;
		sg_zero_buffer(io->sg, io->sg_count, piece->length_bytes,
			       (off_t)(offset_bytes - io->offset_bytes));
		WRITE_ONCE(piece->user, NULL);
		rbx_piece_list_add(&filled, piece);
	}
	(void)rbx_piece_pool_give(&volume->control.flow.pool, &filled);
}

/* The most I/Os that end together, as other softirqs of the processor wait meanwhile.
 * Long work is done before. */
#define END_TOGETHER_MAX 32

/* Ends the first of a list; returns the rest. If a done() raises a softirq
 * (kernel/block/ending.h), it runs once for all of them. */
static struct rbx_io *some_end(struct rbx_volume *volume, struct rbx_io *first, u64 now_ns)
{
	struct rbx_io *io = first, *next;
	u32 i, count;

	for (count = 0; io && count < END_TOGETHER_MAX; count++, io = io->next) {
		io->ended_ns = now_ns;
		rbx_volume_io_unmap(volume, io, volume->ctx->device);
		if (io->zeros)
			zeros_fill(volume, io);
		if (rbx_has_broken() && !io->status)
			io->status = -EIO;
	}
	local_bh_disable();
	for (i = 0, io = first; i < count; i++, io = next) {
		next = io->next;
		io->done(io);
	}
	local_bh_enable();
	return io;
}

/* The pieces are put back before done() is called, so that a submit from done() finds
 * their room. */
static void ended(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	struct rbx_volume *volume = rbx_volume_of_flow(flow);
	struct rbx_io *io = ended_ios(pieces);
	u64 now_ns = io ? ktime_get_ns() : 0;

	if (pieces->first)
		(void)rbx_piece_pool_give(&flow->pool, pieces);
	while (io)
		io = some_end(volume, io, now_ns);
}

/* ---- Called by the flow -----------------------------------------------------------*/

static void end_later(struct rbx_flow *flow, struct rbx_fragment *fragment)
{
	rbx_poller_end(&rbx_volume_of_flow(flow)->ctx->pollers[0], fragment);
}

static void wake(struct rbx_flow *flow)
{
	rbx_volume_upkeep_wake(rbx_volume_control_of_flow(flow));
}

/* The CPU has written the data of a write before they were mapped, so it sees them. It
 * also sees memory that was unmapped when the device was removed, or is mapped late. */
static const void *look(struct rbx_flow *flow, const struct rbx_piece *piece)
{
	const struct rbx_volume *volume = rbx_volume_of_flow(flow);
	const struct rbx_io *io = piece->user;

	if (piece->kind == RBX_PIECE_READ && io->is_mapped)
		ib_dma_sync_single_for_cpu(volume->ctx->device,
					   piece->local_addr,
					   piece->length_bytes,
					   DMA_BIDIRECTIONAL);
	return piece->memory;
}

const struct rbx_flow_ops rbx_volume_flow_ops = {
	.submit = rbx_volume_send,
	.end_later = end_later,
	.ended = ended,
	.wake = wake,
	.look = look,
	.show = rbx_volume_tails_show,
};

/* ---- Submitting ---------------------------------------------------------------*/

/* Counts the pieces and the bytes of an I/O that was mapped. -EINVAL: it is beyond the
 * volume, or has a part of a page although the volume has checksums. */
static int pieces_count(const struct rbx_volume *volume, struct rbx_io *io,
			uint64_t *length_bytes)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	uint64_t offset_bytes = io->offset_bytes, cuts = offset_bytes;
	struct rbx_stretch stretch;

	if (offset_bytes > map->size_bytes)
		return -EINVAL;
	io->pieces_left = 0;
	for (rbx_stretch_first(&stretch, io->sg, io->mapped_count);
	     stretch.length_bytes;
	     rbx_stretch_next(&stretch, stretch.length_bytes)) {
		io->pieces_left += rbx_volume_map_pieces(map, offset_bytes,
							 stretch.length_bytes);
		offset_bytes += stretch.length_bytes;
		cuts |= offset_bytes;
	}
	*length_bytes = offset_bytes - io->offset_bytes;
	if (offset_bytes > map->size_bytes ||
	    io->pieces_left > volume->control.flow.pool.count ||
	    (map->shape.checksums && cuts % RBX_PAGE_BYTES))
		return -EINVAL;
	return 0;
}

/* Sets the pieces of an I/O; the list has exactly as many as it needs. */
static void aim(struct rbx_volume *volume, struct rbx_io *io,
		const struct rbx_piece_list *pieces)
{
	uint64_t offset_bytes = io->offset_bytes;
	struct rbx_stretch stretch;
	struct rbx_node *node;

	rbx_stretch_first(&stretch, io->sg, io->mapped_count);
	for (node = pieces->first; node; node = node->next) {
		struct rbx_piece *piece = rbx_piece_of(node);

		piece->kind = io->op == RBX_IO_READ ? RBX_PIECE_READ :
						      RBX_PIECE_WRITE;
		piece->fragment_flags = io->urgent ? RBX_FRAGMENT_URGENT : 0;
		piece->local_addr = io->is_mapped ? stretch.addr : rbx_late_addr(stretch.memory);
		piece->memory = stretch.memory;
		(void)rbx_volume_map_aim(volume->control.flow.map, piece, offset_bytes,
					 stretch.length_bytes);
		rbx_volume_tails_aim(volume, piece, io->is_mapped);
		offset_bytes += piece->length_bytes;
		rbx_stretch_next(&stretch, piece->length_bytes);
		/* From now on dma.c can find it. */
		smp_store_release(&piece->user, io);
	}
}

void rbx_plug_init(struct rbx_plug *plug)
{
	*plug = (struct rbx_plug){ 0 };
	spin_lock_init(&plug->lock);
}
EXPORT_SYMBOL_GPL(rbx_plug_init);

static void plug_hold(struct rbx_plug *plug, struct rbx_piece_list *pieces)
{
	struct rbx_piece_list held;

	spin_lock(&plug->lock);
	held = (struct rbx_piece_list){ plug->first, plug->last };
	rbx_piece_list_append(&held, pieces);
	plug->first = held.first;
	plug->last = held.last;
	spin_unlock(&plug->lock);
}

void rbx_volume_unplug(struct rbx_volume *volume, struct rbx_plug *plug)
{
	struct rbx_piece_list held;

	spin_lock(&plug->lock);
	held = (struct rbx_piece_list){ plug->first, plug->last };
	plug->first = NULL;
	spin_unlock(&plug->lock);
	rbx_flow_start(&volume->control.flow, &held);
}
EXPORT_SYMBOL_GPL(rbx_volume_unplug);

/* Maps an I/O and takes all the pieces that it needs, or undoes both. */
static int io_prepare(struct rbx_volume *volume, struct rbx_io *io,
		      struct rbx_piece_list *pieces)
{
	struct ib_device *device = unlikely(READ_ONCE(volume->maps_late)) ?
					   NULL :
					   READ_ONCE(volume->ctx->open_device);
	uint64_t length_bytes;
	int err = rbx_volume_io_map(volume, io, device);

	if (err)
		return err;
	io->status = 0;
	io->zeros = NULL;
	err = pieces_count(volume, io, &length_bytes);
	if (!err)
		err = rbx_piece_pool_take(&volume->control.flow.pool, io->pieces_left,
					  pieces);
	if (err) {
		rbx_volume_io_unmap(volume, io, device);
		return err;
	}
	trace_rdmabox_submit(io, length_bytes, io->pieces_left);
	aim(volume, io, pieces);
	return 0;
}

int rbx_volume_submit(struct rbx_volume *volume, struct rbx_io *io,
		      struct rbx_plug *plug)
{
	struct rbx_piece_list pieces = { 0 };
	int err;

	if (rbx_has_broken())
		return -EIO;
	/* The removal of a device waits for this, and then finds the I/O (dma.c). */
	rcu_read_lock();
	err = io_prepare(volume, io, &pieces);
	rcu_read_unlock();
	if (err)
		return err;
	/* Once its last piece has started the I/O may have ended. */
	if (plug)
		plug_hold(plug, &pieces);
	else
		rbx_flow_start(&volume->control.flow, &pieces);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_volume_submit);

int rbx_volume_discard(struct rbx_volume *volume, u64 offset_bytes,
		       u64 length_bytes)
{
	const struct rbx_volume_map *map = volume->control.flow.map;

	if (offset_bytes > map->size_bytes ||
	    length_bytes > map->size_bytes - offset_bytes)
		return -EINVAL;
	if (!map->shape.on_demand || map->shape.is_named)
		return -EOPNOTSUPP;
	rbx_flow_discard(&volume->control.flow, offset_bytes, length_bytes);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_volume_discard);
