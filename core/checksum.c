/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checksum.c - stores and compares the checksums of pages, see checksum.h.
 *
 * Loads and stores are atomic because a read may run beside a write. They order nothing; the
 * granules do.
 */
#include "core/checksum.h"

static uint32_t page_checksum(const void *memory, uint32_t page)
{
	return rbx_checksum_of((const char *)memory + (size_t)page * RBX_PAGE_BYTES);
}

void rbx_checksum_compute(struct rbx_piece *piece, const void *memory)
{
	uint32_t page, count = rbx_piece_pages_count(piece);

	RBX_ASSERT(piece->cell && count <= piece->pages_max);
	for (page = 0; page < count; page++)
		rbx_piece_checksums(piece)[page] = page_checksum(memory, page);
}

void rbx_checksum_store(uint32_t *checksums, struct rbx_piece *piece)
{
	uint32_t *first = &checksums[rbx_piece_page(piece)];
	uint32_t page, count = rbx_piece_pages_count(piece);

	RBX_ASSERT(piece->cell);
	for (page = 0; page < count; page++)
		RBX_STORE_RELAXED(&first[page],
				  rbx_piece_checksums(piece)[page]);
}

void rbx_checksum_recall(const uint32_t *checksums, struct rbx_piece *piece)
{
	const uint32_t *first = &checksums[rbx_piece_page(piece)];
	uint32_t page, count = rbx_piece_pages_count(piece);

	RBX_ASSERT(piece->cell && count <= piece->pages_max);
	for (page = 0; page < count; page++)
		rbx_piece_checksums(piece)[page] = RBX_LOAD_RELAXED(&first[page]);
}

uint32_t rbx_checksum_mismatches(const uint32_t *checksums,
				 const struct rbx_piece *piece,
				 const void *memory, uint64_t *good)
{
	const uint32_t *first = &checksums[rbx_piece_page(piece)];
	uint32_t page, count = rbx_piece_pages_count(piece), mismatches = 0;

	*good = 0;
	for (page = 0; page < count; page++) {
		bool is_good = RBX_LOAD_RELAXED(&first[page]) ==
			       page_checksum(memory, page);

		*good |= (uint64_t)is_good << page;
		mismatches += !is_good;
	}
	return mismatches;
}
