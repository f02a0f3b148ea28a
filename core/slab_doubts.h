/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_doubts.h - what the path of a piece means for the pages of its slab that are in doubt
 * (doubts.h). For slab_way.c. Nothing happens to a slab without checksums.
 */
#ifndef RBX_SLAB_DOUBTS_H
#define RBX_SLAB_DOUBTS_H

#include "core/slab.h"

/* The write is the truth, and its checksums are about to be stored. */
void rbx_way_write_missed(struct rbx_slab *slab, const struct rbx_piece *piece,
			  uint8_t slots);

/* The write is not the truth. Data that no replica can have needs no record. */
void rbx_way_write_astray(struct rbx_slab *slab, struct rbx_piece *piece,
			  uint8_t slots);

/* All replicas have the write. */
void rbx_way_write_arrived(struct rbx_slab *slab, const struct rbx_piece *piece);

/* No replica has what the checksums say. Returns whether they say something else now. */
bool rbx_way_checksums_yield(struct rbx_slab *slab, const struct rbx_piece *piece);

/* The search for a replica that has the page has ended. */
void rbx_way_look_ends(struct rbx_slab *slab, const struct rbx_piece *piece);

void rbx_way_copy_begins(struct rbx_slab *slab, const struct rbx_piece *piece);

/* A replica that missed it may be the truth meanwhile. The data of another readable one was
 * not looked at. */
void rbx_way_copy_ends(struct rbx_slab *slab, const struct rbx_piece *piece);

#endif
