/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_doubts.c - see slab_doubts.h.
 */
#include "core/slab_doubts.h"

void rbx_way_write_missed(struct rbx_slab *slab, const struct rbx_piece *piece,
			  uint8_t slots)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	if (doubts)
		rbx_doubts_missed(doubts, rbx_slab_checksums(slab),
				  rbx_piece_page(piece), rbx_piece_pages_count(piece), slots);
}

/* Whether the data may be at a replica all the same where the write failed here: an attempt before
 * that may have been carried out, or it was the part for the tail that failed. */
static bool may_be_there(const struct rbx_piece *piece)
{
	for (uint32_t left = piece->tried_mask; left; left &= left - 1) {
		const struct rbx_fragment *fragment =
			&piece->parts[__builtin_ctz(left)].fragment;

		if (!fragment->status || fragment->flags & RBX_FRAGMENT_AGAIN)
			return true;
	}
	return false;
}

void rbx_way_write_astray(struct rbx_slab *slab, struct rbx_piece *piece,
			  uint8_t slots)
{
	struct rbx_doubts *doubts;

	if (!slab->has_checksums || !(slots || may_be_there(piece)))
		return;
	if (!slab->has_record && rbx_slab_record_give_at_once(slab))
		slab->attention = true; /* the record may not be needed */
	doubts = rbx_slab_doubts(slab);
	if (doubts)
		rbx_doubts_have(doubts, rbx_piece_checksums(piece),
				rbx_piece_page(piece), rbx_piece_pages_count(piece), slots);
}

void rbx_way_write_arrived(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);
	bool were_later;

	if (!doubts)
		return;
	were_later = rbx_doubts_are_later(doubts);
	rbx_doubts_drop(doubts, rbx_piece_page(piece), rbx_piece_pages_count(piece));
	if (were_later && !rbx_doubts_are_later(doubts)) /* it needs no record any more */
		slab->attention = true;
}

bool rbx_way_checksums_yield(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	return doubts && rbx_doubts_yield(doubts, rbx_slab_checksums(slab),
					  rbx_piece_page(piece), rbx_piece_pages_count(piece),
					  piece->good_pages, rbx_slab_targets(slab));
}

void rbx_way_look_ends(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	if (doubts)
		rbx_doubts_look_end(doubts, rbx_piece_page(piece), rbx_piece_pages_count(piece));
}

void rbx_way_copy_begins(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	if (doubts)
		rbx_doubts_copy_begin(doubts, rbx_piece_page(piece), rbx_piece_pages_count(piece));
}

void rbx_way_copy_ends(struct rbx_slab *slab, const struct rbx_piece *piece)
{
	bool all_have_it = !(slab->write_mask & ~rbx_piece_written(piece) & ~piece->source_mask);
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);
	uint32_t slot;

	if (!doubts)
		return;
	rbx_doubts_copy_end(doubts, rbx_piece_page(piece), rbx_piece_pages_count(piece),
			    rbx_piece_written(piece), all_have_it);
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (slab->read_mask & piece->send_mask & ~rbx_piece_written(piece) &
		    1u << slot)
			rbx_doubts_resolve(doubts, rbx_slab_checksums(slab), slot,
					   rbx_slab_targets(slab));
}
