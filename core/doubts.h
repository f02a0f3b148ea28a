/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doubts.h - what pages were before a write that only some replicas have.
 *
 * A write that a fault of this machine keeps from some replicas is not acknowledged, but
 * it is the truth, and so is its checksum: those that missed it are made like the first
 * (slab_rebuild.c). When the last that has it dies before that, one of them takes its
 * place. It has the page as it was, which was acknowledged, and which the new checksum
 * would call bad.
 *
 * So the checksum from before is kept, with who missed the write, until they are written
 * or copied to. Who becomes the truth brings its own back.
 *
 * A write that no readable replica has is not the truth, but its checksum is kept, too, for
 * those that have it. A fault here says nothing of an attempt before, which may have been
 * carried out when its connection broke: perhaps nobody has the page from before any more.
 * When all are bad by the checksum from before, it yields to the one that was kept, and is
 * kept in its place: what was read may have been disturbed on its way.
 *
 * So it is, too, with a write that only some readable replicas have, once one that missed it
 * is the truth: perhaps an attempt reached that one all the same.
 *
 * Bounded: so many pages of a slab, of which those that were acknowledged go before those
 * that were not; and so many slabs as have a record (slab_record.h). A slab takes one for a
 * write that was sent again before it failed, and RBX_SLAB_RECORDS_DOUBTED keep it until all
 * such pages were written again or copied. A page beyond these bounds counts as bad until
 * it is written again, as if it were damaged; so does one of which a write left a part, or
 * that a write left that was sent only once.
 */
#ifndef RBX_DOUBTS_H
#define RBX_DOUBTS_H

#include "core/limits.h"
#include "core/port.h"

struct rbx_doubt {
	uint32_t page; /* of the slab */
	uint32_t checksum; /* of what is at: */
	uint8_t slots; /* a bit for each */
	bool is_copied : 1; /* they are being copied to */
	bool is_later : 1; /* it is of a write that is not the truth */
	bool is_tried : 1; /* it was the checksum until now, and who looks has found nobody */
};

/* Zeroed: none. */
struct rbx_doubts {
	uint32_t count;
	struct rbx_doubt all[RBX_DOUBTS_MAX];
};

/* Pages of a slab, whose checksums are still those from before, are about to get others,
 * by a write that is the truth, and that these slots have missed. */
void rbx_doubts_missed(struct rbx_doubts *doubts, const uint32_t *checksums,
		       uint32_t page, uint32_t pages_count, uint8_t missed_slots);

/* By a write that is not the truth these slots have others of these pages. */
void rbx_doubts_have(struct rbx_doubts *doubts, const uint32_t *of_pages,
		     uint32_t page, uint32_t pages_count, uint8_t slots);

/* Who looked for who has these pages is through; meanwhile nobody else looked. */
void rbx_doubts_look_end(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count);
/* No replica has what the checksums of these pages say, but for those that are good
 * somewhere (a bit for each, from the first): of one of them another write is the truth
 * now, if there is one that was not tried. Of the others, which are not readable, those
 * that are in no doubt do not have it. Returns whether there was one. */
bool rbx_doubts_yield(struct rbx_doubts *doubts, uint32_t *checksums, uint32_t page,
		      uint32_t pages_count, uint64_t good_pages, uint8_t other_slots);

/* They are the same everywhere. */
void rbx_doubts_drop(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count);

/* Whether somebody may have what the checksums do not say. */
bool rbx_doubts_are_later(struct rbx_doubts *doubts);

/* They are being copied to all that missed them; and have been, to these slots, or to all
 * but the source. */
void rbx_doubts_copy_begin(struct rbx_doubts *doubts, uint32_t page,
			   uint32_t pages_count);
void rbx_doubts_copy_end(struct rbx_doubts *doubts, uint32_t page,
			 uint32_t pages_count, uint8_t written_slots, bool all_have_it);

/* A slot is the truth, and others of these are not: the checksums are of what it has. Of
 * what it is being copied to that is known when the copy ends. */
void rbx_doubts_resolve(struct rbx_doubts *doubts, uint32_t *checksums,
			uint32_t slot, uint8_t other_slots);

/* A slot has what the source has, or will have. */
void rbx_doubts_forget(struct rbx_doubts *doubts, uint32_t slot);

#endif
