/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tails.h - the checksums of a named volume at its servers: each replica of a slab has a tail
 * behind its data, with the checksum of each page (wire/terms.h).
 *
 * Whatever writes pages to a replica writes their checksums to its tail: a write of a program its
 * own, a copy or a repair those that the slab has. Both are under way at the same time, as two
 * parts for the same slot, and the piece ends when both are done. So a write waits no longer than
 * without checksums. If one of them fails, the replica has missed the write.
 *
 * Nothing orders the two. If the client dies, a page and its checksum may be of different writes.
 * But then the write was not acknowledged, and servers have noted its extent (extents.h): the next
 * client takes a page there that fits a checksum of any replica, or what it finds
 * (client/reconcile.h).
 */
#ifndef RBX_TAILS_H
#define RBX_TAILS_H

#include "core/slab.h"
#include "wire/terms.h"

RBX_STATIC_ASSERT(RBX_WIRE_CHECKSUM_BYTES == sizeof(uint32_t) &&
			  RBX_WIRE_SLAB_UNIT_BYTES == RBX_PAGE_BYTES,
		  "a checksum of a page");

/* Where the checksum of this page of a slab is, from the beginning of the slab. */
static inline uint64_t rbx_tail_offset(const struct rbx_slab_shape *shape, uint32_t page)
{
	return ((uint64_t)1 << shape->slab_shift) + (uint64_t)page * RBX_WIRE_CHECKSUM_BYTES;
}

/* The piece is about to write to the slots of send_mask, and writes to their tails as well. */
void rbx_tails_prepare(struct rbx_slab *slab, struct rbx_piece *piece);

/* The part for the tail of a slot, of a piece that writes to it. */
static inline struct rbx_part *rbx_tail_part(struct rbx_piece *piece, uint32_t slot)
{
	return &piece->parts[piece->slots + slot];
}

/* From now on the device sees the checksums of this piece at another address. At first it is that
 * of the CPU. While the piece is idle; or as rbx_piece_relocate(). */
static inline void rbx_tails_relocate(struct rbx_piece *piece, uint64_t local_addr)
{
	uint32_t slot;

	for (slot = 0; slot < piece->slots; slot++)
		rbx_tail_part(piece, slot)->fragment.local_addr = local_addr;
}

#endif
