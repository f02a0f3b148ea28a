/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_submit.c - the way of an I/O through a volume: mapped for DMA, split into
 * pieces, sent, joined.
 *
 * All the pieces that an I/O needs are taken in one step: all or nothing. Each
 * piece makes a step of its slab under the slab's lock; what comes out is done
 * without it: parts are sent, all those of one peer together, and ended pieces
 * joined into their I/O. Nothing here allocates or blocks.
 *
 * A part that is done makes the next step of its slab, which may send the same
 * piece on to another replica, or let others go that waited for it. What one poll
 * finds done takes these steps together: neighbours in the list that are of one
 * slab share one turn of its lock.
 */
#include <linux/module.h>

#include "kernel/lib/trace.h"
#include "kernel/lib/volume.h"

/* ---- Sending ------------------------------------------------------------------*/

/* Parts on their way to their peers. A piece has as many peers as slots, so more
 * rarely come together. */
struct batch {
	struct rbx_volume *volume;
	uint32_t count;
	struct {
		uint32_t server;
		struct rbx_fragment *first;
		struct rbx_fragment *last;
	} runs[RBX_SLOTS_MAX];
};

static void batch_send(struct batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->count; i++)
		rbx_peer_submit(batch->volume->servers[batch->runs[i].server].peer,
				batch->runs[i].first, batch->runs[i].last);
	batch->count = 0;
}

static void batch_add(struct batch *batch, struct rbx_part *part)
{
	struct rbx_fragment *fragment = &part->fragment;
	uint32_t i = 0;

	while (i < batch->count && batch->runs[i].server != part->server)
		i++;
	if (i == RBX_SLOTS_MAX) {
		batch_send(batch);
		i = 0;
	}
	if (i == batch->count) {
		batch->count++;
		batch->runs[i].server = part->server;
		batch->runs[i].first = NULL;
	}
	rbx_fragment_append(&batch->runs[i].first, &batch->runs[i].last,
			    fragment, fragment);
}

/* What a piece in READING or WRITING wants: its parts sent. */
static void piece_send(struct batch *batch, struct rbx_piece *piece)
{
	/* Once the last part is sent the piece may end and be reused. */
	uint32_t mask = piece->send_mask;

	for (; mask; mask &= mask - 1)
		batch_add(batch, &piece->parts[__ffs(mask)]);
}

/* Has a piece ended by the poller, as if by a completion. */
static void piece_end_later(struct rbx_volume *volume, struct rbx_piece *piece)
{
	struct rbx_fragment *fragment = &piece->parts[0].fragment;

	fragment->node.next = NULL;
	rbx_poller_end(&volume->ctx->poller, fragment);
}

/* Those from the front of the list that are of one slab make their first step
 * in one turn of its lock. */
static void slab_start(struct rbx_volume *volume, struct rbx_piece_list *pieces,
		       struct rbx_piece_list *todo)
{
	struct rbx_slab *slab = rbx_piece_of(pieces->first)->slab;

	rbx_volume_lock(volume, slab);
	do
		rbx_slab_start(slab, rbx_piece_list_take(pieces), todo);
	while (pieces->first && rbx_piece_of(pieces->first)->slab == slab);
	rbx_volume_unlock(volume, slab);
}

void rbx_volume_start(struct rbx_volume *volume, struct rbx_piece_list *pieces)
{
	struct rbx_piece_list todo = { 0 };
	struct batch batch = { .volume = volume };
	struct rbx_piece *piece;

	while (pieces->first)
		slab_start(volume, pieces, &todo);
	while ((piece = rbx_piece_list_take(&todo))) {
		if (piece->state == RBX_PIECE_IDLE)
			piece_end_later(volume, piece);
		else
			piece_send(&batch, piece);
	}
	batch_send(&batch);
}

/* ---- Ending -------------------------------------------------------------------*/

static enum dma_data_direction direction_of(const struct rbx_io *io)
{
	return io->op == RBX_IO_WRITE ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

/* Adds the I/Os that have ended with these pieces to a list. */
static struct rbx_io *ended_ios(const struct rbx_piece_list *ended)
{
	struct rbx_io *list = NULL;
	struct rbx_node *node;

	for (node = ended->first; node; node = node->next) {
		struct rbx_piece *piece = rbx_piece_of(node);
		struct rbx_io *io = piece->user;
		int none = 0;

		/* It has the status of the first of its pieces that failed. */
		if (piece->status)
			(void)RBX_COMPARE_EXCHANGE(&io->status, &none,
						   piece->status);
		if (RBX_FETCH_ADD(&io->pieces_left, (uint32_t)-1) != 1)
			continue;
		io->next = list;
		list = io;
	}
	return list;
}

/* The pieces are put back before anybody hears of it, so that who submits from
 * done() finds the room that was left. */
static void join(struct rbx_volume *volume, struct rbx_piece_list *ended)
{
	struct rbx_io *io = ended_ios(ended), *next;

	(void)rbx_piece_pool_give(&volume->pool, ended);
	for (; io; io = next) {
		next = io->next;
		io->ended_ns = volume->ctx->poller.round_ns;
		ib_dma_unmap_sg(volume->ctx->device, io->sg, (int)io->sg_count,
				direction_of(io));
		io->done(io);
	}
}

/* The read of an I/O is about to be sent to another replica. */
static bool is_failover(const struct rbx_piece *piece, int32_t status)
{
	return status && piece->state == RBX_PIECE_READING &&
	       piece->kind == RBX_PIECE_READ;
}

/* The next step of a slab, whose lock is held, for one part. */
static void part_done(struct rbx_volume *volume, struct rbx_part *part,
		      struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	int32_t status = part->fragment.status;

	if (piece->state == RBX_PIECE_IDLE) { /* from piece_end_later() */
		rbx_piece_list_add(todo, piece);
		return;
	}
	/* -EBADMSG is for data whose checksum does not match. */
	rbx_slab_done(piece->slab, part, status == -EBADMSG ? -EIO : status,
		      todo);
	if (is_failover(piece, status))
		RBX_ADD_RELAXED(&volume->failovers, 1);
}

/* The steps of the slab of the first part, up to the first part of another
 * slab, which is returned. */
static struct rbx_fragment *slab_parts_done(struct rbx_volume *volume,
					    struct rbx_fragment *list,
					    struct rbx_piece_list *todo)
{
	struct rbx_slab *slab = rbx_part_of(list)->piece->slab;
	bool attention;

	rbx_volume_lock(volume, slab);
	do {
		struct rbx_fragment *next = rbx_fragment_next(list);

		part_done(volume, rbx_part_of(list), todo);
		list = next;
	} while (list && rbx_part_of(list)->piece->slab == slab);
	attention = rbx_slab_attention(slab);
	rbx_volume_unlock(volume, slab);
	if (attention)
		rbx_volume_keeper_wake(volume);
	return list;
}

/* Does what the steps of slabs have put on the list. */
static void carry_out(struct rbx_volume *volume, struct rbx_piece_list *todo)
{
	struct batch batch = { .volume = volume };
	struct rbx_piece_list ended = { 0 };
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(todo))) {
		if (piece->state != RBX_PIECE_IDLE)
			piece_send(&batch, piece);
		else if (piece->kind == RBX_PIECE_COPY)
			rbx_volume_copy_ended(volume, piece);
		else
			rbx_piece_list_add(&ended, piece);
	}
	batch_send(&batch);
	if (ended.first)
		join(volume, &ended);
}

/* No piece is twice on the list of things to do: what a step puts there has no
 * part under way before it is carried out. */
void rbx_volume_parts_done(struct rbx_fragment *list)
{
	while (list) {
		struct rbx_volume *volume = rbx_part_of(list)->piece->owner;
		struct rbx_piece_list todo = { 0 };

		do
			list = slab_parts_done(volume, list, &todo);
		while (list && rbx_part_of(list)->piece->owner == volume);
		carry_out(volume, &todo);
	}
}

/* ---- Submitting ---------------------------------------------------------------*/

/* Counts the pieces of what was mapped, and its bytes. */
static uint32_t pieces_of(const struct rbx_volume *volume,
			  const struct rbx_io *io, uint64_t *length_bytes)
{
	uint64_t offset_bytes = io->offset_bytes;
	struct scatterlist *sg;
	uint32_t count = 0, i;

	for_each_sg(io->sg, sg, io->mapped_count, i) {
		count += rbx_volume_map_pieces(volume->map, offset_bytes,
					       sg_dma_len(sg));
		offset_bytes += sg_dma_len(sg);
	}
	*length_bytes = offset_bytes - io->offset_bytes;
	return count;
}

/* Aims the pieces of an I/O, all that the list has. */
static void aim(struct rbx_volume *volume, struct rbx_io *io,
		struct rbx_piece_list *pieces)
{
	uint64_t offset_bytes = io->offset_bytes;
	struct rbx_piece_list aimed = { 0 };
	struct scatterlist *sg;
	uint32_t i;

	for_each_sg(io->sg, sg, io->mapped_count, i) {
		uint32_t done_bytes = 0;

		while (done_bytes < sg_dma_len(sg)) {
			struct rbx_piece *piece = rbx_piece_list_take(pieces);

			piece->user = io;
			piece->kind = io->op == RBX_IO_READ ? RBX_PIECE_READ :
							      RBX_PIECE_WRITE;
			piece->fragment_flags =
				io->urgent ? RBX_FRAGMENT_URGENT : 0;
			piece->local_addr = sg_dma_address(sg) + done_bytes;
			done_bytes += rbx_volume_map_aim(
				volume->map, piece, offset_bytes + done_bytes,
				sg_dma_len(sg) - done_bytes);
			rbx_piece_list_add(&aimed, piece);
		}
		offset_bytes += sg_dma_len(sg);
	}
	*pieces = aimed;
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
	rbx_volume_start(volume, &held);
}
EXPORT_SYMBOL_GPL(rbx_volume_unplug);

int rbx_volume_submit(struct rbx_volume *volume, struct rbx_io *io,
		      struct rbx_plug *plug)
{
	struct ib_device *device = volume->ctx->device;
	uint64_t size_bytes = volume->map->size_bytes, length_bytes;
	struct rbx_piece_list pieces = { 0 };
	int err;

	io->mapped_count = (u32)ib_dma_map_sg(device, io->sg, (int)io->sg_count,
					      direction_of(io));
	if (!io->mapped_count)
		return -ENOMEM;
	io->status = 0;
	io->pieces_left = pieces_of(volume, io, &length_bytes);
	err = -EINVAL;
	if (io->offset_bytes > size_bytes ||
	    length_bytes > size_bytes - io->offset_bytes ||
	    io->pieces_left > volume->pool.count)
		goto out_unmap;
	err = rbx_piece_pool_take(&volume->pool, io->pieces_left, &pieces);
	if (err)
		goto out_unmap;
	trace_rdmabox_submit(io, length_bytes, io->pieces_left);
	aim(volume, io, &pieces);
	/* With its last piece started the I/O may be gone. */
	if (plug)
		plug_hold(plug, &pieces);
	else
		rbx_volume_start(volume, &pieces);
	return 0;

out_unmap:
	ib_dma_unmap_sg(device, io->sg, (int)io->sg_count, direction_of(io));
	return err;
}
EXPORT_SYMBOL_GPL(rbx_volume_submit);
