/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_auto.h - which policy would have cost least?
 *
 * Beside the cache stands a shadow of it for each policy: the same code, but nothing is registered.
 * The shadows see a sample of the requests, and add up what they would have spent. They hear of all
 * memory that changes: what the cache has to register anew for that is no fault of its policy.
 *
 * The sample is one of places, not of times (Waldspurger et al., "Efficient MRC Construction with
 * SHARDS", FAST 2015): of a zone of memory either all requests are shown, or none, by a hash of its
 * number. A shadow of 1/8 of the zones has 1/8 of the budgets, and behaves like the whole. At first
 * the sample is everything. It is halved when a shadow has no place for another region. So a small
 * cache, for which a sample would say nothing, is shadowed entirely, and a large one costs no more
 * than one of RBX_REGION_SHADOW_REGIONS regions.
 */
#ifndef RBX_REGION_AUTO_H
#define RBX_REGION_AUTO_H

#include "core/regions.h"

/* Regions of a shadow. With half as many, the sample of a trace with hot zones has misled. The
 * shadows of all policies take 10 MiB then. */
#define RBX_REGION_SHADOW_REGIONS 16384u

/* Pages of a zone, 2^6: longer than most requests, so that those that overlap are in the same
 * sample; and short enough that there are thousands of zones. */
#define RBX_REGION_ZONE_SHIFT 6u

struct rbx_region_auto {
	struct rbx_regions shadows[RBX_REGION_POLICIES];
	uint64_t scores_ns[RBX_REGION_POLICIES]; /* spent by each; what is long ago counts less */
	uint64_t spent_ns[RBX_REGION_POLICIES]; /* by each, when last looked at */
	/* Squares of what looks have differed by, from the one that is followed. */
	uint64_t noise_us2[RBX_REGION_POLICIES];
	uint64_t turnover_ns; /* spent by the one that is followed since scores faded */
	uint64_t cache_ns; /* spent by the cache itself, when last looked at */
	uint64_t excess_ns; /* spent by it beyond what its shadow explains */
	uint32_t followed;
	uint32_t halvings; /* of the sample */
	uint32_t unseen; /* requests since the scores were looked at */
};

static inline uint64_t rbx_region_auto_hash(uint64_t page)
{
	return (page >> RBX_REGION_ZONE_SHIFT) * RBX_REGION_SPREAD >> 32;
}

size_t rbx_region_auto_size(const struct rbx_regions_shape *shape);

/* memory: zeroed. Chooses the first policy. */
void rbx_region_auto_begin(struct rbx_regions *regions, const struct rbx_regions_shape *shape,
			   void *memory);

/* A request of the sample. It may change the policy. */
void rbx_region_auto_observe(struct rbx_regions *regions, uint64_t first, uint64_t end,
			     uint64_t mapping_bytes);

/* The memory there changed: the shadows would have had to register it anew, too. */
void rbx_region_auto_change(struct rbx_regions *regions, uint64_t first, uint64_t end);

#endif
