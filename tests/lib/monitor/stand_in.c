/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stand_in.c - see stand_in.h. */
#include "tests/lib/monitor/stand_in.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"

static bool overlaps(const struct stand_in_region *region, uintptr_t start, uintptr_t end)
{
	return (uintptr_t)region->addr < end && start < (uintptr_t)region->addr + region->bytes;
}

static void changed(struct rbx_memory_monitor_listener *listener, uintptr_t start, uintptr_t end)
{
	struct stand_in *cache = (struct stand_in *)listener;

	pthread_mutex_lock(&cache->lock);
	cache->told_count++;
	cache->told_start = start;
	cache->told_end = end;
	for (int i = 0; i < STAND_IN_REGIONS_MAX && !cache->is_deaf; i++) {
		struct stand_in_region *region = &cache->regions[i];

		if (region->state == REGION_FREE || !overlaps(region, start, end))
			continue;
		if (region->state == REGION_CACHED)
			region->state = REGION_DROPPED;
		region->is_marked = true;
	}
	pthread_mutex_unlock(&cache->lock);
}

void stand_in_open(struct stand_in *cache, enum rbx_memory_monitor_mode mode)
{
	memset(cache, 0, sizeof(*cache));
	pthread_mutex_init(&cache->lock, NULL);
	pinning_open(&cache->device, STAND_IN_REGIONS_MAX);
	cache->listener.changed = changed;
	if (rbx_memory_monitor_listen(&cache->listener, mode))
		fail_msg("%s", rbx_last_error());
}

static unsigned int slot_of(const struct stand_in *cache, const struct stand_in_region *region)
{
	return (unsigned int)(region - cache->regions);
}

/* The device forgets the pages. Nobody else knows the region any more. */
static void deregister(struct stand_in *cache, struct stand_in_region *region)
{
	if (region->is_watched)
		rbx_memory_monitor_unwatch(&cache->listener, region->addr, region->bytes);
	pinning_unpin(&cache->device, slot_of(cache, region));
	pthread_mutex_lock(&cache->lock);
	region->state = REGION_FREE;
	pthread_mutex_unlock(&cache->lock);
}

static struct stand_in_region *take(struct stand_in *cache, enum region_state from,
				    enum region_state to)
{
	struct stand_in_region *found = NULL;

	pthread_mutex_lock(&cache->lock);
	for (int i = 0; i < STAND_IN_REGIONS_MAX && !found; i++)
		if (cache->regions[i].state == from)
			found = &cache->regions[i];
	if (found) {
		found->state = to;
		found->is_marked = false;
		found->is_watched = false;
		found->bytes = 0;
	}
	pthread_mutex_unlock(&cache->lock);
	return found;
}

/* Takes one out of the table, whose watch is to be ended. NULL: there is none. */
static struct stand_in_region *take_out(struct stand_in *cache, enum region_state from)
{
	struct stand_in_region *found = NULL;

	pthread_mutex_lock(&cache->lock);
	for (int i = 0; i < STAND_IN_REGIONS_MAX && !found; i++) {
		if (cache->regions[i].state != from)
			continue;
		found = &cache->regions[i];
		found->state = REGION_REGISTERING; /* found by nobody */
	}
	pthread_mutex_unlock(&cache->lock);
	return found;
}

static void reap(struct stand_in *cache, enum region_state from)
{
	struct stand_in_region *region;

	while ((region = take_out(cache, from)))
		deregister(cache, region);
}

/* A change may still be told, and drop what is cached. */
void stand_in_close(struct stand_in *cache)
{
	reap(cache, REGION_CACHED);
	reap(cache, REGION_DROPPED);
	rbx_memory_monitor_leave(&cache->listener);
	pinning_close(&cache->device);
}

/* Reads what the pages of a registration hold. The lock is held. */
static void read_pages(struct stand_in *cache, const struct stand_in_region *region,
		       const uint8_t *addr, size_t pages, uint64_t *words)
{
	for (size_t i = 0; i < pages; i++)
		pinning_read(&cache->device, slot_of(cache, region), addr + i * PAGE, &words[i],
			     sizeof(words[i]));
}

static bool hit(struct stand_in *cache, uint8_t *addr, size_t pages, uint64_t *words)
{
	bool found = false;

	if (!rbx_memory_monitor_is_settled(&cache->listener))
		return false;
	pthread_mutex_lock(&cache->lock);
	for (int i = 0; i < STAND_IN_REGIONS_MAX && !found; i++) {
		struct stand_in_region *region = &cache->regions[i];

		found = region->state == REGION_CACHED && addr >= region->addr &&
			addr + pages * PAGE <= region->addr + region->bytes;
		if (found)
			read_pages(cache, region, addr, pages, words);
	}
	cache->hits_count += found;
	pthread_mutex_unlock(&cache->lock);
	return found;
}

/* From now on changed() finds it. */
static struct stand_in_region *enter(struct stand_in *cache, uint8_t *addr, size_t pages)
{
	struct stand_in_region *region;

	while (!(region = take(cache, REGION_FREE, REGION_REGISTERING)))
		reap(cache, REGION_CACHED); /* full */
	pthread_mutex_lock(&cache->lock);
	region->addr = addr;
	region->bytes = pages * PAGE;
	pthread_mutex_unlock(&cache->lock);
	return region;
}

int stand_in_read(struct stand_in *cache, uint8_t *addr, size_t pages, uint64_t *words)
{
	struct stand_in_region *region;
	bool is_cached;
	int err;

	if (hit(cache, addr, pages, words))
		return 0;
	reap(cache, REGION_DROPPED);
	region = enter(cache, addr, pages);
	region->is_watched = !rbx_memory_monitor_watch(&cache->listener, addr, pages * PAGE);
	err = pinning_pin(&cache->device, slot_of(cache, region), addr, pages * PAGE);
	pthread_mutex_lock(&cache->lock);
	if (!err)
		read_pages(cache, region, addr, pages, words);
	is_cached = !err && region->is_watched && !region->is_marked;
	if (is_cached)
		region->state = REGION_CACHED;
	pthread_mutex_unlock(&cache->lock);
	if (!is_cached)
		deregister(cache, region);
	return err;
}

uint32_t stand_in_told(struct stand_in *cache)
{
	uint32_t count;

	rbx_memory_monitor_wait();
	pthread_mutex_lock(&cache->lock);
	count = cache->told_count;
	pthread_mutex_unlock(&cache->lock);
	return count;
}

uint32_t stand_in_hits(struct stand_in *cache)
{
	uint32_t count;

	pthread_mutex_lock(&cache->lock);
	count = cache->hits_count;
	pthread_mutex_unlock(&cache->lock);
	return count;
}

void pages_stamp(uint8_t *addr, size_t pages, uint64_t word)
{
	for (size_t i = 0; i < pages; i++)
		memcpy(addr + i * PAGE, &word, sizeof(word));
}
