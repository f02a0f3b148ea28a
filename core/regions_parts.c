/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_parts.c - a request consists of parts of regions, and of gaps between them.
 */
#include "core/regions_internal.h"

static void part_put(struct rbx_region_use *use, uint32_t at, uint32_t slot, bool is_fresh)
{
	uint64_t below = use->fresh & (((uint64_t)1 << at) - 1);
	uint32_t i;

	RBX_ASSERT(use->count < RBX_REGION_PARTS_MAX);
	for (i = use->count; i > at; i--)
		use->parts[i] = use->parts[i - 1];
	use->parts[at] = slot;
	use->count++;
	use->fresh = below | (uint64_t)is_fresh << at | (use->fresh ^ below) << 1;
}

/* The gap between regions at this page, as far as the request goes, and from there to the borders
 * of the pages that map it. */
static struct rbx_regions_piece gap_at(const struct rbx_regions *regions,
				       const struct rbx_region_use *use,
				       uint64_t page)
{
	uint64_t last_page = use->mapping_pages - 1;
	struct rbx_regions_piece gap = { page & ~last_page, (use->end + last_page) & ~last_page,
					 RBX_REGION_NONE, false };
	uint32_t before = rbx_region_index_at(&regions->index, page);
	uint32_t behind = rbx_region_index_from(&regions->index, page);

	if (before != RBX_REGION_NONE)
		gap.first = RBX_MAX(gap.first, rbx_region_end(rbx_regions_at(regions, before)));
	if (behind != RBX_REGION_NONE)
		gap.end = RBX_MIN(gap.end, rbx_regions_at(regions, behind)->first);
	/* A region's pages are 32 bits. */
	gap.end = RBX_MIN(gap.end, gap.first + UINT32_MAX);
	return gap;
}

/* The part of a request that begins at this page; it has so many before. The last one that it may
 * have is all that is left. */
static struct rbx_regions_piece piece_at(const struct rbx_regions *regions,
					 const struct rbx_region_use *use,
					 uint64_t page, uint32_t before)
{
	uint32_t slot = rbx_regions_find(regions, page);
	struct rbx_regions_piece piece;

	if (slot == RBX_REGION_NONE)
		piece = gap_at(regions, use, page);
	else
		piece = (struct rbx_regions_piece){
			page, rbx_region_end(rbx_regions_at(regions, slot)), slot, false
		};
	if (piece.end < use->end && before + 1 == RBX_REGION_PARTS_MAX)
		piece = (struct rbx_regions_piece){ page, use->end, RBX_REGION_NONE, true };
	return piece;
}

struct rbx_regions_lack rbx_regions_ask(const struct rbx_regions *regions,
					const struct rbx_region_use *use)
{
	struct rbx_regions_lack lack = { .rest = use->end };
	uint64_t page = use->first;
	uint32_t parts;

	for (parts = 0; page < use->end; parts++) {
		const struct rbx_regions_piece piece = piece_at(regions, use, page, parts);
		uint64_t pages = piece.end - piece.first;

		page = piece.end;
		if (piece.slot == RBX_REGION_NONE) {
			lack.pages += pages <= UINT32_MAX ? pages : RBX_REGIONS_TOO_MANY;
			lack.count++;
			if (piece.is_rest)
				lack.rest = piece.first;
			continue;
		}
		lack.known++;
		if (!rbx_regions_at(regions, piece.slot)->references) {
			lack.idle_pages += rbx_regions_at(regions, piece.slot)->pages;
			lack.idle_count++;
		}
	}
	return lack;
}

void rbx_regions_take(struct rbx_regions *regions, struct rbx_region_use *use, bool create)
{
	uint64_t page = use->first;
	uint32_t at = 0, parts;

	for (parts = 0; page < use->end; parts++) {
		struct rbx_regions_piece piece = piece_at(regions, use, page, parts);
		bool is_gap = piece.slot == RBX_REGION_NONE;

		page = piece.end;
		if (piece.is_rest)
			rbx_regions_drop_range(regions, piece.first, piece.end);
		if (is_gap && !create)
			continue;
		if (is_gap)
			piece.slot = rbx_regions_promise(regions, &piece);
		if (is_gap || at == use->count || use->parts[at] != piece.slot) {
			rbx_regions_reference(regions, rbx_regions_at(regions, piece.slot));
			part_put(use, at, piece.slot, is_gap);
		}
		if (is_gap)
			regions->policy->admit(regions, piece.slot);
		at++;
	}
}

RBX_APART void rbx_regions_release_parts(struct rbx_regions *regions, struct rbx_region_use *use)
{
	while (use->count)
		rbx_regions_unreference(regions, use->parts[--use->count]);
}

void rbx_regions_release_gone(struct rbx_regions *regions, struct rbx_region_use *use)
{
	uint32_t kept = 0, i;

	for (i = 0; i < use->count; i++)
		if (rbx_region_is_indexed(rbx_regions_at(regions, use->parts[i])))
			use->parts[kept++] = use->parts[i];
		else
			rbx_regions_unreference(regions, use->parts[i]);
	use->count = kept;
}

void rbx_regions_release_rest(struct rbx_regions *regions, struct rbx_region_use *use,
			      uint64_t rest)
{
	while (use->count && rbx_regions_at(regions, use->parts[use->count - 1])->first >= rest)
		rbx_regions_unreference(regions, use->parts[--use->count]);
}
