/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bit_levels.h - the layout of a bitmap with summary levels, to find a set bit quickly.
 *
 * The lowest level has one bit for each index. A bit of the next level stands for a word of
 * the level below, and so on up to a level of one word. So a set bit is found by looking at
 * one word of each level, whatever the number of indices.
 *
 * This file says where the words are. index_sets.h uses them from one thread, index_inbox.h
 * from many.
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
