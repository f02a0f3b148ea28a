/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cache.c - see cache.h. A set is an array in the order of last use. */
#include "sim/nic/cache.h"

#include <stdlib.h>

#include "core/random.h"

int rbx_nic_cache_init(struct rbx_nic_cache *cache, uint32_t entry_count,
		       uint32_t way_count)
{
	*cache = (struct rbx_nic_cache){
		.way_count = RBX_MIN(way_count, entry_count),
	};
	cache->set_count = entry_count / cache->way_count;
	cache->keys = calloc((size_t)cache->set_count * cache->way_count,
			     sizeof(*cache->keys));
	return cache->keys ? 0 : -ENOMEM;
}

void rbx_nic_cache_destroy(struct rbx_nic_cache *cache)
{
	free(cache->keys);
}

static uint64_t *set_of(struct rbx_nic_cache *cache, uint64_t key)
{
	struct rbx_random mixer;

	rbx_random_seed(&mixer, key);
	return &cache->keys[(size_t)rbx_random_below(&mixer, cache->set_count) *
			    cache->way_count];
}

/* Its position in the set; way_count: it is not there. */
static uint32_t find(const struct rbx_nic_cache *cache, const uint64_t *set,
		     uint64_t key)
{
	uint32_t way = 0;

	while (way < cache->way_count && set[way] != key)
		way++;
	return way;
}

static bool make_latest(struct rbx_nic_cache *cache, uint64_t key)
{
	uint64_t *set = set_of(cache, key);
	uint32_t way;
	bool found;

	RBX_ASSERT(key != 0);
	if (set[0] == key)
		return true;
	way = find(cache, set, key);
	found = way < cache->way_count;
	for (way = found ? way : cache->way_count - 1; way > 0; way--)
		set[way] = set[way - 1];
	set[0] = key;
	return found;
}

bool rbx_nic_cache_use(struct rbx_nic_cache *cache, uint64_t key)
{
	bool found = make_latest(cache, key);

	if (found)
		cache->hits++;
	else
		cache->misses++;
	return found;
}

void rbx_nic_cache_put(struct rbx_nic_cache *cache, uint64_t key)
{
	make_latest(cache, key);
}

void rbx_nic_cache_drop(struct rbx_nic_cache *cache, uint64_t key)
{
	uint64_t *set = set_of(cache, key);
	uint32_t way = find(cache, set, key);

	if (way == cache->way_count)
		return;
	for (; way + 1 < cache->way_count; way++)
		set[way] = set[way + 1];
	set[way] = 0;
}
