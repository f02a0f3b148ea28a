/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_inbox.h - a set of indices: any thread puts them in, one thread takes them out.
 *
 * One bit for each index, with summary levels above (bit_levels.h), all atomic: 1.02 bits an
 * index. A put sets a bit on each level, from the lowest up. The taker exchanges words for 0
 * from the highest level down, and follows each bit that it got to the level below.
 *
 * No put is lost: a pass of the taker that begins after a put has returned takes its index,
 * unless an earlier pass did. All operations are ordered, in one total order. Suppose a pass
 * exchanged a word before the put's bit was in it. Then it had exchanged all words above even
 * earlier. The put reaches each of those later, and leaves there a bit that it set or saw:
 * one that no earlier exchange got. So when the put returns, on every level there is a bit
 * for it, or an exchange that got one still has to visit the level below. A put that was
 * overtaken may leave a bit above an empty word. That costs the taker one look.
 *
 * A put whose bit is set already does not set it: the index will be taken, once for all
 * earlier puts. A put during a pass may bring the index once more. A thread changes what the
 * index stands for, and puts the index, while it holds a lock. The taker takes that lock
 * after it got the index, so it sees the change.
 *
 * A pass goes up from the lowest index. What is put meanwhile may be taken in this pass or in
 * the next. No thread waits for another.
 */
#ifndef RBX_INDEX_INBOX_H
#define RBX_INDEX_INBOX_H

#include "core/index_sets.h"

struct rbx_index_inbox {
	uint64_t *words; /* atomic */
	struct rbx_bit_levels levels;

	/* The taker's own: bits that it got from one word of each level, and which word. */
	uint64_t got[RBX_BIT_LEVELS_MAX];
	uint32_t at[RBX_BIT_LEVELS_MAX];
};

size_t rbx_index_inbox_size(uint32_t index_count);

/* memory: zeroed, aligned for words, borrowed for the life of the inbox. */
void rbx_index_inbox_init(struct rbx_index_inbox *inbox, void *memory,
			  uint32_t index_count);

/* Any thread. */
void rbx_index_inbox_put(struct rbx_index_inbox *inbox, uint32_t index);

/* One thread: the next index, or RBX_INDEX_NONE. */
uint32_t rbx_index_inbox_take(struct rbx_index_inbox *inbox);

/* The same thread: whether there seem to be indices. */
bool rbx_index_inbox_has_any(const struct rbx_index_inbox *inbox);

#endif
