/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Goes once over the whole volume, with several blocks in each request: to fill it before
 * a measurement, and to check it afterwards. Every block is covered exactly once, so a
 * read may see any version that is still possible.
 */
#include "cli/bench/bench.h"

#define REQUEST_BYTES (256 << 10) /* rounded down to a multiple of a block */

uint32_t bench_sweep_bytes(uint32_t block_bytes)
{
	return block_bytes >= REQUEST_BYTES ?
		       block_bytes :
		       REQUEST_BYTES / block_bytes * block_bytes;
}

static bool sweep_next(struct bench_source *source, struct bench_slot *slot);
static void sweep_done(struct bench_source *source, struct bench_slot *slot);

void bench_sweep_init(struct bench_sweep *sweep, uint8_t op,
		      struct bench_verify *verify, uint64_t blocks,
		      uint32_t block_bytes, uint32_t buffer_bytes)
{
	*sweep = (struct bench_sweep){
		.source.next = sweep_next,
		.source.done = verify ? sweep_done : NULL,
		.verify = verify,
		.op = op,
		.block_bytes = block_bytes,
		.blocks = blocks,
		.blocks_per_request = buffer_bytes / block_bytes,
	};
}

/* The place of a block in the buffer of the request that covers it. */
static char *block_buf(const struct bench_sweep *sweep,
		       const struct bench_slot *slot, uint64_t block)
{
	return (char *)slot->request.buf +
	       (block - slot->block) * sweep->block_bytes;
}

static uint64_t block_end(const struct bench_sweep *sweep,
			  const struct bench_slot *slot)
{
	return slot->block + slot->request.length_bytes / sweep->block_bytes;
}

static bool sweep_next(struct bench_source *source, struct bench_slot *slot)
{
	struct bench_sweep *sweep = (struct bench_sweep *)source;
	uint64_t first = atomic_fetch_add(&sweep->cursor,
					  sweep->blocks_per_request);
	uint64_t count = sweep->blocks_per_request;

	if (first >= sweep->blocks)
		return false;
	if (count > sweep->blocks - first)
		count = sweep->blocks - first;
	slot->block = first;
	slot->request.op = sweep->op;
	slot->request.length_bytes = count * sweep->block_bytes;
	slot->request.offset = first * sweep->block_bytes;
	if (sweep->verify && sweep->op == RBX_WRITE)
		for (uint64_t i = first; i < first + count; i++)
			bench_verify_write_begin(sweep->verify, i,
						 block_buf(sweep, slot, i));
	return true;
}

static void sweep_done(struct bench_source *source, struct bench_slot *slot)
{
	struct bench_sweep *sweep = (struct bench_sweep *)source;
	bool is_good = !slot->request.status;
	uint64_t end = block_end(sweep, slot);

	for (uint64_t i = slot->block; i < end; i++) {
		if (sweep->op == RBX_WRITE)
			bench_verify_write_end(sweep->verify, i, is_good);
		else if (is_good)
			bench_verify_read_end(
				sweep->verify, i,
				bench_verify_read_begin(sweep->verify, i),
				block_buf(sweep, slot, i));
	}
}
