/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.h - the cache of a NIC for data in the memory of its host: work requests, contexts of
 * queue pairs, translations of addresses.
 *
 * It has sets of several ways; the least recently used entry gives way to a new one. Keys are
 * numbers that the simulation has given out. A hash spreads them over the sets, so a cache
 * fills up gradually and not at once.
 */
#ifndef RBX_SIM_NIC_CACHE_H
#define RBX_SIM_NIC_CACHE_H

#include "core/port.h"

struct rbx_nic_cache {
	uint32_t set_count, way_count;
	uint64_t *keys; /* way_count of each set, the last used first; 0: none */
	uint64_t hits, misses; /* counters */
};

/* As many sets as entry_count fills, at least one. -ENOMEM. */
int rbx_nic_cache_init(struct rbx_nic_cache *cache, uint32_t entry_count,
		       uint32_t way_count);
void rbx_nic_cache_destroy(struct rbx_nic_cache *cache);

/* Whether the key is there; it is from now on, as the last used. key: not 0. */
bool rbx_nic_cache_use(struct rbx_nic_cache *cache, uint64_t key);

/* The same when the NIC was given the data: no lookup is counted. */
void rbx_nic_cache_put(struct rbx_nic_cache *cache, uint64_t key);

/* It is of no use any more. */
void rbx_nic_cache_drop(struct rbx_nic_cache *cache, uint64_t key);

#endif
