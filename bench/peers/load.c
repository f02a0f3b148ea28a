/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load: `depth` requests outstanding, the next submitted from the
 * completion of the last.
 *
 * A run is a few phases, and each phase is the same loop with other bounds:
 *   fill       (verified reads only) write every block once
 *   warm-up    the load itself for 100 ms, not counted
 *   measured   the load itself for the wanted time
 *   read back  (verified writes only) read a sample of what was written
 *
 * Contents: the first word of every 512 bytes tells the block and the write phase; the words
 * between tell only the phase. This detects a block that was lost, torn, misplaced or left
 * from before. A write costs eight stores per 4 KiB instead of a pass over the block, which
 * would be charged to the transport. All blocks of a phase have the same words at the same
 * offset, so overlapping outstanding writes cannot disagree.
 *
 * The first failed request ends its phase: outstanding requests are drained, and those that
 * do not come back within PEER_STALL_LIMIT_NS are counted as errors.
 */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOAD_WARM_UP_NS (100 * 1000000ull)
/* A whole block is compared for one read of 16 while measuring: under 1 %. */
#define LOAD_CHECK_EVERY 16
#define LOAD_READ_BACK_COUNT 4096
#define LOAD_RANDOM_SEED 0x9e3779b97f4a7c15ull
#define LOAD_STAMP_WORDS 64	/* 512 bytes, the smallest block */
/* Empty polls between two reads of the clock. */
#define LOAD_EMPTY_POLLS 4096

/* Makes the addresses; restarted, it makes the same ones again. */
struct generator {
	bool random;
	uint64_t block_count;
	uint64_t state;		/* next block, or state of the random numbers */
};

struct slot {
	uint8_t *buf;
	uint64_t offset_bytes;
	uint64_t started_ns;	/* 0 until the first try to post it */
	bool check;
};

struct load {
	struct peer *peer;
	const struct peer_options *options;
	struct load_result *result;
	struct slot slots[PEER_DEPTH_MAX];
	uint32_t ready[PEER_DEPTH_MAX];	/* prepared, not yet posted; a ring, oldest first */
	uint32_t ready_first;
	uint32_t ready_count;
	uint32_t inflight_count;
	uint64_t generation;		/* of the newest write phase */
	bool failed;
};

struct phase {
	bool write;
	bool measured;
	uint64_t deadline_ns;		/* 0: none */
	uint64_t request_limit;		/* 0: none */
	uint64_t stride;		/* takes one address of so many */
	uint64_t check_every;		/* compares one read of so many; 0: none */
	struct generator generator;
	uint64_t issued;
};

static struct generator generator_start(const struct peer_options *options, bool random)
{
	return (struct generator){
		.random = random,
		.block_count = options->volume_bytes / options->block_bytes,
		.state = random ? LOAD_RANDOM_SEED : 0,
	};
}

/* xorshift64*, then scaled by a multiplication, whose bias is negligible. */
static uint64_t generator_next_block(struct generator *generator)
{
	uint64_t x = generator->state;

	if (!generator->random) {
		generator->state = (x + 1) % generator->block_count;
		return x;
	}
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	generator->state = x;
	x *= 0x2545f4914f6cdd1dull;
	return (unsigned __int128)x * generator->block_count >> 64;
}

static uint64_t content_plain(uint64_t generation)
{
	return generation * 0xbf58476d1ce4e5b9ull;
}

static uint64_t content_stamp(uint64_t generation, uint64_t offset_bytes)
{
	return content_plain(generation) ^ ~offset_bytes;
}

static void content_fill_plain(struct load *load, const struct slot *slot)
{
	uint64_t *words = (uint64_t *)slot->buf;
	size_t i;

	for (i = 0; i < load->options->block_bytes / sizeof(*words); i++)
		words[i] = content_plain(load->generation);
}

static void content_write_stamps(struct load *load, const struct slot *slot)
{
	uint64_t *words = (uint64_t *)slot->buf;
	size_t i;

	for (i = 0; i < load->options->block_bytes / sizeof(*words); i += LOAD_STAMP_WORDS)
		words[i] = content_stamp(load->generation, slot->offset_bytes + i * sizeof(*words));
}

static bool content_is_right(struct load *load, const struct slot *slot)
{
	const uint64_t *words = (const uint64_t *)slot->buf;
	uint64_t expected, wrong = 0;
	size_t i;

	for (i = 0; i < load->options->block_bytes / sizeof(*words); i++) {
		expected = content_plain(load->generation);
		if (i % LOAD_STAMP_WORDS == 0)
			expected = content_stamp(load->generation,
						 slot->offset_bytes + i * sizeof(*words));
		wrong |= words[i] ^ expected;
	}
	return !wrong;
}

static bool phase_wants_more(const struct load *load, const struct phase *phase, uint64_t now_ns)
{
	if (load->failed)
		return false;
	if (phase->deadline_ns && now_ns >= phase->deadline_ns)
		return false;
	return !phase->request_limit || phase->issued < phase->request_limit;
}

/* Gives a free slot its next request. */
static void slot_prepare(struct load *load, struct phase *phase, uint32_t index)
{
	struct slot *slot = &load->slots[index];
	uint64_t block = 0, i;

	for (i = 0; i < phase->stride; i++)
		block = generator_next_block(&phase->generator);
	slot->offset_bytes = block * load->options->block_bytes;
	slot->started_ns = 0;
	slot->check = phase->check_every && phase->issued % phase->check_every == 0;
	if (phase->write)
		content_write_stamps(load, slot);
	phase->issued++;
	load->ready[(load->ready_first + load->ready_count++) % PEER_DEPTH_MAX] = index;
}

static void load_fail(struct load *load, uint64_t error_count)
{
	load->failed = true;
	load->result->errors += error_count;
}

static void load_post_ready(struct load *load, const struct phase *phase)
{
	int err = 0;

	if (!load->ready_count)
		return;
	while (load->ready_count) {
		uint32_t index = load->ready[load->ready_first % PEER_DEPTH_MAX];
		struct slot *slot = &load->slots[index];

		if (!slot->started_ns)
			slot->started_ns = peer_now_ns();
		err = peer_post(load->peer, index, phase->write, slot->buf, slot->offset_bytes);
		if (err)
			break;
		load->ready_first++;
		load->ready_count--;
		load->inflight_count++;
	}
	if (!err || err == -EAGAIN)
		err = peer_post_end(load->peer);
	if (err) {
		load_fail(load, load->ready_count ? load->ready_count : 1);
		load->ready_count = 0;
	}
}

static void load_complete(struct load *load, struct phase *phase, const struct peer_done *done,
			  uint64_t now_ns)
{
	struct slot *slot = &load->slots[done->slot];
	struct load_result *result = load->result;

	load->inflight_count--;
	if (done->status) {
		load_fail(load, 1);
		return;
	}
	if (slot->check && !content_is_right(load, slot))
		result->verify_errors++;
	if (phase->measured) {
		result->requests++;
		histogram_record(&result->latency, now_ns - slot->started_ns);
	}
	if (phase_wants_more(load, phase, now_ns))
		slot_prepare(load, phase, done->slot);
}

/* After a poll that found nothing. Returns false when it is time to read the clock. */
static bool load_idle(struct load *load, uint64_t *empty_polls)
{
	if (load->options->wait_event)
		return peer_wait(load->peer);
	return ++*empty_polls % LOAD_EMPTY_POLLS;
}

/* Runs one phase to its end: nothing is outstanding when it returns, or the load has failed. */
static void load_run_phase(struct load *load, struct phase *phase)
{
	struct peer_done done[PEER_DEPTH_MAX];
	uint64_t now_ns = peer_now_ns(), progress_ns = now_ns;
	uint64_t empty_polls = 0;
	uint32_t i;
	int count;

	if (phase->write)
		load->generation++;
	for (i = 0; i < load->options->depth && phase_wants_more(load, phase, now_ns); i++) {
		if (phase->write)
			content_fill_plain(load, &load->slots[i]);
		slot_prepare(load, phase, i);
	}
	while (load->ready_count || load->inflight_count) {
		load_post_ready(load, phase);
		count = peer_poll(load->peer, done);
		if (count > 0) {
			now_ns = peer_now_ns();
			progress_ns = now_ns;
			for (i = 0; i < (uint32_t)count; i++)
				load_complete(load, phase, &done[i], now_ns);
			continue;
		}
		if (count == 0 && load_idle(load, &empty_polls))
			continue;
		if (count < 0 || peer_now_ns() - progress_ns > PEER_STALL_LIMIT_NS) {
			load_fail(load, load->inflight_count + load->ready_count);
			return;
		}
	}
}

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void load_run_measured(struct load *load, struct phase *phase)
{
	const struct peer_options *options = load->options;
	uint64_t started_ns = peer_now_ns(), cpu_ns = cpu_now_ns();

	*phase = (struct phase){
		.write = options->op_write,
		.measured = true,
		.deadline_ns = started_ns + (uint64_t)(options->runtime_s * 1e9),
		.stride = 1,
		.check_every = options->verify && !options->op_write ? LOAD_CHECK_EVERY : 0,
		.generator = generator_start(options, options->pattern_random),
	};
	load_run_phase(load, phase);
	load->result->elapsed_ns = peer_now_ns() - started_ns;
	load->result->cpu_ns = cpu_now_ns() - cpu_ns;
}

static void load_run_phases(struct load *load)
{
	const struct peer_options *options = load->options;
	struct phase fill = {
		.write = true,
		.request_limit = options->volume_bytes / options->block_bytes,
		.stride = 1,
		.generator = generator_start(options, false),
	};
	struct phase warm_up = {
		.write = options->op_write,
		.stride = 1,
		.generator = generator_start(options, options->pattern_random),
	};
	struct phase measured, read_back;

	if (options->verify && !options->op_write)
		load_run_phase(load, &fill);
	warm_up.deadline_ns = peer_now_ns() + LOAD_WARM_UP_NS;
	load_run_phase(load, &warm_up);
	load_run_measured(load, &measured);
	if (!options->verify || !options->op_write)
		return;
	read_back = (struct phase){
		.stride = measured.issued / LOAD_READ_BACK_COUNT + 1,
		.check_every = 1,
		.generator = generator_start(options, options->pattern_random),
	};
	read_back.request_limit = measured.issued / read_back.stride;
	load_run_phase(load, &read_back);
}

int load_run(struct peer *peer, const struct peer_options *options, struct load_result *result)
{
	size_t buf_bytes = (size_t)options->depth * options->block_bytes;
	struct load *load = calloc(1, sizeof(*load));
	uint8_t *bufs = NULL;
	uint32_t i;
	int err = -ENOMEM;

	memset(result, 0, sizeof(*result));
	if (!load || posix_memalign((void **)&bufs, 4096, buf_bytes))
		goto out_disconnect;
	memset(bufs, 0, buf_bytes);
	err = peer_register(peer, bufs, buf_bytes);
	if (err)
		goto out_disconnect;
	load->peer = peer;
	load->options = options;
	load->result = result;
	/* Differs from run to run, so that data of an earlier run is not taken for this one's. */
	load->generation = peer_now_ns();
	for (i = 0; i < options->depth; i++)
		load->slots[i].buf = bufs + (size_t)i * options->block_bytes;
	load_run_phases(load);
out_disconnect:
	peer_disconnect(peer);
	free(bufs);
	free(load);
	return err;
}
