/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Knows what each block of the volume may hold, and checks it.
 *
 * Each write of a block gives it the next version. The contents are computed from
 * (offset, version): a stamp of these two words, then words computed from both. So a
 * block from another place, an old one, and a single wrong bit can all be recognised.
 * Version 0 means never written: zeros.
 *
 * A read that overlaps no write must return the newest version. Requests to one block
 * that are outstanding together have no order, so each byte may be of one or the other.
 * So each block has:
 *
 *	issued   the newest version that was given to a write
 *	floor    the oldest version that a read may still return
 *
 * Writes of a block that overlap each other are one group; any of them may win. When the
 * last one of the group ends, only versions of the group are possible, and the floor
 * rises to the first of them. But if one of them failed, everything stays possible. A
 * read takes the floor when it begins and the newest issued version when it ends. Every
 * byte must be of a version between the two. Nearly always the whole block is of one
 * version, which the stamp names. Only a mixed block is compared byte by byte with each
 * candidate.
 *
 * A few locks guard the table, each block by its number. Contents are computed and
 * compared without them. It takes 16 bytes of memory for each block.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"

#define LOCKS_COUNT 64 /* a power of two */

/* A mixed block is compared with at most this many versions. More are possible only if
 * writes of one block have overlapped without a pause. */
#define CANDIDATES_MAX 4096

struct block_state {
	uint32_t issued;
	uint32_t floor;
	uint32_t group_first; /* version; while writes are outstanding */
	uint32_t outstanding : 31; /* writes */
	uint32_t group_failed : 1;
};

struct bench_verify {
	uint64_t seed;
	uint32_t block_bytes;
	_Atomic uint64_t errors;
	pthread_mutex_t first_error_lock; /* guards first_error */
	char first_error[200];
	pthread_mutex_t locks[LOCKS_COUNT]; /* each guards every 64th state */
	struct block_state states[];
};

int bench_verify_create(struct bench_verify **verify_out, uint64_t blocks,
			uint32_t block_bytes, uint64_t seed)
{
	struct bench_verify *verify;

	verify = calloc(1, sizeof(*verify) +
				   blocks * sizeof(verify->states[0]));
	if (!verify)
		return -ENOMEM;
	verify->seed = seed;
	verify->block_bytes = block_bytes;
	pthread_mutex_init(&verify->first_error_lock, NULL);
	for (int i = 0; i < LOCKS_COUNT; i++)
		pthread_mutex_init(&verify->locks[i], NULL);
	*verify_out = verify;
	return 0;
}

void bench_verify_destroy(struct bench_verify *verify)
{
	free(verify);
}

static struct block_state *lock_block(struct bench_verify *verify,
				      uint64_t block)
{
	pthread_mutex_lock(&verify->locks[block % LOCKS_COUNT]);
	return &verify->states[block];
}

static void unlock_block(struct bench_verify *verify, uint64_t block)
{
	pthread_mutex_unlock(&verify->locks[block % LOCKS_COUNT]);
}

/* ---- Contents --------------------------------------------------------------*/

static uint64_t contents_seed(const struct bench_verify *verify,
			      uint64_t block, uint32_t version)
{
	uint64_t state = verify->seed + block * 0x9e3779b97f4a7c15 + version;

	return bench_random(&state);
}

/* Word @i of a block: the stamp first, then words computed from it. */
static uint64_t contents_word(const struct bench_verify *verify,
			      uint64_t block, uint32_t version, uint64_t seed,
			      uint32_t i)
{
	if (!version)
		return 0;
	if (i == 0)
		return block * verify->block_bytes;
	if (i == 1)
		return version;
	return (seed ^ i) * 0xbf58476d1ce4e5b9;
}

static void contents_make(const struct bench_verify *verify, uint64_t block,
			  uint32_t version, void *buf)
{
	uint64_t seed = contents_seed(verify, block, version);
	uint64_t *words = buf;

	for (uint32_t i = 0; i < verify->block_bytes / 8; i++)
		words[i] = contents_word(verify, block, version, seed, i);
}

static bool contents_match(const struct bench_verify *verify, uint64_t block,
			   uint32_t version, const void *buf)
{
	uint64_t seed = contents_seed(verify, block, version);
	const uint64_t *words = buf;
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < verify->block_bytes / 8; i++)
		wrong |= words[i] ^
			 contents_word(verify, block, version, seed, i);
	return !wrong;
}

/* Each byte of word @i must come from one of the versions. */
static bool word_is_explained(const struct bench_verify *verify,
			      uint64_t block, uint32_t oldest, uint32_t newest,
			      const uint64_t *words, uint32_t i)
{
	uint64_t open = UINT64_MAX;

	for (uint32_t version = oldest; version <= newest && open; version++) {
		uint64_t seed = contents_seed(verify, block, version);
		uint64_t differs = words[i] ^ contents_word(verify, block,
							    version, seed, i);

		for (int shift = 0; shift < 64; shift += 8)
			if (!(differs >> shift & 0xff))
				open &= ~(0xffull << shift);
	}
	return !open;
}

static bool is_torn_but_legal(const struct bench_verify *verify,
			      uint64_t block, uint32_t oldest, uint32_t newest,
			      const void *buf)
{
	if (newest - oldest >= CANDIDATES_MAX)
		oldest = newest - CANDIDATES_MAX + 1;
	if (oldest == newest)
		return false;
	for (uint32_t i = 0; i < verify->block_bytes / 8; i++)
		if (!word_is_explained(verify, block, oldest, newest, buf, i))
			return false;
	return true;
}

/* ---- Versions --------------------------------------------------------------*/

void bench_verify_write_begin(struct bench_verify *verify, uint64_t block,
			      void *buf)
{
	struct block_state *state = lock_block(verify, block);
	uint32_t version = ++state->issued;

	if (!state->outstanding++) {
		state->group_first = version;
		state->group_failed = 0;
	}
	unlock_block(verify, block);
	contents_make(verify, block, version, buf);
}

void bench_verify_write_end(struct bench_verify *verify, uint64_t block,
			    bool is_good)
{
	struct block_state *state = lock_block(verify, block);

	state->group_failed |= !is_good;
	if (!--state->outstanding && !state->group_failed)
		state->floor = state->group_first;
	unlock_block(verify, block);
}

uint32_t bench_verify_read_begin(struct bench_verify *verify, uint64_t block)
{
	uint32_t oldest = lock_block(verify, block)->floor;

	unlock_block(verify, block);
	return oldest;
}

static void note_error(struct bench_verify *verify, uint64_t block,
		       uint32_t oldest, uint32_t newest, const uint64_t *words)
{
	if (atomic_fetch_add(&verify->errors, 1))
		return;
	pthread_mutex_lock(&verify->first_error_lock);
	snprintf(verify->first_error, sizeof(verify->first_error),
		 "block at offset %" PRIu64 " should hold version %" PRIu32
		 " to %" PRIu32 "; its stamp says offset %" PRIu64
		 ", version %" PRIu64,
		 block * verify->block_bytes, oldest, newest, words[0],
		 words[1]);
	pthread_mutex_unlock(&verify->first_error_lock);
}

void bench_verify_read_end(struct bench_verify *verify, uint64_t block,
			   uint32_t oldest, const void *buf)
{
	uint32_t newest = lock_block(verify, block)->issued;
	const uint64_t *words = buf;

	unlock_block(verify, block);
	if (words[1] >= oldest && words[1] <= newest &&
	    contents_match(verify, block, words[1], buf))
		return;
	if (!is_torn_but_legal(verify, block, oldest, newest, buf))
		note_error(verify, block, oldest, newest, words);
}

uint64_t bench_verify_errors(struct bench_verify *verify)
{
	return atomic_load(&verify->errors);
}

const char *bench_verify_first_error(struct bench_verify *verify)
{
	return verify->first_error;
}
