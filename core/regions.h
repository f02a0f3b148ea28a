/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions.h - a cache of registered memory: what the NIC knows stays known while there is room.
 *
 * A request names a range of memory. The cache compares it with the regions that it has, which
 * never overlap. There are four cases, as in the paper (section 5):
 *
 *	exact, subset   one region covers the request: it is used at once
 *	intersection    what is known is used at once, and each part that is missing becomes a new
 *	                region; so nothing is registered twice. But a request has 32 parts at most:
 *	                if there were more, all behind the 31st becomes one region, in place of the
 *	                regions that were there
 *	none            the request becomes a new region
 *
 * The host asks, and does what it is told:
 *
 *	err = rbx_regions_acquire(regions, &use, addr, length, mapping);
 *	while (err == -EAGAIN) {
 *		count = rbx_regions_batch(regions, batch, RBX_REGION_BATCH_MAX);
 *		if (!count)
 *			... waits until another thread has retired its batch
 *		... deregisters these in one call of the fabric
 *		rbx_regions_retired(regions, batch, count);
 *		err = rbx_regions_again(regions, &use);
 *	}
 *	if (err)
 *		... goes through staging memory
 *	for each part i of use.count
 *		if (use.fresh >> i & 1)
 *			... registers it
 *			rbx_regions_registered(regions, use.parts[i], cookie);
 *	... the request
 *	rbx_regions_release(regions, &use);
 *
 * An empty batch says that other threads are deregistering what this request waits for. The host
 * waits then, by a condition that is signalled after each rbx_regions_retired() and each release,
 * and does not ask again before: the answer would be the same.
 *
 * A part that is not fresh may be promised to another request, whose thread is registering it. Its
 * state says when it is ready. If it is gone instead, the system refused, or the memory changed:
 * the request releases its parts, and acquires again.
 *
 * Two budgets, pinned bytes and regions, are kept at every moment. What is promised counts from
 * before the host is told to register it, and what leaves counts until the host has deregistered
 * it. If the system has not enough (rbx_regions_refused()), that budget shrinks to what is
 * registered, and the host tries again. It grows again by and by, as a shortage may pass.
 *
 * A region with references is never retired. If its memory changes (rbx_regions_invalidate()), it
 * leaves the index at once, so no later request finds it, and is deregistered after its last
 * reference has gone.
 *
 * A hit is found without a search: a table that is looked up by the first page of the request says
 * which region covered it last time. What the table says is only believed if that region still
 * covers the request, so nothing has to be taken out of it.
 *
 * The host holds one lock around each call. None waits for anything. But some take time that grows
 * with the number of regions: rbx_regions_invalidate() and rbx_regions_clear() with those that they
 * drop, about a microsecond each; a change of policy and the resorting of mre with all.
 */
#ifndef RBX_REGIONS_H
#define RBX_REGIONS_H

#include "core/region_index.h"
#include "core/region_policy.h"

/* Parts of a request: what one work request can have as its scatter list. */
#define RBX_REGION_PARTS_MAX RBX_SGE_MAX

/* Regions that leave by one call of the fabric. */
#define RBX_REGION_BATCH_MAX 64u

/* Regions of a cache: at 114 to 126 bytes each, by the policy, this is 2 GiB of memory. */
#define RBX_REGIONS_MAX (16u << 20)

/* Of what the system has not enough, if it does not register a region. */
enum rbx_region_short {
	RBX_REGION_SHORT_OF_NOTHING, /* it refused for another reason */
	RBX_REGION_SHORT_OF_BYTES, /* RLIMIT_MEMLOCK */
	RBX_REGION_SHORT_OF_REGIONS, /* the device has no more */
};

/* What the system takes for registering and deregistering p pages: page_ns * p + call_ns. */
struct rbx_region_cost {
	uint32_t register_page_ns;
	uint32_t register_call_ns;
	uint32_t deregister_page_ns;
	uint32_t deregister_call_ns;
};

struct rbx_regions_shape {
	uint64_t bytes_max; /* pinned; at least a page of 4 KiB */
	uint32_t regions_max; /* 1 to RBX_REGIONS_MAX */
	struct rbx_region_cost cost;
	const struct rbx_region_policy *policy;
};

struct rbx_regions_counters {
	uint64_t hits; /* requests whose memory was known */
	uint64_t partial_hits; /* of which a part was known */
	uint64_t misses;
	uint64_t staged; /* for which there was no room */
	uint64_t registrations;
	uint64_t deregistrations;
	uint64_t spent_ns; /* registering and deregistering, by the cost of the shape */
	uint64_t switches; /* of auto: how often another policy was taken */
};

struct rbx_region_auto;

struct rbx_regions {
	/* What a hit needs. */
	struct rbx_cached_region *slots;
	uint32_t *fronts; /* by a hash of a page: the region that covered it last */
	uint32_t front_shift;
	uint64_t clock; /* uses so far */
	uint64_t inflation; /* see region_gdsf.c */
	uint64_t sample_limit; /* hashes below it are shown to auto; 0: none */
	uint64_t used_pages; /* of regions in the index that are in use */
	uint32_t used_count;
	struct rbx_regions_counters counters;

	const struct rbx_region_policy *policy; /* what decides now; never auto itself */
	union rbx_region_policy_state state;
	struct rbx_region_index index;
	struct rbx_region_cost cost;

	/* Both budgets, and what counts against them. */
	uint64_t pages_max;
	uint64_t pages_held; /* promised, registered, or not deregistered yet */
	uint32_t regions_max;
	uint32_t regions_held;
	uint64_t pages_limit; /* what the budgets were before refusals */
	uint32_t regions_limit;
	uint32_t misses_since_refusal; /* or since the budgets grew; hits do not count */

	/* Parts of what is held. */
	uint64_t registered_pages; /* the system has them */
	uint32_t registered_count;
	uint64_t gone_pages; /* not in the index, but still used */
	uint64_t due_pages; /* due or leaving */
	uint32_t gone_count;
	uint32_t due_count;
	uint32_t indexed_count;

	uint32_t slots_count;
	uint32_t free_first; /* slots, by next */
	uint32_t due_first; /* the regions of the next batches, by next */
	uint64_t pages_held_max; /* the most so far */
	void *policy_memory;
	size_t policy_bytes;
	struct rbx_region_auto *automatic; /* NULL: the policy is fixed */
};

/* The regions of one request. The caller's, on its stack; nothing needs to be set. */
struct rbx_region_use {
	uint64_t first; /* pages of the request */
	uint64_t end;
	uint64_t mapping_pages; /* what new regions are aligned to, if they can be */
	uint32_t count;
	uint64_t fresh; /* bit i: the host registers part i */
	uint32_t parts[RBX_REGION_PARTS_MAX]; /* regions in the order of addresses */
};
RBX_STATIC_ASSERT(RBX_REGION_PARTS_MAX <= 64, "a bit for each part");

/* Bytes of memory for a cache; 0: a value of the shape is not possible. */
size_t rbx_regions_size(const struct rbx_regions_shape *shape);

/* memory: zeroed, aligned for words, borrowed for the life of the cache.
 * Returns 0, or -EINVAL: a value of the shape is not possible. */
int rbx_regions_init(struct rbx_regions *regions, const struct rbx_regions_shape *shape,
		     void *memory);

/**
 * rbx_regions_acquire() - the regions of a request, each with a reference.
 * @use: receives them
 * @addr, @length: of the memory; length is not 0
 * @mapping_bytes: the pages with which it is mapped, such as 2 MiB; 0: those of the cache
 *
 * Returns 0, or:
 *	-EAGAIN: there is room after the next batch; then call rbx_regions_again(). What is known
 *	keeps its references meanwhile.
 *	-ENOBUFS: there is no room, as too much is in use; nothing was acquired
 */
int rbx_regions_acquire(struct rbx_regions *regions, struct rbx_region_use *use, uint64_t addr,
			uint64_t length, uint64_t mapping_bytes);
int rbx_regions_again(struct rbx_regions *regions, struct rbx_region_use *use);

/* Gives up what rbx_regions_acquire() has returned -EAGAIN for. */
void rbx_regions_give_up(struct rbx_regions *regions, struct rbx_region_use *use);

/* A reference of each part goes. A fresh part must have been registered or refused. */
void rbx_regions_release(struct rbx_regions *regions, struct rbx_region_use *use);

/* The host has registered a fresh part. cookie: returned with the region. */
void rbx_regions_registered(struct rbx_regions *regions, uint32_t region, uint64_t cookie);

/*
 * The system did not register a fresh part. The region leaves the index. Requests that wait for it
 * see that it is not ready any more and have to acquire again. lacks: that budget becomes what is
 * registered, unless it is less already.
 *
 * Returns whether another try is worth while. If so, the host releases the use and acquires once
 * more, which makes regions leave until there is room in the smaller budget. If not, nothing can
 * leave, or room is not what was missing: the host releases the use and goes through staging
 * memory.
 */
bool rbx_regions_refused(struct rbx_regions *regions, uint32_t region, enum rbx_region_short lacks);

/* The next regions to deregister, by one call of the fabric. Returns how many. */
uint32_t rbx_regions_batch(struct rbx_regions *regions, uint32_t *batch, uint32_t count_max);

/* These are deregistered; their room is free. */
void rbx_regions_retired(struct rbx_regions *regions, const uint32_t *batch, uint32_t count);

/* The memory there is unmapped, or another one. Regions that touch it leave the index. Look for a
 * batch afterwards. A range that goes beyond the end of the address space ends there. */
void rbx_regions_invalidate(struct rbx_regions *regions, uint64_t addr, uint64_t length);

/* All regions leave, before the end. */
void rbx_regions_clear(struct rbx_regions *regions);

/* What follows is for the parts of the cache and for its tests. */

static inline struct rbx_cached_region *rbx_regions_at(const struct rbx_regions *regions,
						       uint32_t region)
{
	return &regions->slots[region];
}

/* Regions of the index that a policy may choose. */
static inline uint32_t rbx_regions_idle(const struct rbx_regions *regions)
{
	return regions->indexed_count - regions->used_count;
}

/* What registering a region costs, and deregistering it. */
static inline uint64_t rbx_region_register_ns(const struct rbx_region_cost *cost, uint64_t pages)
{
	return cost->register_page_ns * pages + cost->register_call_ns;
}

static inline uint64_t rbx_region_deregister_ns(const struct rbx_region_cost *cost, uint64_t pages)
{
	return cost->deregister_page_ns * pages + cost->deregister_call_ns;
}

/* Takes a region out of the index, and out of the policy. */
void rbx_regions_drop(struct rbx_regions *regions, uint32_t region);

/* The same with all regions that touch a range of pages. */
void rbx_regions_drop_range(struct rbx_regions *regions, uint64_t first, uint64_t end);

/* Another policy decides from now on. The cache must have been made for auto, which has room for
 * each. */
void rbx_regions_follow(struct rbx_regions *regions, const struct rbx_region_policy *policy);

/* Other budgets. The regions above them leave with the next requests. */
void rbx_regions_set_budgets(struct rbx_regions *regions, uint64_t bytes_max, uint32_t regions_max);

/* What covered a request that began there last time; to be checked. */
static inline uint32_t *rbx_region_front(struct rbx_regions *regions, uint64_t first)
{
	return &regions->fronts[first * RBX_REGION_SPREAD >> regions->front_shift];
}

static inline bool rbx_cached_region_covers(const struct rbx_cached_region *region, uint64_t first,
					    uint64_t end)
{
	return region->state == RBX_REGION_READY && region->first <= first &&
	       rbx_region_end(region) >= end;
}

/* A use that the policies will see. */
static inline void rbx_region_touch(struct rbx_regions *regions, struct rbx_cached_region *region)
{
	region->stamp = ++regions->clock;
	region->base = regions->inflation;
	region->uses++;
}

#endif
