/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_sets.c - bytes that say which set, and bits that say where to look, see index_sets.h.
 */
#include "core/index_sets.h"

#define BLOCK 64u /* indices that share a bit */

static uint32_t blocks_of(uint32_t index_count)
{
	return (index_count + BLOCK - 1) / BLOCK;
}

static size_t words_size(uint32_t index_count, uint32_t set_count)
{
	return (size_t)rbx_bit_levels_of(blocks_of(index_count)).words *
	       set_count * sizeof(uint64_t);
}

size_t rbx_index_sets_size(uint32_t index_count, uint32_t set_count)
{
	return words_size(index_count, set_count) +
	       (size_t)blocks_of(index_count) * BLOCK;
}

void rbx_index_sets_init(struct rbx_index_sets *sets, void *memory,
			 uint32_t index_count, uint32_t set_count)
{
	RBX_ASSERT(set_count <= RBX_INDEX_SETS_MAX);
	*sets = (struct rbx_index_sets){
		.index_count = index_count,
		.words = memory,
		.set_of = (uint8_t *)memory +
			  words_size(index_count, set_count),
		.levels = rbx_bit_levels_of(blocks_of(index_count)),
	};
}

/* ---- The bytes of a block -------------------------------------------------------*/

/* Whether any byte of a word is 0, wherever it stands. */
static bool has_zero_byte(uint64_t word)
{
	return ((word - 0x0101010101010101ull) & ~word &
		0x8080808080808080ull) != 0;
}

static bool is_in_word(const uint8_t *bytes, uint32_t set)
{
	uint64_t word;

	rbx_port_copy(&word, bytes, sizeof(word));
	return has_zero_byte(word ^ set * 0x0101010101010101ull);
}

/* The first member in the block of an index, from that index on, or RBX_INDEX_NONE. */
static uint32_t block_next(const struct rbx_index_sets *sets, uint32_t set,
			   uint32_t from)
{
	uint32_t end = (from / BLOCK + 1) * BLOCK;

	for (; from % 8; from++)
		if (sets->set_of[from] == set)
			return from;
	while (from < end && !is_in_word(&sets->set_of[from], set))
		from += 8;
	for (; from < end; from++)
		if (sets->set_of[from] == set)
			return from;
	return RBX_INDEX_NONE;
}

/* ---- The bits of blocks ---------------------------------------------------------*/

static uint64_t *words_of(const struct rbx_index_sets *sets, uint32_t set)
{
	return sets->words + (size_t)(set - 1) * sets->levels.words;
}

/* If the block's word was not empty, the levels above are set already. */
static void block_add(struct rbx_index_sets *sets, uint32_t set, uint32_t block)
{
	uint64_t *words = words_of(sets, set), before;
	uint32_t level;

	for (level = 0; level < sets->levels.count; level++, block /= 64) {
		uint64_t *word = &words[sets->levels.first[level] + block / 64];

		before = *word;
		*word |= rbx_bit_of(block);
		if (before)
			return;
	}
}

static void block_remove(struct rbx_index_sets *sets, uint32_t set,
			 uint32_t block)
{
	uint64_t *words = words_of(sets, set);
	uint32_t level;

	for (level = 0; level < sets->levels.count; level++, block /= 64) {
		uint64_t *word = &words[sets->levels.first[level] + block / 64];

		*word &= ~rbx_bit_of(block);
		if (*word)
			return;
	}
}

/* The lowest block below a bit of a level. */
static uint32_t block_below(const struct rbx_index_sets *sets,
			    const uint64_t *words, uint32_t level, uint32_t at)
{
	while (level--) {
		uint64_t word = words[sets->levels.first[level] + at];

		at = at * 64 + (uint32_t)__builtin_ctzll(word);
	}
	return at;
}

/* The first block with a member from this one on, or RBX_INDEX_NONE. */
static uint32_t block_from(const struct rbx_index_sets *sets, uint32_t set,
			   uint32_t block)
{
	const uint64_t *words = words_of(sets, set);
	uint32_t bits = blocks_of(sets->index_count), level, bit;

	for (level = 0; level < sets->levels.count && block < bits; level++) {
		uint64_t word = words[sets->levels.first[level] + block / 64] &
				~(rbx_bit_of(block) - 1);

		if (word) {
			bit = (uint32_t)__builtin_ctzll(word);
			return block_below(sets, words, level,
					   block / 64 * 64 + bit);
		}
		block = block / 64 + 1;
		bits = (bits + 63) / 64;
	}
	return RBX_INDEX_NONE;
}

/* ---- Sets -----------------------------------------------------------------------*/

void rbx_index_sets_move(struct rbx_index_sets *sets, uint32_t index,
			 uint32_t set)
{
	uint32_t before = sets->set_of[index], block = index / BLOCK;

	RBX_ASSERT(index < sets->index_count && set <= RBX_INDEX_SETS_MAX);
	if (set == before)
		return;
	sets->set_of[index] = (uint8_t)set;
	if (before) {
		sets->counts[before]--;
		if (block_next(sets, before, block * BLOCK) == RBX_INDEX_NONE)
			block_remove(sets, before, block);
	}
	if (set) {
		sets->counts[set]++;
		block_add(sets, set, block);
	}
}

uint32_t rbx_index_sets_next(const struct rbx_index_sets *sets, uint32_t set,
			     uint32_t from)
{
	uint32_t found, block;

	if (!sets->counts[set])
		return RBX_INDEX_NONE;
	if (from >= sets->index_count)
		from = 0;
	block = block_from(sets, set, from / BLOCK);
	if (block == from / BLOCK) {
		found = block_next(sets, set, from);
		if (found != RBX_INDEX_NONE)
			return found;
		block = block_from(sets, set, block + 1);
	}
	if (block == RBX_INDEX_NONE)
		block = block_from(sets, set, 0);
	return block_next(sets, set, block * BLOCK);
}
