/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_table.c - see slab_table.h.
 *
 * To divide n by d, n is multiplied by the inverse: 2^shift / d, rounded up. That is larger
 * than the exact inverse by less than one, so the quotient is exact if n * d < 2^shift. It is
 * also exact if n is a multiple of d and n < 2^shift.
 */
#include "core/slab_table.h"

#include "core/port.h"

#define ROOM_BYTES (RBX_SLAB_BLOCK_BYTES - sizeof(struct rbx_slab_block))

RBX_STATIC_ASSERT(RBX_SLAB_BLOCK_BYTES <= 1u << RBX_SLAB_INVERSE_SHIFT,
		  "the number of a slab in its block is exact");

static uint32_t per_block(uint32_t slab_size)
{
	return (uint32_t)(ROOM_BYTES / slab_size);
}

static uint32_t blocks_count(uint32_t slab_count, uint32_t slab_size)
{
	return (slab_count + per_block(slab_size) - 1) / per_block(slab_size);
}

size_t rbx_slab_table_size(uint32_t slab_count, uint32_t slab_size)
{
	/* One block more, to align them. */
	return ((size_t)blocks_count(slab_count, slab_size) + 1) *
	       RBX_SLAB_BLOCK_BYTES;
}

void rbx_slab_table_init(struct rbx_slab_table *table, void *memory,
			 uint32_t slab_count, uint32_t slab_size)
{
	uintptr_t begin = ((uintptr_t)memory + RBX_SLAB_BLOCK_BYTES - 1) /
			  RBX_SLAB_BLOCK_BYTES * RBX_SLAB_BLOCK_BYTES;
	uint32_t count = per_block(slab_size);
	char *blocks = (char *)memory + (begin - (uintptr_t)memory);

	RBX_ASSERT((uint64_t)slab_count * count <
		   (uint64_t)1 << RBX_SLAB_TABLE_SHIFT);
	RBX_ASSERT(slab_count <= RBX_SLABS_MAX && slab_size <= RBX_SLAB_SIZE_MAX);
	table->slabs = blocks + offsetof(struct rbx_slab_block, slabs);
	table->gap_bytes = RBX_SLAB_BLOCK_BYTES - count * slab_size;
	table->inverse = (((uint64_t)1 << RBX_SLAB_TABLE_SHIFT) + count - 1) /
			 count;
	table->slab_size = slab_size;
}

void rbx_slab_table_extend(const struct rbx_slab_table *table, uint32_t first, uint32_t end,
			   const struct rbx_slab_shape *shape)
{
	char *blocks = table->slabs - offsetof(struct rbx_slab_block, slabs);
	uint32_t count = per_block(table->slab_size);
	uint32_t i = blocks_count(first, table->slab_size);

	for (; i < blocks_count(end, table->slab_size); i++) {
		struct rbx_slab_block *block =
			(struct rbx_slab_block *)(blocks +
						  (size_t)i * RBX_SLAB_BLOCK_BYTES);

		block->shape = shape;
		block->first = i * count;
		block->inverse = ((1u << RBX_SLAB_INVERSE_SHIFT) + table->slab_size - 1) /
				 table->slab_size;
	}
}
