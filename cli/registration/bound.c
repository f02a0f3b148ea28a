/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one who knows the future would spend: BeladySize, on the cache of the core.
 *
 * The victim is the region that takes most room for longest until its next use, for what it costs
 * to have it again: pages * time / (register + deregister). If the number of regions is what is
 * short, each takes the same room. Of many regions 128 are drawn at random and
 * compared. With regions of different sizes nobody knows a best order that can be computed, so this
 * is a good one and not a proof: if a few regions are very large, a policy may come out below it.
 *
 * The memory of the trace is cut into segments where any request begins or ends. For each request
 * and segment it is known beforehand which request uses the segment next. A region's next use is
 * the earliest of its segments'. It stays right until it has come, and only then is it looked up
 * again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/registration/registration.h"
#include "core/random.h"
#include "core/regions_play.h"

#define DRAWN 128u
#define NEVER UINT32_MAX

/* What is known of the future takes 4 bytes for each segment of each request. */
#define USES_MAX (1ull << 29)

struct registration_future {
	const struct registration_trace *trace;
	uint64_t *borders; /* pages, rising; segment i is from border i to border i + 1 */
	uint32_t borders_count;
	uint32_t *firsts; /* segment of each request */
	uint64_t *uses_at; /* of each request: its first use, and the end */
	uint32_t *next_uses; /* of each use: the request that uses the segment next */
	uint32_t *first_uses; /* of each segment: the first request that uses it */
	/* Of one budget: */
	uint32_t *next; /* of each segment: the request that uses it next, as of now */
	uint32_t now; /* the request */
	struct rbx_random random;
	struct rbx_regions regions;
	uint32_t *places; /* the regions of the index, in any order */
	uint32_t count;
};

static struct registration_future *future_of(const struct rbx_regions *regions)
{
	return RBX_CONTAINER_OF(regions, struct registration_future, regions);
}

/* ---- As a policy of the core ----------------------------------------------------*/

static size_t bound_size(uint32_t regions)
{
	return regions * sizeof(uint32_t);
}

static void bound_init(struct rbx_regions *regions, void *memory)
{
	future_of(regions)->places = memory;
}

static void bound_admit(struct rbx_regions *regions, uint32_t slot)
{
	struct registration_future *future = future_of(regions);

	regions->slots[slot].key = 0; /* to be looked up */
	regions->slots[slot].prev = future->count;
	future->places[future->count++] = slot;
}

static void bound_remove(struct rbx_regions *regions, uint32_t slot)
{
	struct registration_future *future = future_of(regions);
	uint32_t place = regions->slots[slot].prev, last = future->places[--future->count];

	future->places[place] = last;
	regions->slots[last].prev = place;
}

static uint32_t segment_of(const struct registration_future *future, uint64_t page)
{
	uint32_t low = 0, high = future->borders_count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (future->borders[middle] < page)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t next_use(const struct registration_future *future, struct rbx_cached_region *region)
{
	if (region->key <= future->now) {
		uint32_t i = segment_of(future, region->first);

		region->key = NEVER;
		for (; future->borders[i] < rbx_region_end(region); i++)
			region->key = RBX_MIN(region->key, (uint64_t)future->next[i]);
	}
	return region->key;
}

static double harm_of_keeping(const struct registration_future *future,
			      struct rbx_cached_region *region)
{
	const struct rbx_regions *regions = &future->regions;
	const struct rbx_region_cost *cost = &regions->cost;
	uint64_t until = next_use(future, region);
	uint32_t room = regions->regions_held < regions->regions_max ? region->pages : 1;

	/* One that is never used again goes first, the larger the sooner. */
	if (until == NEVER)
		return 1e30 * region->pages;
	return (double)(until - future->now) * room /
	       (double)(rbx_region_register_ns(cost, region->pages) +
			rbx_region_deregister_ns(cost, region->pages));
}

static uint32_t bound_victim(struct rbx_regions *regions)
{
	struct registration_future *future = future_of(regions);
	uint32_t looks = RBX_MIN(future->count, DRAWN), i, victim = RBX_REGION_NONE;
	double most = -1;

	/* Those in use are few; the second time all are looked at. */
	for (i = 0; victim == RBX_REGION_NONE ? i < looks + future->count : i < looks; i++) {
		uint32_t at = future->count <= DRAWN || i >= looks ?
				      i % future->count :
				      rbx_random_below(&future->random, future->count);
		struct rbx_cached_region *region = &regions->slots[future->places[at]];
		double harm = region->references ? -1 : harm_of_keeping(future, region);

		if (harm > most) {
			most = harm;
			victim = future->places[at];
		}
	}
	return victim;
}

static const struct rbx_region_policy bound_policy = {
	.name = "bound",
	.size = bound_size,
	.init = bound_init,
	.admit = bound_admit,
	.remove = bound_remove,
	.victim = bound_victim,
};

/* ---- The future -----------------------------------------------------------------*/

static uint64_t first_page(const struct registration_request *request)
{
	return request->addr / REGISTRATION_PAGE_BYTES;
}

static uint64_t end_page(const struct registration_request *request)
{
	return (request->addr + request->length - 1) / REGISTRATION_PAGE_BYTES + 1;
}

static int by_page(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static int find_borders(struct registration_future *future)
{
	const struct registration_trace *trace = future->trace;
	uint64_t i, kept = 0;

	future->borders = malloc(2 * trace->count * sizeof(*future->borders));
	if (!future->borders)
		return -ENOMEM;
	for (i = 0; i < trace->count; i++) {
		future->borders[2 * i] = first_page(&trace->requests[i]);
		future->borders[2 * i + 1] = end_page(&trace->requests[i]);
	}
	qsort(future->borders, 2 * trace->count, sizeof(*future->borders), by_page);
	for (i = 0; i < 2 * trace->count; i++)
		if (!kept || future->borders[kept - 1] != future->borders[i])
			future->borders[kept++] = future->borders[i];
	future->borders_count = (uint32_t)kept;
	return 0;
}

static int find_uses(struct registration_future *future)
{
	const struct registration_trace *trace = future->trace;
	uint64_t i, uses = 0;

	future->firsts = malloc(trace->count * sizeof(*future->firsts));
	future->uses_at = malloc((trace->count + 1) * sizeof(*future->uses_at));
	future->first_uses = malloc(future->borders_count * sizeof(*future->first_uses));
	future->next = malloc(future->borders_count * sizeof(*future->next));
	if (!future->firsts || !future->uses_at || !future->first_uses || !future->next)
		return -ENOMEM;
	for (i = 0; i < trace->count; i++) {
		future->firsts[i] = segment_of(future, first_page(&trace->requests[i]));
		future->uses_at[i] = uses;
		uses += segment_of(future, end_page(&trace->requests[i])) - future->firsts[i];
	}
	future->uses_at[trace->count] = uses;
	if (uses > USES_MAX)
		return -ENOMEM;
	future->next_uses = malloc(uses * sizeof(*future->next_uses));
	if (!future->next_uses)
		return -ENOMEM;
	memset(future->first_uses, 0xff, future->borders_count * sizeof(*future->first_uses));
	for (i = trace->count; i--;)
		for (uint64_t use = future->uses_at[i]; use < future->uses_at[i + 1]; use++) {
			uint64_t segment = future->firsts[i] + (use - future->uses_at[i]);

			future->next_uses[use] = future->first_uses[segment];
			future->first_uses[segment] = (uint32_t)i;
		}
	return 0;
}

void registration_future_free(struct registration_future *future)
{
	if (!future)
		return;
	free(future->borders);
	free(future->firsts);
	free(future->uses_at);
	free(future->next_uses);
	free(future->first_uses);
	free(future->next);
	free(future);
}

struct registration_future *registration_future_new(const struct registration_trace *trace)
{
	struct registration_future *future = calloc(1, sizeof(*future));

	if (!future)
		return NULL;
	future->trace = trace;
	if (!find_borders(future) && !find_uses(future))
		return future;
	registration_future_free(future);
	return NULL;
}

/* ---- One budget -----------------------------------------------------------------*/

static void play(struct registration_future *future)
{
	const struct registration_trace *trace = future->trace;

	memcpy(future->next, future->first_uses, future->borders_count * sizeof(*future->next));
	future->count = 0;
	rbx_random_seed(&future->random, 1);
	for (uint64_t i = 0; i < trace->count; i++) {
		future->now = (uint32_t)i;
		for (uint64_t use = future->uses_at[i]; use < future->uses_at[i + 1]; use++)
			future->next[future->firsts[i] + (use - future->uses_at[i])] =
				future->next_uses[use];
		rbx_regions_play(&future->regions, trace->requests[i].addr,
				 trace->requests[i].length);
	}
}

int registration_bound(struct registration_future *future, const struct rbx_regions_shape *shape,
		       uint64_t *bound_ns)
{
	struct rbx_regions_shape bound = *shape;
	void *memory;
	int err;

	bound.policy = &bound_policy;
	memory = calloc(1, rbx_regions_size(&bound));
	if (!memory)
		return -ENOMEM;
	err = rbx_regions_init(&future->regions, &bound, memory);
	if (!err) {
		play(future);
		*bound_ns = future->regions.counters.spent_ns;
	}
	free(memory);
	return err;
}
