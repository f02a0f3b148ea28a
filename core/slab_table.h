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
 * All divisions are by numbers that never change, so they are done as multiplications.
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
	char *blocks;
	uint64_t inverse; /* for dividing by the slabs of a block */
	uint32_t per_block; /* slabs */
	uint32_t slab_size;
};

/* Bytes of memory, of any alignment, for so many slabs of so many bytes. */
size_t rbx_slab_table_size(uint32_t slab_count, uint32_t slab_size);

/* memory: borrowed for the life of the table. shape: what its slabs have in common. The slabs
 * themselves are not written to. */
void rbx_slab_table_init(struct rbx_slab_table *table, void *memory,
			 uint32_t slab_count, uint32_t slab_size,
			 const struct rbx_slab_shape *shape);

static inline struct rbx_slab *
rbx_slab_table_at(const struct rbx_slab_table *table, uint32_t index)
{
	uint32_t block = (uint32_t)((index * table->inverse) >>
				    RBX_SLAB_TABLE_SHIFT);
	uint32_t number = index - block * table->per_block;

	return (struct rbx_slab *)(table->blocks +
				   (size_t)block * RBX_SLAB_BLOCK_BYTES +
				   offsetof(struct rbx_slab_block, slabs) +
				   number * table->slab_size);
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
