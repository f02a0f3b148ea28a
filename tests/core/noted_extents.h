/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * noted_extents.h - a named volume on the scripted host, and the words that its servers are to note
 * (core/extents.h).
 */
#ifndef TESTS_CORE_NOTED_EXTENTS_H
#define TESTS_CORE_NOTED_EXTENTS_H

#include "tests/core/first_writes.h"

#define EXTENT_BYTES (HOST_SLAB_BYTES / 64)

static inline struct host *noted_make(uint32_t slabs, uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
							    .on_demand = true,
							    .is_named = true },
				slabs, servers);
}

static inline void write_extent(struct host *host, uint32_t slab, uint32_t extent)
{
	static uint8_t out[512];

	host_start(host, RBX_PIECE_WRITE, slab * HOST_SLAB_BYTES + extent * EXTENT_BYTES, out,
		   sizeof(out));
}

/* Words that are to be noted now; none are left afterwards. */
static inline struct rbx_intents noted_next(struct host *host)
{
	struct rbx_intents intents;
	bool is_full;

	(void)rbx_extents_next(host->flow.map, &intents, &is_full);
	assert_false(is_full);
	return intents;
}

#endif
