/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_inbox.c - atomic bits, see index_inbox.h for why none is lost.
 */
#include "core/index_inbox.h"

size_t rbx_index_inbox_size(uint32_t index_count)
{
	return rbx_bit_levels_of(index_count).words * sizeof(uint64_t);
}

void rbx_index_inbox_init(struct rbx_index_inbox *inbox, void *memory,
			  uint32_t index_count)
{
	*inbox = (struct rbx_index_inbox){
		.words = memory,
		.levels = rbx_bit_levels_of(index_count),
	};
}

/* Bounded by the threads that change the word at this moment. */
static void bit_set(uint64_t *word, uint64_t bit)
{
	uint64_t seen = RBX_LOAD_ORDERED(word);

	while (!(seen & bit) && !RBX_COMPARE_EXCHANGE(word, &seen, seen | bit))
		;
}

void rbx_index_inbox_put(struct rbx_index_inbox *inbox, uint32_t index)
{
	uint32_t level;

	for (level = 0; level < inbox->levels.count; level++, index /= 64)
		bit_set(&inbox->words[inbox->levels.first[level] + index / 64],
			rbx_bit_of(index));
}

/* Takes all bits of a word. */
static bool word_get(struct rbx_index_inbox *inbox, uint32_t level, uint32_t at)
{
	inbox->at[level] = at;
	inbox->got[level] = RBX_EXCHANGE(
		&inbox->words[inbox->levels.first[level] + at], 0);
	return inbox->got[level] != 0;
}

/* The lowest bit of the lowest level with any; there is one. */
static uint32_t bit_pop(struct rbx_index_inbox *inbox, uint32_t *level)
{
	uint32_t lowest = 0, bit;

	while (!inbox->got[lowest])
		lowest++;
	bit = (uint32_t)__builtin_ctzll(inbox->got[lowest]);
	inbox->got[lowest] &= inbox->got[lowest] - 1;
	*level = lowest;
	return inbox->at[lowest] * 64 + bit;
}

static bool has_got_any(const struct rbx_index_inbox *inbox)
{
	uint32_t level;

	for (level = 0; level < inbox->levels.count; level++)
		if (inbox->got[level])
			return true;
	return false;
}

uint32_t rbx_index_inbox_take(struct rbx_index_inbox *inbox)
{
	uint32_t level, at;

	/* Bounded by the bits above empty words: one for each put under way. */
	while (has_got_any(inbox) ||
	       word_get(inbox, inbox->levels.count - 1, 0)) {
		at = bit_pop(inbox, &level);
		if (!level)
			return at;
		(void)word_get(inbox, level - 1, at);
	}
	return RBX_INDEX_NONE;
}

bool rbx_index_inbox_has_any(const struct rbx_index_inbox *inbox)
{
	uint32_t top = inbox->levels.first[inbox->levels.count - 1];

	return has_got_any(inbox) || RBX_LOAD_RELAXED(&inbox->words[top]);
}
