/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checksum.h - the checksum of each page of a slab, kept by the client; those of a named volume by
 * its servers as well (tails.h).
 *
 * A CRC32C of each 4 KiB page turns stale or torn data into an error. It is computed before a
 * write is sent and kept in its piece. It is stored when the write has succeeded, before the
 * granules are given back; if the write failed, the old page and its checksum remain. It is
 * compared when a read is done, without the slab's lock. A read beside a write may see either
 * checksum, so a mismatch is believed only after the read was repeated while holding the
 * granules (slab.h).
 *
 * The stored word is the CRC xor that of a page of zeros, so that the zeroed
 * array of a new slab says "zeros" and costs memory only where it was written.
 */
#ifndef RBX_CHECKSUM_H
#define RBX_CHECKSUM_H

#include "core/limits.h"
#include "core/piece.h"

/* CRC32C of RBX_PAGE_BYTES zeros. */
#define RBX_CHECKSUM_OF_ZEROS 0x98f94189u

/* As it is stored, of RBX_PAGE_BYTES: in little-endian order, as another machine may read it. */
static inline uint32_t rbx_checksum_of(const void *page)
{
	uint32_t checksum = rbx_port_crc32c(0, page, RBX_PAGE_BYTES) ^ RBX_CHECKSUM_OF_ZEROS;

	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap32(checksum) : checksum;
}

/* For a piece that is to be written and has room for checksums: whole pages. memory is where
 * the CPU finds the data. */
void rbx_checksum_compute(struct rbx_piece *piece, const void *memory);

/* Stores the checksums of the piece as those of the slab. */
void rbx_checksum_store(uint32_t *checksums, struct rbx_piece *piece);

/* The other way: the piece is to write what the slab has. */
void rbx_checksum_recall(const uint32_t *checksums, struct rbx_piece *piece);

RBX_STATIC_ASSERT(RBX_FRAGMENT_BYTES_MAX / RBX_PAGE_BYTES <= 64, "a mask has them all");

/* Returns how many of the pages that were read do not match; *good: a bit for each page that
 * does. */
uint32_t rbx_checksum_mismatches(const uint32_t *checksums,
				 const struct rbx_piece *piece,
				 const void *memory, uint64_t *good);

#endif
