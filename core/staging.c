/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * staging.c - runs of blocks in a bit map.
 *
 * A run lies within one 64-bit word, so it is found by shifting the word and taken by one
 * compare-exchange. The search starts where the last one succeeded and looks at each word
 * once. It looks again at a word that changed meanwhile, but only as often as other threads
 * succeeded: bounded, never blocking.
 */
#include "core/staging.h"

void rbx_staging_init(struct rbx_staging *staging, void *memory, uint32_t lkey)
{
	rbx_port_fill(staging, 0, sizeof(*staging));
	staging->memory = memory;
	staging->lkey = lkey;
}

static uint32_t blocks_of(uint32_t length_bytes)
{
	return (length_bytes + RBX_PAGE_BYTES - 1) / RBX_PAGE_BYTES;
}

static uint64_t run_mask(uint32_t blocks)
{
	return blocks == 64 ? UINT64_MAX : ((uint64_t)1 << blocks) - 1;
}

/* The lowest position of `blocks` zero bits in a row, or -1. */
static int find_run(uint64_t taken, uint32_t blocks)
{
	uint64_t free_starts = ~taken;
	uint32_t have = 1;

	/* After each step bit i says that `have` blocks from i are free. */
	while (have < blocks) {
		uint32_t step = RBX_MIN(have, blocks - have);

		free_starts &= free_starts >> step;
		have += step;
	}
	return free_starts == 0 ? -1 : __builtin_ctzll(free_starts);
}

/* The block of a run in this word, or -EAGAIN. */
static int32_t take_in_word(struct rbx_staging *staging, uint32_t word,
			    uint32_t blocks)
{
	/* Ordered: a combiner that parks for lack of blocks looks once more, and that look
	 * must not come before its parking (channel.c). */
	uint64_t taken = RBX_LOAD_ORDERED(&staging->taken[word]);
	int at;

	while ((at = find_run(taken, blocks)) >= 0) {
		uint64_t mask = run_mask(blocks) << at;

		/* Pairs with the subtraction in give(): the former user is done with the blocks. */
		if (RBX_COMPARE_EXCHANGE(&staging->taken[word], &taken,
					 taken | mask))
			return (int32_t)(word * 64 + (uint32_t)at);
	}
	return -EAGAIN;
}

int32_t rbx_staging_take(struct rbx_staging *staging, uint32_t length_bytes)
{
	uint32_t blocks = blocks_of(length_bytes);
	uint32_t start = RBX_LOAD_RELAXED(&staging->next_word);

	RBX_ASSERT(blocks >= 1 && blocks <= RBX_STAGING_RUN_BLOCKS);
	for (uint32_t i = 0; i < RBX_STAGING_WORDS; i++) {
		uint32_t word = (start + i) % RBX_STAGING_WORDS;
		int32_t block = take_in_word(staging, word, blocks);

		if (block >= 0) {
			RBX_STORE_RELAXED(&staging->next_word, word);
			return block;
		}
	}
	return -EAGAIN;
}

void rbx_staging_give(struct rbx_staging *staging, uint32_t block,
		      uint32_t length_bytes)
{
	uint64_t mask = run_mask(blocks_of(length_bytes)) << (block % 64);
	uint64_t before = RBX_FETCH_ADD(&staging->taken[block / 64], -mask);

	RBX_ASSERT((before & mask) == mask);
	(void)before;
}
