/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_sets.h - sets of indices, of which each is in one set or in none.
 *
 * A byte for each index says in which set it is. A set has a bit for each block of 64
 * indices that says whether any of them is in it, and levels above (bit_levels.h). So
 * to move an index, and to find the next one of a set, costs a look at some words and
 * at the bytes of one block, whatever the range; and one set more costs a 64th of a bit
 * for each index. With two dozen sets all of it is 1.05 bytes an index.
 *
 * One thread at a time.
 */
#ifndef RBX_INDEX_SETS_H
#define RBX_INDEX_SETS_H

#include "core/bit_levels.h"

#define RBX_INDEX_NONE UINT32_MAX

/* Sets are counted from 1; an index in none is in set 0. */
#define RBX_INDEX_SETS_MAX 31u

struct rbx_index_sets {
	uint32_t index_count;
	uint64_t *words; /* of the first set all levels, then of the next */
	uint8_t *set_of; /* of each index */
	struct rbx_bit_levels levels; /* of blocks */
	uint32_t counts[RBX_INDEX_SETS_MAX + 1]; /* indices in each set */
};

size_t rbx_index_sets_size(uint32_t index_count, uint32_t set_count);

/* memory: zeroed, lent for the life of the sets, and aligned for words. All sets are
 * empty. */
void rbx_index_sets_init(struct rbx_index_sets *sets, void *memory,
			 uint32_t index_count, uint32_t set_count);

/* From the set in which it is, or none, to another one, or to none. */
void rbx_index_sets_move(struct rbx_index_sets *sets, uint32_t index,
			 uint32_t set);

/* The first member from this index on, and past the end from 0 on; or
 * RBX_INDEX_NONE. */
uint32_t rbx_index_sets_next(const struct rbx_index_sets *sets, uint32_t set,
			     uint32_t from);

static inline uint32_t rbx_index_sets_of(const struct rbx_index_sets *sets,
					 uint32_t index)
{
	return sets->set_of[index];
}

static inline uint32_t rbx_index_sets_count(const struct rbx_index_sets *sets,
					    uint32_t set)
{
	return sets->counts[set];
}

#endif
