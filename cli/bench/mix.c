/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measured load: one block for each request. The pattern chooses the block; chance
 * decides between read and write, in the given share.
 */
#include "cli/bench/bench.h"

static bool mix_next(struct bench_source *source, struct bench_slot *slot);
static void mix_done(struct bench_source *source, struct bench_slot *slot);

void bench_mix_init(struct bench_mix *mix, struct bench_pattern *pattern,
		    struct bench_verify *verify, uint32_t block_bytes,
		    uint32_t read_percent)
{
	*mix = (struct bench_mix){
		.source.next = mix_next,
		.source.done = verify ? mix_done : NULL,
		.pattern = pattern,
		.verify = verify,
		.block_bytes = block_bytes,
		.read_below = (1ull << 32) * read_percent / 100,
	};
}

static bool is_read(const struct bench_mix *mix, struct bench_slot *slot)
{
	if (!mix->read_below || mix->read_below == 1ull << 32)
		return mix->read_below;
	return (uint32_t)bench_random(&slot->random) < mix->read_below;
}

static bool mix_next(struct bench_source *source, struct bench_slot *slot)
{
	struct bench_mix *mix = (struct bench_mix *)source;
	struct rbx_request *request = &slot->request;

	slot->block = bench_pattern_next(mix->pattern, slot->worker_index,
					 &slot->random);
	request->op = is_read(mix, slot) ? RBX_READ : RBX_WRITE;
	request->flags = request->op == RBX_READ ? mix->read_flags : 0;
	request->length_bytes = mix->block_bytes;
	request->offset = slot->block * mix->block_bytes;
	if (!mix->verify)
		return true;
	if (request->op == RBX_READ)
		slot->version = bench_verify_read_begin(mix->verify,
							slot->block);
	else
		bench_verify_write_begin(mix->verify, slot->block,
					 request->buf);
	return true;
}

static void mix_done(struct bench_source *source, struct bench_slot *slot)
{
	struct bench_mix *mix = (struct bench_mix *)source;
	bool is_good = !slot->request.status;

	if (slot->request.op == RBX_WRITE)
		bench_verify_write_end(mix->verify, slot->block, is_good);
	else if (is_good)
		bench_verify_read_end(mix->verify, slot->block, slot->version,
				      slot->request.buf);
}
