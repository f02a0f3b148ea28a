/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions.c - requests and their regions, see regions.h.
 *
 * A request that is no hit first asks what it lacks, which changes nothing. If that can never fit
 * beside what is in use, the request fails, and the cache is as before. If it fits now, all of it
 * is promised at once. Otherwise the request takes references of what is known, so that none of it
 * is retired for the rest, and the policy names victims until there would be enough room without
 * them. Once the host has deregistered them it asks again, as things may have changed meanwhile.
 */
#include "core/region_auto.h"
#include "core/regions_internal.h"

static struct rbx_regions_lack ask_again(struct rbx_regions *regions, struct rbx_region_use *use)
{
	struct rbx_regions_lack lack = rbx_regions_ask(regions, use);

	rbx_regions_release_rest(regions, use, lack.rest);
	return lack;
}

/* Nothing that others could use leaves before it is known that the request can be served. */
int rbx_regions_again(struct rbx_regions *regions, struct rbx_region_use *use)
{
	struct rbx_regions_lack lack;

	rbx_regions_release_gone(regions, use);
	lack = ask_again(regions, use);
	if (!rbx_regions_could_fit(regions, &lack) && use->mapping_pages > 1) {
		use->mapping_pages = 1;
		lack = ask_again(regions, use);
	}
	if (!rbx_regions_could_fit(regions, &lack)) {
		rbx_regions_release_parts(regions, use);
		regions->counters.staged++;
		return -ENOBUFS;
	}
	if (!rbx_regions_fit_now(regions, &lack)) {
		rbx_regions_take(regions, use, false);
		rbx_regions_make_room(regions, &lack);
		return -EAGAIN;
	}
	rbx_regions_take(regions, use, true);
	return 0;
}

static int acquire_parts(struct rbx_regions *regions, struct rbx_region_use *use)
{
	struct rbx_regions_lack lack;

	use->count = 0;
	use->fresh = 0;
	lack = rbx_regions_ask(regions, use);
	if (!lack.count) {
		rbx_regions_take(regions, use, false);
		regions->counters.hits++;
		return 0;
	}
	if (lack.known)
		regions->counters.partial_hits++;
	else
		regions->counters.misses++;
	rbx_regions_grow(regions);
	return rbx_regions_again(regions, use);
}

static inline int hit(struct rbx_regions *regions, struct rbx_region_use *use, uint32_t slot)
{
	rbx_regions_reference(regions, rbx_regions_at(regions, slot));
	use->count = 1;
	use->fresh = 0;
	use->parts[0] = slot;
	regions->counters.hits++;
	return 0;
}

/* The table did not know it. */
RBX_APART static int search(struct rbx_regions *regions, struct rbx_region_use *use,
			    uint64_t mapping_bytes, uint32_t *front)
{
	uint32_t slot = rbx_regions_find(regions, use->first);

	if (slot != RBX_REGION_NONE &&
	    rbx_cached_region_covers(rbx_regions_at(regions, slot), use->first, use->end)) {
		*front = slot;
		return hit(regions, use, slot);
	}
	use->mapping_pages = RBX_MAX(mapping_bytes >> RBX_REGION_PAGE_SHIFT, (uint64_t)1);
	RBX_ASSERT(!(use->mapping_pages & (use->mapping_pages - 1)) &&
		   use->mapping_pages <= UINT32_MAX);
	return acquire_parts(regions, use);
}

/* The way of a hit calls nothing, so that it need not save registers. */
static inline int acquire(struct rbx_regions *regions, struct rbx_region_use *use, uint64_t first,
			  uint64_t end, uint64_t mapping_bytes)
{
	uint32_t *front = rbx_region_front(regions, first);

	use->first = first;
	use->end = end;
	if (!rbx_cached_region_covers(rbx_regions_at(regions, *front), first, end))
		return search(regions, use, mapping_bytes, front);
	return hit(regions, use, *front);
}

/* A request of the sample. */
RBX_APART static int acquire_shown(struct rbx_regions *regions, struct rbx_region_use *use,
				   uint64_t first, uint64_t end, uint64_t mapping_bytes)
{
	rbx_region_auto_observe(regions, first, end, mapping_bytes);
	return acquire(regions, use, first, end, mapping_bytes);
}

int rbx_regions_acquire(struct rbx_regions *regions, struct rbx_region_use *use, uint64_t addr,
			uint64_t length, uint64_t mapping_bytes)
{
	uint64_t first = addr >> RBX_REGION_PAGE_SHIFT;
	uint64_t end = ((addr + length - 1) >> RBX_REGION_PAGE_SHIFT) + 1;

	RBX_DEBUG_ASSERT(length && addr + length - 1 >= addr);
	if (rbx_region_auto_hash(first) < regions->sample_limit)
		return acquire_shown(regions, use, first, end, mapping_bytes);
	return acquire(regions, use, first, end, mapping_bytes);
}

void rbx_regions_release(struct rbx_regions *regions, struct rbx_region_use *use)
{
	if (use->count != 1) {
		rbx_regions_release_parts(regions, use);
		return;
	}
	use->count = 0;
	rbx_regions_unreference(regions, use->parts[0]);
}

void rbx_regions_give_up(struct rbx_regions *regions, struct rbx_region_use *use)
{
	rbx_regions_release_parts(regions, use);
	regions->counters.staged++;
}
