/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doubts.h - the older checksums of pages after a write that reached only some replicas.
 *
 * A fault of this machine may keep a write from some replicas. The write is not acknowledged,
 * but it is the truth, and so is its checksum: the replicas that missed it are made like the
 * first (slab_rebuild.c). If the last replica that has it dies before that, one of the others
 * takes its place. That one has the older page, which was acknowledged, and the new checksum
 * would call it bad.
 *
 * So the older checksum is kept, and which replicas missed the write, until these are written
 * or copied to. A replica that becomes the truth brings its own checksum back.
 *
 * A write that no readable replica has is not the truth. Its checksum is kept too, for the
 * replicas that have it. The fault says nothing of an earlier attempt, which may have been
 * carried out when its connection broke: perhaps no replica has the older page any more. If
 * all are bad by the older checksum, that one is exchanged with the kept one. It stays kept,
 * because the data that was read may have been damaged on its way.
 *
 * The same holds for a write that only some readable replicas have, once a replica that
 * missed it is the truth: an attempt may have reached that replica all the same.
 *
 * All of this is bounded: so many pages of a slab, and as many slabs as have a record
 * (slab_record.h). Pages of writes that were acknowledged have priority over the others. A
 * slab takes a record for a write that was sent again before it failed.
 * RBX_SLAB_RECORDS_DOUBTED slabs keep theirs until all such pages were written again or
 * copied. A page beyond these bounds counts as bad until it is written again, as if it were
 * damaged. So does a page that a write left partly written, or that a write left which was
 * sent only once.
 */
#ifndef RBX_DOUBTS_H
#define RBX_DOUBTS_H

#include "core/limits.h"
#include "core/port.h"

struct rbx_doubt {
	uint32_t page; /* of the slab */
	uint32_t checksum; /* of the data in the replicas of: */
	uint8_t slots; /* a bit for each */
	bool is_copied : 1; /* those are being copied to */
	bool is_later : 1; /* of a write that is not the truth */
	/* it was the checksum until now, and no replica was found that matches it */
	bool is_tried : 1;
};

/* Zeroed: none. */
struct rbx_doubts {
	uint32_t count;
	struct rbx_doubt all[RBX_DOUBTS_MAX];
};

/* Before a write that is the truth changes the checksums of these pages: keeps the older ones
 * for the slots that missed it. */
void rbx_doubts_missed(struct rbx_doubts *doubts, const uint32_t *checksums,
		       uint32_t page, uint32_t pages_count, uint8_t missed_slots);

/* A write that is not the truth left other data in these slots: keeps their checksums. */
void rbx_doubts_have(struct rbx_doubts *doubts, const uint32_t *of_pages,
		     uint32_t page, uint32_t pages_count, uint8_t slots);

/* The search for a replica that has these pages has ended. Only one search runs at a time. */
void rbx_doubts_look_end(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count);
/* No replica has what the checksums of these pages say, except for the pages that are good
 * somewhere (a bit for each, from the first). Takes another write as the truth for one of the
 * bad pages, if there is one that was not tried. other_slots: the replicas that are not
 * readable. Those of them in no doubt have what the checksum said until now. Returns whether
 * there was one. */
bool rbx_doubts_yield(struct rbx_doubts *doubts, uint32_t *checksums, uint32_t page,
		      uint32_t pages_count, uint64_t good_pages, uint8_t other_slots);

/* These pages are the same in all replicas. */
void rbx_doubts_drop(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count);

/* Whether some replica may have data of a write that is not the truth. */
bool rbx_doubts_are_later(struct rbx_doubts *doubts);

/* These pages are being copied to all slots that missed them; then they have been, to these
 * slots or to all but the source. */
void rbx_doubts_copy_begin(struct rbx_doubts *doubts, uint32_t page,
			   uint32_t pages_count);
void rbx_doubts_copy_end(struct rbx_doubts *doubts, uint32_t page,
			 uint32_t pages_count, uint8_t written_slots, bool all_have_it);

/* One slot becomes the truth, and the others of these are not: the checksums become those of
 * its data. For pages that are being copied to it this is known when the copy ends. */
void rbx_doubts_resolve(struct rbx_doubts *doubts, uint32_t *checksums,
			uint32_t slot, uint8_t other_slots);

/* This slot has, or will have, what the source has. */
void rbx_doubts_forget(struct rbx_doubts *doubts, uint32_t slot);

#endif
