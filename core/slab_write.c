/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_write.c - how the second half of a piece ends: of a write, or of what follows the read of a
 * copy or of a repair; see slab_way.h.
 *
 * If all replicas have it, that is simple. Else it matters whose fault it was. A replica whose
 * server has failed is lost. But by a fault of this machine replicas that stay may differ, and what
 * is read must not be one thing now and another one later.
 */
#include "core/slab_way.h"

#include "core/checksum.h"
#include "core/slab_away.h"
#include "core/slab_doubts.h"
#include "core/slab_rebuild.h"
#include "core/status.h"

static inline uint32_t piece_cell(const struct rbx_slab *slab,
				  const struct rbx_piece *piece)
{
	return piece->offset_bytes >> rbx_slab_shape(slab)->cell_shift;
}

/* The slab was lost before: these pages are good again. */
static void hole_fill(struct rbx_slab *slab,
		      const struct rbx_piece *piece)
{
	if (!rbx_lost_pages_written(rbx_slab_pages(slab), piece->offset_bytes,
				    piece->length_bytes))
		return;
	slab->has_holes = false;
	slab->attention = true;
}

/* A page's checksum changes when the write that changes the page has succeeded. If it fails,
 * the old page stays, and so does its checksum. */
static void note_written(struct rbx_slab *slab, struct rbx_piece *piece)
{
	if (piece->kind != RBX_PIECE_WRITE)
		return;
	if (slab->has_checksums) {
		rbx_way_write_arrived(slab, piece);
		rbx_checksum_store(rbx_slab_checksums(slab), piece);
	}
	if (slab->has_holes)
		hole_fill(slab, piece);
}

static void write_succeed(struct rbx_slab *slab, struct rbx_piece *piece,
			  struct rbx_piece_list *todo)
{
	note_written(slab, piece);
	rbx_way_end(piece, 0, todo);
}

/*
 * No readable replica has the write, and those that are left have failed it by a fault of
 * this machine: bad memory, or a device. Usually nothing of it was sent. But a device may
 * find the fault in the middle of the write, and an earlier attempt may have been carried out
 * when the connection broke. So each replica has, byte by byte, the old data or the new, and
 * not the same as the others.
 *
 * Without checksums any of these is a valid result of a failed write, as long as readers do
 * not see one now and another later. So one readable replica is the truth, and the others are
 * not read until they have its cell. Nothing was acknowledged, so each of them can still
 * replace it if it is lost meanwhile.
 *
 * With checksums, that of the old page stays valid. A replica with the old page is read.
 * Pages with parts of the new data count as bad and are repaired by reads. Choosing a truth
 * now might choose a bad page. But if it turns out that no replica has the old page, and some
 * have the new one, then the new one is the truth (doubts.h).
 *
 * If servers keep the checksums, too, those may be of the old page or of the new one, whatever page
 * is there. The next open decides by the data (extents.h).
 *
 * A replica that is being rebuilt must not keep data that the source does not have, and gets
 * the cell once more. Until then it has the new page, in case it becomes the last replica.
 */
static void write_failed_here(struct rbx_slab *slab,
			      struct rbx_piece *piece)
{
	uint8_t differ = piece->send_mask & rbx_slab_targets(slab);

	if (!slab->read_mask)
		return;
	rbx_way_write_astray(slab, piece, rbx_piece_written(piece) & differ);
	if (!slab->has_checksums)
		differ |= slab->read_mask & (slab->read_mask - 1u);
	rbx_slab_differ(slab, differ, piece_cell(slab, piece));
}

/*
 * Some readable replicas have the write, and others missed it by a fault of this machine. It
 * is not acknowledged: until those are made like the first, it is on fewer servers than was
 * promised. All the same it is the truth, and so is its checksum. But a page that was lost
 * stays lost, because those others do not have it.
 */
static void write_missed(struct rbx_slab *slab, struct rbx_piece *piece,
			 uint8_t missed)
{
	rbx_slab_differ(slab, missed, piece_cell(slab, piece));
	if (!slab->has_checksums)
		return;
	rbx_way_write_missed(slab, piece, missed);
	rbx_checksum_store(rbx_slab_checksums(slab), piece);
}

/* All replicas have answered, and some failed. A replica whose failure was not this machine's
 * is lost by now. */
static void write_end(struct rbx_slab *slab, struct rbx_piece *piece,
		      struct rbx_piece_list *todo)
{
	uint8_t missed = piece->tried_mask & slab->write_mask;
	bool is_readable = rbx_piece_written(piece) & slab->read_mask;

	/* A replica that is AWAY by now may have it, while others have not; or the other way round.
	 */
	if (slab->has_away)
		rbx_slab_missed(slab, piece->offset_bytes, piece->length_bytes);

	/* If the slab was discarded meanwhile, the write counts as earlier than that. */
	if (slab->blank || (!missed && is_readable)) {
		write_succeed(slab, piece, todo);
		return;
	}
	if (rbx_slab_shape(slab)->has_tails)
		rbx_extents_stray(rbx_slab_group(slab)->extents, piece,
				  rbx_slab_shape(slab)->slab_shift);
	if (is_readable) {
		write_missed(slab, piece, missed);
		rbx_way_end(piece, piece->status, todo);
	} else {
		write_failed_here(slab, piece);
		rbx_way_end(piece, piece->status ? piece->status : -EIO, todo);
	}
}

/* The same for the second half of a copy, which is made again if this machine is at fault; or
 * of a repair, whose reader already has its data. */
static void second_half_end(struct rbx_slab *slab, struct rbx_piece *piece,
			    struct rbx_piece_list *todo)
{
	int32_t status = 0;

	if (piece->kind == RBX_PIECE_COPY)
		rbx_way_copy_ends(slab, piece);
	if (piece->kind == RBX_PIECE_COPY && piece->status)
		status = piece->status;
	else if (piece->kind == RBX_PIECE_COPY && !rbx_piece_written(piece))
		status = -EHOSTUNREACH;
	rbx_way_end(piece, status, todo);
}

void rbx_way_write_failed(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
			  int32_t status)
{
	piece->failed_mask |= (uint8_t)(1u << slot);
	/* It may be back before the other parts are done. */
	if (slab->has_away && piece->kind == RBX_PIECE_WRITE)
		rbx_slab_missed(slab, piece->offset_bytes, piece->length_bytes);
	if (rbx_status_class(status) != RBX_STATUS_LOCAL) {
		rbx_slab_part_lost(slab, slot);
		return;
	}
	piece->status = status;
	if (piece->kind == RBX_PIECE_WRITE)
		piece->tried_mask |= (uint8_t)(1u << slot);
}

void rbx_way_write_done(struct rbx_slab *slab, struct rbx_piece *piece,
			struct rbx_piece_list *todo)
{
	if (piece->flight_mask)
		return;
	/* All of them have it, and at least one of them is readable. */
	if (!piece->failed_mask && piece->send_mask & slab->read_mask)
		write_succeed(slab, piece, todo);
	else if (piece->kind == RBX_PIECE_WRITE)
		write_end(slab, piece, todo);
	else
		second_half_end(slab, piece, todo);
}
