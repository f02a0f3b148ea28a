/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packed.h - a table of numbers that takes only as many bits for each as the highest one
 * needs.
 *
 * It is for tables with millions of numbers. They follow each other in 64-bit words, the
 * lowest bits first. Some lie in two words.
 */
#ifndef RBX_PACKED_H
#define RBX_PACKED_H

#include "core/port.h"

struct rbx_packed {
	uint64_t *words; /* borrowed */
	uint32_t bits; /* of a number: 1 to 32 */
};

static inline uint32_t rbx_packed_bits(uint32_t number_max)
{
	return number_max ? 32 - (uint32_t)__builtin_clz(number_max) : 1;
}

/* Bytes of the words of so many numbers. */
static inline size_t rbx_packed_size(size_t count, uint32_t bits)
{
	return (count * bits + 63) / 64 * sizeof(uint64_t);
}

static inline uint32_t rbx_packed_get(const struct rbx_packed *table, size_t at)
{
	const uint64_t *word = &table->words[at * table->bits / 64];
	uint32_t shift = at * table->bits % 64;
	uint64_t number = *word >> shift;

	if (shift + table->bits > 64)
		number |= word[1] << (64 - shift);
	return (uint32_t)(number & ((1ull << table->bits) - 1));
}

static inline void rbx_packed_set(const struct rbx_packed *table, size_t at,
				  uint32_t number)
{
	uint64_t *word = &table->words[at * table->bits / 64];
	uint32_t shift = at * table->bits % 64;
	uint64_t mask = (1ull << table->bits) - 1;

	RBX_DEBUG_ASSERT(number <= mask);
	*word = (*word & ~(mask << shift)) | (uint64_t)number << shift;
	if (shift + table->bits > 64)
		word[1] = (word[1] & ~(mask >> (64 - shift))) |
			  (uint64_t)number >> (64 - shift);
}

#endif
