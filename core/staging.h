/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * staging.h - registered memory that requests are copied through (preMR).
 *
 * The paper's pre-registered MR (section IV-A, figure 5): if registering a program's buffer
 * costs more than copying it, the data passes through memory that was registered once. The
 * pool hands out runs of 4 KiB blocks. A merged work request takes one run, so its members
 * are contiguous.
 *
 * The host supplies the memory and its lkey; this file only tracks which blocks are in use.
 * Lock-free: any thread takes, any thread gives back.
 */
#ifndef RBX_STAGING_H
#define RBX_STAGING_H

#include "core/limits.h"
#include "core/port.h"

/* The longest run: the bits of one word of the map. */
#define RBX_STAGING_RUN_BLOCKS 64u
#define RBX_STAGING_RUN_BYTES (RBX_STAGING_RUN_BLOCKS * RBX_PAGE_BYTES)
RBX_STATIC_ASSERT(RBX_FRAGMENT_BYTES_MAX <= RBX_STAGING_RUN_BYTES,
		  "any fragment can be staged");

/* 16 MiB: 64 runs, enough for two full windows of 128 KiB work requests at
 * depth 32 and a quarter of the 64 MiB that a client may use. */
#define RBX_STAGING_WORDS 64u
#define RBX_STAGING_BYTES ((uint64_t)RBX_STAGING_WORDS * RBX_STAGING_RUN_BYTES)

struct rbx_staging {
	uint8_t *memory; /* RBX_STAGING_BYTES, of the host; NULL: there is no pool */
	uint32_t lkey;
	uint32_t next_word; /* atomic: where the next search starts */
	uint64_t taken[RBX_STAGING_WORDS]; /* atomic: one bit a block */
};

void rbx_staging_init(struct rbx_staging *staging, void *memory, uint32_t lkey);

/*
 * Takes a run for length_bytes, at most RBX_STAGING_RUN_BYTES. Returns its
 * first block, or -EAGAIN: none is free now.
 */
int32_t rbx_staging_take(struct rbx_staging *staging, uint32_t length_bytes);

/* Gives back what rbx_staging_take() returned for the same length. */
void rbx_staging_give(struct rbx_staging *staging, uint32_t block,
		      uint32_t length_bytes);

static inline void *rbx_staging_memory(const struct rbx_staging *staging,
				       uint32_t block)
{
	return staging->memory + (uint64_t)block * RBX_PAGE_BYTES;
}

#endif
