/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scatter.c - splits a request with segments into pieces.
 *
 * A piece is one range of memory, so a request is cut at the end of each segment as well
 * as at the end of each cell. But some bytes must stay together: the page of a checksum,
 * and the granule of a write. Pieces that share a granule are sent one after another
 * (core/cell.h), so a header of a few bytes would cost its data another round trip. If
 * such a unit lies in several segments, it becomes a piece of its own, in a bounce page
 * (bounce.h). A read without checksums may be cut anywhere: its pieces are merged again
 * later.
 *
 * So every piece except the last ends at the end of a unit, and no two share a unit.
 */
#include "lib/volume/volume.h"

RBX_STATIC_ASSERT(RBX_FRAGMENT_BYTES_MAX / RBX_CELL_GRANULES <= RBX_PAGE_BYTES,
		  "a unit fits into a page");

static uint32_t unit_bytes(const struct rbx_volume_map *map, uint8_t op)
{
	if (map->shape.checksums)
		return RBX_PAGE_BYTES;
	if (op == RBX_WRITE)
		return ((uint32_t)1 << map->shape.cell_shift) /
		       RBX_CELL_GRANULES;
	return 1;
}

/*
 * Finds the next piece of a request: left_bytes of it are left, at this offset of the
 * volume, and segment_bytes of them are in the first segment. Returns the length, which
 * may go beyond the end of the cell.
 */
static uint32_t cut(uint64_t offset_bytes, uint32_t left_bytes,
		    uint32_t segment_bytes, uint32_t unit, bool *is_bounced)
{
	uint32_t in_unit_bytes = (uint32_t)offset_bytes & (unit - 1);
	uint32_t first_bytes = RBX_MIN(unit - in_unit_bytes, left_bytes);

	*is_bounced = segment_bytes < first_bytes;
	if (*is_bounced)
		return first_bytes;
	if (segment_bytes == left_bytes)
		return left_bytes;
	return segment_bytes - ((in_unit_bytes + segment_bytes) & (unit - 1));
}

static uint32_t cell_left(const struct rbx_volume_map *map,
			  uint64_t offset_bytes)
{
	uint32_t cell_bytes = (uint32_t)1 << map->shape.cell_shift;

	return cell_bytes - ((uint32_t)offset_bytes & (cell_bytes - 1));
}

void rbx_volume_scatter_count(const struct rbx_volume *volume,
			      const struct rbx_request *request,
			      uint32_t *pieces_count, uint32_t *bounces_count)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	uint32_t unit = unit_bytes(map, request->op);
	uint32_t left_bytes = request->length_bytes;
	uint64_t offset_bytes = request->offset;
	struct rbx_segment_walk walk;

	*pieces_count = 0;
	*bounces_count = 0;
	rbx_segment_first(&walk, request);
	while (left_bytes) {
		bool is_bounced;
		uint32_t length_bytes =
			cut(offset_bytes, left_bytes, rbx_segment_left(&walk),
			    unit, &is_bounced);

		length_bytes = RBX_MIN(length_bytes,
				       cell_left(map, offset_bytes));
		*pieces_count += 1;
		*bounces_count += is_bounced;
		rbx_segment_skip(&walk, length_bytes);
		offset_bytes += length_bytes;
		left_bytes -= length_bytes;
	}
}

struct rbx_piece *rbx_volume_scatter(struct rbx_volume *volume,
				     struct rbx_request *request,
				     struct rbx_piece *piece, uint32_t *bounce)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	uint32_t unit = unit_bytes(map, request->op);
	uint32_t left_bytes = request->length_bytes;
	uint64_t offset_bytes = request->offset;
	struct rbx_segment_walk walk;

	rbx_segment_first(&walk, request);
	for (;;) {
		bool is_bounced;
		uint32_t length_bytes =
			cut(offset_bytes, left_bytes, rbx_segment_left(&walk),
			    unit, &is_bounced);

		piece->user = request;
		piece->kind = request->op;
		piece->fragment_flags = request->flags;
		length_bytes = rbx_volume_map_aim(map, piece, offset_bytes,
						  length_bytes);
		if (is_bounced) {
			rbx_bounce_begin(&volume->bounces, bounce, &walk, piece);
		} else {
			piece->local_addr = rbx_segment_addr(&walk);
			piece->lkey = rbx_segment_lkey(&walk,
						       &piece->fragment_flags);
		}
		rbx_segment_skip(&walk, length_bytes);
		offset_bytes += length_bytes;
		left_bytes -= length_bytes;
		if (!left_bytes)
			return piece;
		piece = rbx_piece_of(piece->node.next);
	}
}
