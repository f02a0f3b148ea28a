/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_heap.h - which region has the least key, for the policies whose keys only grow.
 *
 * A use makes a key grow, and nobody moves the region then. It is moved when it comes to the top
 * and turns out to have another key by now. So a hundred uses of a region cost one move.
 *
 * A region that comes to the top while it is in use is set aside. For each victim a few of those
 * are looked at, in turn, and come back if they are not in use any more. So many regions in use do
 * not make each victim dear; and a region may come back somewhat late.
 */
#ifndef RBX_REGION_HEAP_H
#define RBX_REGION_HEAP_H

#include "core/regions.h"

size_t rbx_region_heap_size(uint32_t regions);
void rbx_region_heap_init(struct rbx_regions *regions, void *memory);

/* With its key of now. */
void rbx_region_heap_put(struct rbx_regions *regions, uint32_t region);
void rbx_region_heap_remove(struct rbx_regions *regions, uint32_t region);

/* The region that is not in use with the least key, or RBX_REGION_NONE. It stays.
 * key: what a region's key is now */
uint32_t rbx_region_heap_least(struct rbx_regions *regions,
			       uint64_t (*key)(const struct rbx_regions *regions,
					       const struct rbx_cached_region *region));

#endif
