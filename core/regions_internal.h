/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_internal.h - what the files of the cache have in common.
 *
 *	regions.c        requests: hits, and what is done if there is none
 *	regions_parts.c  of which regions and gaps a request consists
 *	regions_room.c   budgets, and who makes room
 *	regions_life.c   one region, from its promise to its end
 *	regions_leave.c  batches, and memory that changes
 */
#ifndef RBX_REGIONS_INTERNAL_H
#define RBX_REGIONS_INTERNAL_H

#include "core/regions.h"

/* What a request lacks, and what it has to hold for that. */
struct rbx_regions_lack {
	uint64_t pages; /* to be promised; RBX_REGIONS_TOO_MANY: no region can have as many */
	uint32_t count;
	uint32_t known; /* parts that are there */
	uint64_t idle_pages; /* of these: what no request uses yet */
	uint32_t idle_count;
	uint64_t rest; /* page from which on all becomes one region; the request's end: none */
};
#define RBX_REGIONS_TOO_MANY ((uint64_t)1 << 56)

/* A part of a request: what a region has of it, or a gap between regions. */
struct rbx_regions_piece {
	uint64_t first;
	uint64_t end;
	uint32_t slot; /* RBX_REGION_NONE: a gap */
	bool is_rest; /* all that is left of the request, whatever regions are there */
};

/* Of the memory of a cache: each array begins at a line of the processor's cache. */
static inline size_t rbx_regions_rounded(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* ---- A region's life ------------------------------------------------------------*/

/* A new region, in the index. There is room. */
uint32_t rbx_regions_promise(struct rbx_regions *regions, const struct rbx_regions_piece *gap);

/* Its room is free. */
void rbx_regions_slot_free(struct rbx_regions *regions, uint32_t slot);

/* The last reference of a region that is not in the index any more. */
RBX_RARE void rbx_regions_gone_unused(struct rbx_regions *regions, uint32_t slot);

/* Each region of a request has a reference, so that it is not retired. */
static inline void rbx_regions_reference(struct rbx_regions *regions,
					 struct rbx_cached_region *region)
{
	if (!region->references++) {
		regions->used_count++;
		regions->used_pages += region->pages;
	}
	rbx_region_touch(regions, region);
}

static inline void rbx_regions_unreference(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_cached_region *region = rbx_regions_at(regions, slot);

	RBX_DEBUG_ASSERT(region->references);
	if (--region->references)
		return;
	if (region->state != RBX_REGION_READY) {
		rbx_regions_gone_unused(regions, slot);
		return;
	}
	regions->used_count--;
	regions->used_pages -= region->pages;
}

/* The region of the index that has a page, or RBX_REGION_NONE. */
static inline uint32_t rbx_regions_find(const struct rbx_regions *regions, uint64_t page)
{
	uint32_t slot = rbx_region_index_at(&regions->index, page);

	return slot != RBX_REGION_NONE && page < rbx_region_end(rbx_regions_at(regions, slot)) ?
		       slot : RBX_REGION_NONE;
}

/* ---- Room -----------------------------------------------------------------------*/

/* Whether it could be promised if all left that can. */
bool rbx_regions_could_fit(const struct rbx_regions *regions, const struct rbx_regions_lack *lack);
bool rbx_regions_fit_now(const struct rbx_regions *regions, const struct rbx_regions_lack *lack);

/* Takes the policy's victims out of the index until there is room once they are deregistered. */
void rbx_regions_make_room(struct rbx_regions *regions, const struct rbx_regions_lack *lack);

/* Another request was no hit. */
void rbx_regions_grow(struct rbx_regions *regions);

/* ---- Parts of a request ---------------------------------------------------------*/

/* What a request lacks. Nothing changes. */
struct rbx_regions_lack rbx_regions_ask(const struct rbx_regions *regions,
					const struct rbx_region_use *use);

/* Takes a reference of each region that the request knows, if it has none yet. Regions in its rest
 * leave the index. create: promises the gaps and the rest. */
void rbx_regions_take(struct rbx_regions *regions, struct rbx_region_use *use, bool create);

RBX_APART void rbx_regions_release_parts(struct rbx_regions *regions, struct rbx_region_use *use);

/* Parts whose memory changed while the request waited. */
void rbx_regions_release_gone(struct rbx_regions *regions, struct rbx_region_use *use);

/* Parts from this page on: they do not stay parts. */
void rbx_regions_release_rest(struct rbx_regions *regions, struct rbx_region_use *use,
			      uint64_t rest);

#endif
