/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_inbox.h - indices that any thread puts in and one takes out.
 *
 * A bit for each index, with levels above (bit_levels.h), all of them atomic: 1.02 bits
 * an index. A put sets a bit of each level from the lowest on; the taker exchanges
 * words for 0 from the highest on, and goes below each bit that it got.
 *
 * No put is lost: a pass of the taker that begins after a put has returned takes it, if
 * none before has. All of it is ordered operations, in one total order. If a pass
 * exchanged a word before the put's bit was in it, then it had exchanged all words above
 * even before. The put comes to each of those later, and leaves there a bit that it has
 * set or seen: one that no earlier exchange got. So when the put returns, there is a bit
 * for it on every level, or an exchange that got one has that of the level below still
 * to come. A bit above an empty word, which a put may leave that was overtaken, costs
 * the taker one look.
 *
 * A put whose bit is set already does not set it: the index will be taken, once for all
 * puts before; a put that comes during a pass may bring it once more. What the
 * index stands for is changed, and put, with a lock held that the taker takes after the
 * index: so it sees the change.
 *
 * A pass goes up from the lowest index; what is put meanwhile may be in it or in the
 * next. No thread waits for another one.
 */
#ifndef RBX_INDEX_INBOX_H
#define RBX_INDEX_INBOX_H

#include "core/index_sets.h"

struct rbx_index_inbox {
	uint64_t *words; /* atomic */
	struct rbx_bit_levels levels;

	/* The taker's: bits that it got of a word of each level, and of which. */
	uint64_t got[RBX_BIT_LEVELS_MAX];
	uint32_t at[RBX_BIT_LEVELS_MAX];
};

size_t rbx_index_inbox_size(uint32_t index_count);

/* memory: zeroed, lent for the life of the inbox, and aligned for words. */
void rbx_index_inbox_init(struct rbx_index_inbox *inbox, void *memory,
			  uint32_t index_count);

/* Any thread. */
void rbx_index_inbox_put(struct rbx_index_inbox *inbox, uint32_t index);

/* One thread: the next one, or RBX_INDEX_NONE. */
uint32_t rbx_index_inbox_take(struct rbx_index_inbox *inbox);

/* The same thread: whether there seem to be any. */
bool rbx_index_inbox_has_any(const struct rbx_index_inbox *inbox);

#endif
