/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_search.c - the search for pages that match their checksums, see slab_way.h.
 *
 * A read of a whole piece, with its granules held, has left pages in its memory that do not match.
 * One replica after another is asked for these, and for no others: one stretch of neighbours after
 * another, as a part is of one stretch. So what is good stays, wherever it came from, and the
 * search ends well as soon as each page was good at some replica. All pages of the piece are
 * compared each time, because a checksum may become that of another write meanwhile (doubts.h).
 *
 * Bounded: a replica is asked for no page twice, and all of them once more for each doubt.
 */
#include "core/slab_doubts.h"
#include "core/slab_way.h"

/*
 * A search is under way, but no replica was tried by the checksum as it is now: no slot has
 * this bit.
 */
#define TRIED_NOBODY (1u << 7)
RBX_STATIC_ASSERT(RBX_SLOTS_MAX <= 7, "no slot has it");

/* A replica that was not tried in vain, or -1. One that differs in some cell, or lacks some, is not
 * readable. But a page of it that matches its checksum is as good as any, and must not be replaced
 * by a bad one. */
static int checked_source(const struct rbx_slab *slab, const struct rbx_piece *piece)
{
	uint32_t targets = rbx_slab_targets(slab) & (uint32_t)~piece->tried_mask;
	int source = rbx_way_source(slab, piece);

	return source < 0 && targets ? __builtin_ctz(targets) : source;
}

static uint64_t bad_pages(const struct rbx_piece *piece)
{
	return rbx_piece_pages_mask(piece) & ~piece->good_pages;
}

/* Reads the first of these pages, and those that follow it without a gap. */
static void send_read_of(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
			 uint64_t pages, struct rbx_piece_list *todo)
{
	struct rbx_fragment *fragment = &piece->parts[slot].fragment;
	uint64_t begin_bytes = (uint64_t)__builtin_ctzll(pages) * RBX_PAGE_BYTES;

	piece->asked_pages = pages & ~(pages + (pages & -pages));
	rbx_way_send(slab, piece, RBX_PIECE_READING, 1u << slot, NULL);
	fragment->remote_addr += begin_bytes;
	fragment->local_addr += begin_bytes;
	fragment->length_bytes = rbx_server_set_count_word(piece->asked_pages) * RBX_PAGE_BYTES;
	rbx_piece_list_add(todo, piece);
}

bool rbx_way_search(struct rbx_slab *slab, struct rbx_piece *piece, struct rbx_piece_list *todo)
{
	int source = checked_source(slab, piece);

	if (source < 0 && rbx_way_checksums_yield(slab, piece)) {
		piece->tried_mask = TRIED_NOBODY;
		source = checked_source(slab, piece);
	}
	if (source >= 0)
		send_read_of(slab, piece, (uint32_t)source, bad_pages(piece), todo);
	else
		rbx_way_look_ends(slab, piece);
	return source >= 0;
}

bool rbx_way_search_on(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot,
		       struct rbx_piece_list *todo)
{
	uint64_t asked = piece->asked_pages;
	uint64_t left = bad_pages(piece) & ~(asked | (asked - 1));

	if (!piece->tried_mask || !left || !(slab->write_mask >> slot & 1))
		return false;
	send_read_of(slab, piece, slot, left, todo);
	return true;
}
