/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_cache.c - see region_cache.h.
 *
 * One lock guards the regions. changed() takes it, in whichever thread the monitor runs, and a
 * thread in free() may wait for that. So nothing that allocates, frees, unmaps, registers or
 * deregisters is done with the lock held: a thread lets it go, does that, and takes it again. The
 * states of the regions say what is under way meanwhile.
 *
 * The order that the monitor asks for: a region is in the index, as promised, before it is watched,
 * and watched before it is registered. If its memory changes from then on, changed() takes it out
 * of the index. It is then used by who has it, and never found.
 *
 * Threads that wait for each other do so by one condition. Nobody waits with promises of its own
 * that are not kept: first a thread registers what it has promised, then it waits for what others
 * have. So there is no circle.
 */
#include "lib/buffers/region_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"

/* How often a use begins anew, as what it waited for is gone, or the system refuses. */
#define TRIES_MAX 8u

struct rbx_region_cache {
	struct rbx_device *device;
	struct rbx_memory_monitor_listener listener;
	pthread_t thread;
	void *memory;
	char why[320];

	pthread_mutex_t lock; /* guards all below */
	/* Regions are ready, gone, unused or deregistered. */
	pthread_cond_t changed;
	pthread_cond_t due; /* for the thread */
	bool stop;
	struct rbx_regions regions;
	uint64_t spent_ns, saved_ns; /* see rbx_region_cache_counters */

	uint64_t failures; /* atomic */
};

static struct rbx_mr *mr_of(const struct rbx_cached_region *region)
{
	return (struct rbx_mr *)(uintptr_t)region->cookie;
}

static void *addr_of(const struct rbx_cached_region *region)
{
	return (void *)(uintptr_t)(region->first << RBX_REGION_PAGE_SHIFT);
}

static size_t bytes_of(const struct rbx_cached_region *region)
{
	return (size_t)region->pages << RBX_REGION_PAGE_SHIFT;
}

/* ---- Leaving --------------------------------------------------------------------------*/

/* Deregisters a batch. Returns how many; 0: nothing is due. The lock is held, and let go
 * meanwhile: nobody looks at regions that are leaving. */
static uint32_t batch_retire_locked(struct rbx_region_cache *cache)
{
	uint32_t batch[RBX_REGION_BATCH_MAX], count, i;
	struct rbx_mr *mrs[RBX_REGION_BATCH_MAX];
	uint64_t start_ns;

	count = rbx_regions_batch(&cache->regions, batch, RBX_REGION_BATCH_MAX);
	if (!count)
		return 0;
	pthread_mutex_unlock(&cache->lock);
	for (i = 0; i < count; i++) {
		const struct rbx_cached_region *region = rbx_regions_at(&cache->regions, batch[i]);

		mrs[i] = mr_of(region);
		rbx_memory_monitor_unwatch(&cache->listener, addr_of(region), bytes_of(region));
	}
	start_ns = rbx_now_ns();
	cache->device->ops->deregister_memory(cache->device, mrs, count);
	pthread_mutex_lock(&cache->lock);
	cache->spent_ns += rbx_now_ns() - start_ns;
	rbx_regions_retired(&cache->regions, batch, count);
	pthread_cond_broadcast(&cache->changed);
	return count;
}

static void *region_cache_main(void *arg)
{
	struct rbx_region_cache *cache = arg;

	pthread_mutex_lock(&cache->lock);
	while (!cache->stop)
		if (!batch_retire_locked(cache))
			pthread_cond_wait(&cache->due, &cache->lock);
	pthread_mutex_unlock(&cache->lock);
	return NULL;
}

static void changed(struct rbx_memory_monitor_listener *listener, uintptr_t start, uintptr_t end)
{
	struct rbx_region_cache *cache =
		RBX_CONTAINER_OF(listener, struct rbx_region_cache, listener);

	pthread_mutex_lock(&cache->lock);
	rbx_regions_invalidate(&cache->regions, start, end - start);
	pthread_cond_broadcast(&cache->changed);
	pthread_cond_signal(&cache->due);
	pthread_mutex_unlock(&cache->lock);
}

/* ---- Taking ---------------------------------------------------------------------------*/

static enum rbx_region_short lack_of(int err)
{
	switch (err) {
	case -ENOMEM:
		return RBX_REGION_SHORT_OF_BYTES; /* RLIMIT_MEMLOCK says so, too */
	case -EAGAIN:
	case -EMFILE:
	case -ENOSPC:
		return RBX_REGION_SHORT_OF_REGIONS;
	default:
		return RBX_REGION_SHORT_OF_NOTHING;
	}
}

/* Memory is watched before it is registered. *lack: of what the system has not enough. */
static int watched_register(struct rbx_region_cache *cache, const struct rbx_mr_init *init,
			    struct rbx_mr **mr, enum rbx_region_short *lack, char *error)
{
	int err = rbx_memory_monitor_watch(&cache->listener, init->addr, init->length_bytes);

	*lack = RBX_REGION_SHORT_OF_NOTHING;
	if (err)
		return err;
	err = cache->device->ops->register_memory(cache->device, init, 1, mr, error);
	if (!err)
		return 0;
	*lack = lack_of(err);
	rbx_memory_monitor_unwatch(&cache->listener, init->addr, init->length_bytes);
	RBX_ADD_RELAXED(&cache->failures, 1);
	return err;
}

/* Registers what is promised. The lock is held, and let go meanwhile. *again: if it is refused,
 * whether another try is worth while. */
static int promise_keep_locked(struct rbx_region_cache *cache, uint32_t slot, bool *again,
			       char *error)
{
	struct rbx_cached_region *region = rbx_regions_at(&cache->regions, slot);
	const struct rbx_mr_init init = {
		.addr = addr_of(region),
		.length_bytes = bytes_of(region),
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	enum rbx_region_short lack;
	uint64_t start_ns;
	struct rbx_mr *mr;
	int err;

	pthread_mutex_unlock(&cache->lock);
	start_ns = rbx_now_ns();
	err = watched_register(cache, &init, &mr, &lack, error);
	pthread_mutex_lock(&cache->lock);
	cache->spent_ns += rbx_now_ns() - start_ns;
	if (err)
		*again |= rbx_regions_refused(&cache->regions, slot, lack);
	else
		rbx_regions_registered(&cache->regions, slot, (uintptr_t)mr);
	return err;
}

static int promises_keep_locked(struct rbx_region_cache *cache, const struct rbx_region_use *use,
				bool *again, char *error)
{
	int first_err = 0;

	*again = false;
	for (uint32_t i = 0; i < use->count; i++) {
		int err = 0;

		if (!(use->fresh >> i & 1))
			continue;
		/* After a failure the others are refused: this use will not have them. */
		if (first_err)
			(void)rbx_regions_refused(&cache->regions, use->parts[i],
						  RBX_REGION_SHORT_OF_NOTHING);
		else
			err = promise_keep_locked(cache, use->parts[i], again, error);
		if (err)
			first_err = err;
	}
	pthread_cond_broadcast(&cache->changed);
	return first_err;
}

/* Waits for what others register. -EAGAIN: it is gone. */
static int others_wait_locked(struct rbx_region_cache *cache, const struct rbx_region_use *use)
{
	for (uint32_t i = 0; i < use->count; i++) {
		const struct rbx_cached_region *region =
			rbx_regions_at(&cache->regions, use->parts[i]);

		if (use->fresh >> i & 1)
			continue;
		while (region->state == RBX_REGION_PROMISED)
			pthread_cond_wait(&cache->changed, &cache->lock);
		if (!region->is_registered)
			return -EAGAIN;
	}
	return 0;
}

static int acquire_locked(struct rbx_region_cache *cache, struct rbx_region_use *use,
			  const void *addr, size_t length_bytes)
{
	int err = rbx_regions_acquire(&cache->regions, use, (uintptr_t)addr, length_bytes, 0);

	while (err == -EAGAIN) {
		if (!batch_retire_locked(cache))
			pthread_cond_wait(&cache->changed, &cache->lock);
		err = rbx_regions_again(&cache->regions, use);
	}
	return err;
}

static void release_locked(struct rbx_region_cache *cache, struct rbx_region_use *use)
{
	rbx_regions_release(&cache->regions, use);
	if (cache->regions.due_count)
		pthread_cond_signal(&cache->due);
	pthread_cond_broadcast(&cache->changed);
}

/* One try. *again: another one may go better. */
static int take_locked(struct rbx_region_cache *cache, struct rbx_region_use *use,
		       const void *addr, size_t length_bytes, bool *again, char *error)
{
	int err = acquire_locked(cache, use, addr, length_bytes);

	*again = false;
	if (err)
		return err;
	if (use->fresh) {
		err = promises_keep_locked(cache, use, again, error);
		if (err)
			goto out_release;
	}
	err = others_wait_locked(cache, use);
	if (!err)
		return 0;
	*again = true;

out_release:
	release_locked(cache, use);
	return err;
}

bool rbx_region_cache_is_settled(struct rbx_region_cache *cache)
{
	return rbx_memory_monitor_is_settled(&cache->listener);
}

/* What it would have taken to register this for one use. */
static uint64_t saved_ns(const struct rbx_region_cache *cache, const struct rbx_region_use *use)
{
	const struct rbx_region_cost *cost = &cache->regions.cost;

	return rbx_region_register_ns(cost, use->end - use->first) +
	       rbx_region_deregister_ns(cost, use->end - use->first);
}

int rbx_region_cache_take(struct rbx_region_cache *cache, struct rbx_region_use *use,
			  const void *addr, size_t length_bytes, char *error)
{
	bool again = true;
	int err = -EAGAIN;

	pthread_mutex_lock(&cache->lock);
	for (uint32_t i = 0; again && i < TRIES_MAX; i++)
		err = take_locked(cache, use, addr, length_bytes, &again, error);
	if (!err && !use->fresh)
		cache->saved_ns += saved_ns(cache, use);
	pthread_mutex_unlock(&cache->lock);
	return err;
}

void rbx_region_cache_give(struct rbx_region_cache *cache, const uint32_t regions[],
			   uint32_t count)
{
	struct rbx_region_use use = { .count = count };

	RBX_ASSERT(count <= RBX_REGION_PARTS_MAX);
	memcpy(use.parts, regions, count * sizeof(regions[0]));
	pthread_mutex_lock(&cache->lock);
	release_locked(cache, &use);
	pthread_mutex_unlock(&cache->lock);
}

const struct rbx_mr *rbx_region_cache_mr(const struct rbx_region_cache *cache, uint32_t region)
{
	return mr_of(rbx_regions_at(&cache->regions, region));
}

void rbx_region_cache_counters(struct rbx_region_cache *cache,
			       struct rbx_region_cache_counters *counters)
{
	const struct rbx_regions *regions = &cache->regions;

	pthread_mutex_lock(&cache->lock);
	*counters = (struct rbx_region_cache_counters){
		.regions = regions->counters,
		.failures = RBX_LOAD_RELAXED(&cache->failures),
		.bytes = regions->registered_pages << RBX_REGION_PAGE_SHIFT,
		.spent_ns = cache->spent_ns,
		.saved_ns = cache->saved_ns,
	};
	pthread_mutex_unlock(&cache->lock);
}

/* ---- Life -----------------------------------------------------------------------------*/

static void tell(struct rbx_region_cache *cache, const struct rbx_regions_shape *shape)
{
	snprintf(cache->why, sizeof(cache->why), "%llu MiB in %u regions at most, by %s; %s",
		 (unsigned long long)shape->bytes_max >> 20, shape->regions_max,
		 shape->policy->name, cache->listener.why);
}

bool rbx_region_cache_keeps(const struct rbx_region_cache *cache)
{
	return cache->listener.source != RBX_MEMORY_MONITOR_NONE;
}

const char *rbx_region_cache_why(const struct rbx_region_cache *cache)
{
	return cache->why;
}

static int regions_make(struct rbx_region_cache *cache, const struct rbx_regions_shape *shape)
{
	size_t bytes = rbx_regions_size(shape);

	if (!bytes)
		return rbx_error(-EINVAL, "a cache of %u regions and %llu bytes is not possible",
				 shape->regions_max, (unsigned long long)shape->bytes_max);
	cache->memory = calloc(1, bytes);
	if (!cache->memory)
		return rbx_error(-ENOMEM, "no memory for a cache of %u regions",
				 shape->regions_max);
	return rbx_regions_init(&cache->regions, shape, cache->memory);
}

int rbx_region_cache_open(struct rbx_region_cache **out, struct rbx_device *device,
			  const struct rbx_regions_shape *shape, enum rbx_memory_monitor_mode mode)
{
	struct rbx_region_cache *cache = calloc(1, sizeof(*cache));
	int err;

	if (!cache)
		return rbx_error(-ENOMEM, "cannot allocate a cache of regions");
	cache->device = device;
	cache->listener.changed = changed;
	pthread_mutex_init(&cache->lock, NULL);
	pthread_cond_init(&cache->changed, NULL);
	pthread_cond_init(&cache->due, NULL);
	err = regions_make(cache, shape);
	if (err)
		goto out_free;
	err = rbx_memory_monitor_listen(&cache->listener, mode);
	if (err)
		goto out_free;
	tell(cache, shape);
	err = -pthread_create(&cache->thread, NULL, region_cache_main, cache);
	if (err) {
		err = rbx_error(err, "cannot start a thread: %s", strerror(-err));
		goto out_leave;
	}
	*out = cache;
	return 0;

out_leave:
	rbx_memory_monitor_leave(&cache->listener);
out_free:
	pthread_cond_destroy(&cache->due);
	pthread_cond_destroy(&cache->changed);
	pthread_mutex_destroy(&cache->lock);
	free(cache->memory);
	free(cache);
	return err;
}

void rbx_region_cache_close(struct rbx_region_cache *cache)
{
	if (!cache)
		return;
	pthread_mutex_lock(&cache->lock);
	cache->stop = true;
	pthread_cond_signal(&cache->due);
	pthread_mutex_unlock(&cache->lock);
	pthread_join(cache->thread, NULL);
	pthread_mutex_lock(&cache->lock);
	rbx_regions_clear(&cache->regions);
	while (batch_retire_locked(cache))
		;
	RBX_ASSERT(!cache->regions.regions_held);
	pthread_mutex_unlock(&cache->lock);
	rbx_memory_monitor_leave(&cache->listener);
	pthread_cond_destroy(&cache->due);
	pthread_cond_destroy(&cache->changed);
	pthread_mutex_destroy(&cache->lock);
	free(cache->memory);
	free(cache);
}
