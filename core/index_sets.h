/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_sets.h - sets of indices; each index is in one set or in none.
 *
 * One byte for each index says in which set it is. Each set has a bit for each block of 64
 * indices that says whether any of them is in the set, with summary levels above
 * (bit_levels.h). So moving an index, or finding the next one of a set, costs a look at some
 * words and at the bytes of one block, whatever the range. One more set costs 1/64 bit for
 * each index. Two dozen sets cost 1.05 bytes an index in all.
 *
 * One thread at a time.
 */
#ifndef RBX_INDEX_SETS_H
#define RBX_INDEX_SETS_H

#include "core/bit_levels.h"

#define RBX_INDEX_NONE UINT32_MAX

/* Sets are numbered from 1; an index in no set is in set 0. */
#define RBX_INDEX_SETS_MAX 31u

struct rbx_index_sets {
	uint32_t index_count;
	uint64_t *words; /* all levels of the first set, then of the next */
	uint8_t *set_of; /* of each index */
	struct rbx_bit_levels levels; /* of blocks */
	uint32_t counts[RBX_INDEX_SETS_MAX + 1]; /* indices in each set */
};

size_t rbx_index_sets_size(uint32_t index_count, uint32_t set_count);

/* memory: zeroed, aligned for words, borrowed for the life of the sets. All sets are empty. */
void rbx_index_sets_init(struct rbx_index_sets *sets, void *memory,
			 uint32_t index_count, uint32_t set_count);

/* Moves an index from its set, if any, to another one, or to none. */
void rbx_index_sets_move(struct rbx_index_sets *sets, uint32_t index,
			 uint32_t set);

/* The first member from this index on, and then from 0 on; or RBX_INDEX_NONE. */
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
