/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region.h - one registered range of memory: its life, and what is known of its use.
 *
 * A region begins as a promise: its room is taken from the budgets before the host asks the
 * system to register it. It is ready once the host has its key, and is used by requests, each with
 * a reference. It leaves the index when a policy chooses it or its memory changes. The last
 * reference that goes, and the next batch, take it to the host once more, to be deregistered. Only
 * then is its room free.
 *
 * No policy is told of a hit. A hit only writes down when it was and how many there were; the
 * policies read that when they look for a victim. So a hit costs the same with each, and a policy
 * that takes over knows as much as the one before.
 */
#ifndef RBX_REGION_H
#define RBX_REGION_H

#include "core/limits.h"

#define RBX_REGION_NONE UINT32_MAX

#define RBX_REGION_PAGE_SHIFT 12u
RBX_STATIC_ASSERT(RBX_PAGE_BYTES == 1u << RBX_REGION_PAGE_SHIFT, "pages of the cache");

/* 2^64 divided by the golden ratio: by it, what is in a row is spread over a table. */
#define RBX_REGION_SPREAD 0x9e3779b97f4a7c15u

enum rbx_region_state {
	RBX_REGION_FREE, /* a slot without a region */
	RBX_REGION_PROMISED, /* in the index; the host is registering it */
	RBX_REGION_READY, /* in the index; requests may use it */
	RBX_REGION_GONE, /* not in the index any more; requests still use it */
	RBX_REGION_DUE, /* not used any more; it waits for a batch */
	RBX_REGION_LEAVING, /* in a batch: the host is deregistering it */
};

struct rbx_cached_region {
	uint64_t first; /* its first page */
	uint64_t stamp; /* the cache's clock at its last use */
	uint64_t base; /* inflation at its last use, see region_gdsf.c */
	uint64_t key; /* of the policy: its rank when that was last looked at */
	uint64_t cookie; /* of the host: how it finds the keys of the NIC */
	uint64_t uses; /* since it was registered; 32 bits would be full in minutes */
	uint32_t prev; /* in a list: the newer neighbour; in a heap: its place */
	uint32_t next; /* in a list: the older neighbour */
	uint32_t pages;
	uint32_t references;
	uint32_t seen; /* of the policy: uses that it has taken into account, their low bits */
	uint8_t state; /* enum rbx_region_state */
	uint8_t section; /* of the policy: in which of its lists */
	bool is_registered; /* the system knows it */
};

static inline uint64_t rbx_region_end(const struct rbx_cached_region *region)
{
	return region->first + region->pages;
}

/* Uses that the policy has not taken into account yet. */
static inline uint32_t rbx_region_unseen(const struct rbx_cached_region *region)
{
	return (uint32_t)region->uses - region->seen;
}

static inline void rbx_region_see(struct rbx_cached_region *region)
{
	region->seen = (uint32_t)region->uses;
}

static inline bool rbx_region_is_indexed(const struct rbx_cached_region *region)
{
	return region->state == RBX_REGION_PROMISED || region->state == RBX_REGION_READY;
}

#endif
