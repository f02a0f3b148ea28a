/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_table.h - where the slabs of a volume are in memory, and which slab a pointer points
 * to.
 *
 * A volume may have millions of slabs, so a slab stores nothing that follows from its
 * address. Slabs are in blocks, aligned to their own length. The head of a block has the
 * number of its first slab, and a pointer to what all slabs have in common. A mask of the
 * pointer to a slab gives the head, and the distance from there gives its number.
 *
 * All divisions are by numbers that never change, so they are done as multiplications. Slabs
 * are apart by their size, and by a gap at the end of each block.
 */
#ifndef RBX_SLAB_TABLE_H
#define RBX_SLAB_TABLE_H

#include "core/limits.h"

struct rbx_slab;
struct rbx_slab_shape;

/* Like a page of memory: little is wasted before the first block and behind the last slab,
 * and the head takes 1/256. */
#define RBX_SLAB_BLOCK_BYTES 4096u

struct rbx_slab_block {
	const struct rbx_slab_shape *shape;
	uint32_t first; /* its first slab in the volume */
	uint32_t inverse; /* for dividing by the bytes of a slab */
	char slabs[];
};

#define RBX_SLAB_INVERSE_SHIFT 16u /* for a block */
#define RBX_SLAB_TABLE_SHIFT 32u /* for the table */

struct rbx_slab_table {
	char *slabs; /* the first one */
	uint64_t inverse; /* for dividing by the slabs of a block */
	uint32_t gap_bytes; /* from the end of a block's last slab to the next block's first */
	uint32_t slab_size;
};

/* With so few slabs all of them are within reach of 32 bits. */
#define RBX_SLAB_SIZE_MAX 128u
RBX_STATIC_ASSERT((uint64_t)RBX_SLABS_MAX * RBX_SLAB_SIZE_MAX <= 1ull << 31,
		  "with the gaps, which are shorter than the slabs, they end below 4 GiB");

/* Bytes of memory, of any alignment, for so many slabs of so many bytes. */
size_t rbx_slab_table_size(uint32_t slab_count, uint32_t slab_size);

/* memory: borrowed for the life of the table, and not written to. */
void rbx_slab_table_init(struct rbx_slab_table *table, void *memory,
			 uint32_t slab_count, uint32_t slab_size);
/* The slabs before first are there, and those before end will be. shape: what they have in common.
 * The slabs themselves are not written to. */
void rbx_slab_table_extend(const struct rbx_slab_table *table, uint32_t first, uint32_t end,
			   const struct rbx_slab_shape *shape);

static inline struct rbx_slab *
rbx_slab_table_at(const struct rbx_slab_table *table, uint32_t index)
{
	uint32_t block = (uint32_t)((index * table->inverse) >>
				    RBX_SLAB_TABLE_SHIFT);

	return (struct rbx_slab *)(table->slabs +
				   (block * table->gap_bytes +
				    index * table->slab_size));
}

static inline const struct rbx_slab_block *
rbx_slab_block(const struct rbx_slab *slab)
{
	return (const struct rbx_slab_block *)((uintptr_t)slab &
					       ~(uintptr_t)(RBX_SLAB_BLOCK_BYTES - 1));
}

/* What is common to all slabs of its volume. */
static inline const struct rbx_slab_shape *
rbx_slab_shape(const struct rbx_slab *slab)
{
	return rbx_slab_block(slab)->shape;
}

/* Its number in the volume. */
static inline uint32_t rbx_slab_index(const struct rbx_slab *slab)
{
	const struct rbx_slab_block *block = rbx_slab_block(slab);
	uint32_t from_first = (uint32_t)((const char *)slab - block->slabs);

	return block->first +
	       (from_first * block->inverse >> RBX_SLAB_INVERSE_SHIFT);
}

#endif
