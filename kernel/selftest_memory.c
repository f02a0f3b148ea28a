/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * selftest_memory.c - tests checksums of memory, and walks along memory.
 *
 * On Soft-RoCE the device's addresses are the CPU's, and no entries are joined. So the
 * walk is tested on a list that an IOMMU could have made.
 */
#include "core/cell.h"
#include "core/checksum.h"
#include "kernel/lib/stretch.h"
#include "kernel/selftest.h"

/* ---- Checksums ------------------------------------------------------------*/

bool rbx_selftest_checksums(char *memory)
{
	struct rbx_piece *piece = kzalloc(rbx_piece_size(0, 2), GFP_KERNEL);
	uint32_t checksums[5] = { 0 };
	struct rbx_cell cell;
	u64 pages;
	bool good;

	if (!piece)
		return false;
	rbx_piece_init(piece, 0, 2, NULL, NULL);
	piece->offset_bytes = 2 * RBX_PAGE_BYTES;
	piece->length_bytes = 2 * RBX_PAGE_BYTES;
	piece->cell = &cell; /* only tested for not being NULL */
	/* Pages that were never written count as zeros. */
	good = !rbx_checksum_mismatches(checksums, piece, memory, &pages);
	memory[RBX_PAGE_BYTES + 100] = 1;
	good &= rbx_checksum_mismatches(checksums, piece, memory, &pages) == 1;
	good &= pages == 1; /* page 0 has it */
	rbx_checksum_compute(piece, memory);
	rbx_checksum_store(checksums, piece);
	good &= !rbx_checksum_mismatches(checksums, piece, memory, &pages);
	good &= !checksums[1] && !checksums[2] && checksums[3] && !checksums[4];
	memory[RBX_PAGE_BYTES + 100] = 2;
	memory[0] = 1;
	good &= rbx_checksum_mismatches(checksums, piece, memory, &pages) == 2;
	kfree(piece);
	return good;
}

/* ---- Walks ----------------------------------------------------------------*/

static bool is_at(const struct rbx_stretch *stretch, u64 addr,
		  const char *memory, u32 length_bytes)
{
	return stretch->addr == addr && stretch->memory == memory &&
	       stretch->length_bytes == length_bytes;
}

/* Pages 0, 2 and 3, and 5. The device sees the first three as one range. */
bool rbx_selftest_stretches(const char *memory)
{
	const u64 joined = 0x10000, other = 0x90000;
	const u32 page = RBX_PAGE_BYTES;
	struct rbx_stretch stretch;
	struct scatterlist sg[3];
	bool good;

	sg_init_table(sg, ARRAY_SIZE(sg));
	sg_set_buf(&sg[0], memory, page);
	sg_set_buf(&sg[1], memory + 2 * page, 2 * page);
	sg_set_buf(&sg[2], memory + 5 * page, page);
	sg_dma_address(&sg[0]) = joined;
	sg_dma_len(&sg[0]) = 3 * page;
	sg_dma_address(&sg[1]) = other;
	sg_dma_len(&sg[1]) = page;

	rbx_stretch_first(&stretch, sg, 2);
	good = is_at(&stretch, joined, memory, page);
	rbx_stretch_next(&stretch, page);
	good &= is_at(&stretch, joined + page, memory + 2 * page, 2 * page);
	rbx_stretch_next(&stretch, page);
	good &= is_at(&stretch, joined + 2 * page, memory + 3 * page, page);
	rbx_stretch_next(&stretch, page);
	good &= is_at(&stretch, other, memory + 5 * page, page);
	rbx_stretch_next(&stretch, page);
	good &= stretch.length_bytes == 0;
	return good;
}
