/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bit_levels.h - a bit for each of many, and above them which words have any.
 *
 * On the lowest level each has its bit. A bit of the next level stands for a word of
 * the one below, and so on up to a level of one word. So one that is set is found by a
 * look at a word of each level, however many there are.
 *
 * Here is where the words stand; index_sets.h has them for one thread, index_inbox.h
 * for many.
 */
#ifndef RBX_BIT_LEVELS_H
#define RBX_BIT_LEVELS_H

#include "core/limits.h"

#define RBX_BIT_LEVELS_MAX 4u
RBX_STATIC_ASSERT(RBX_SLABS_MAX <= (uint64_t)1 << 6 * RBX_BIT_LEVELS_MAX,
		  "64 of each level have one bit of the next");

struct rbx_bit_levels {
	uint32_t count; /* the last one is a word */
	uint32_t words; /* of all levels */
	uint32_t first[RBX_BIT_LEVELS_MAX]; /* word of each level */
};

static inline struct rbx_bit_levels rbx_bit_levels_of(uint32_t bits)
{
	struct rbx_bit_levels levels = { 0 };

	RBX_ASSERT(bits && bits <= RBX_SLABS_MAX);
	do {
		bits = (bits + 63) / 64;
		levels.first[levels.count++] = levels.words;
		levels.words += bits;
	} while (bits > 1);
	return levels;
}

static inline uint64_t rbx_bit_of(uint32_t at)
{
	return (uint64_t)1 << at % 64;
}

#endif
