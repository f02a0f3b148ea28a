/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_cache.h - registrations that stay, for memory that is used again.
 *
 * core/regions decides what stays. This is its host: it registers and deregisters, outside of
 * the lock, has threads wait for each other, and listens to the monitor (lib/monitor), so that
 * memory which was unmapped is never found.
 *
 *	if (rbx_region_cache_is_settled(cache)) {
 *		err = rbx_region_cache_take(cache, &use, addr, length_bytes, error);
 *		... for each part i of use.count: rbx_region_cache_mr(cache, use.parts[i])
 *		... the request
 *		rbx_region_cache_give(cache, use.parts, use.count);
 *	}
 *
 * A part is registered for reading and writing by the device. It begins at a page, and may end
 * behind the memory that was asked for.
 *
 * What cannot be watched, such as a mapping of a file, is refused. What changes while it is being
 * registered is registered for this use alone.
 *
 * Regions that are due are deregistered by a thread of the cache, several by one call. Who needs
 * their room does not wait for that thread, but does it.
 */
#ifndef RBX_LIB_REGION_CACHE_H
#define RBX_LIB_REGION_CACHE_H

#include "core/regions.h"
#include "fabric/fabric.h"
#include "lib/monitor/monitor.h"

struct rbx_region_cache;

struct rbx_region_cache_counters {
	struct rbx_regions_counters regions; /* of which spent_ns is by the cost of the shape */
	uint64_t failures; /* registrations that the system refused */
	uint64_t bytes; /* registered now */
	uint64_t spent_ns; /* registering and deregistering, measured */
	uint64_t saved_ns; /* what hits would have taken otherwise, by the cost of the shape */
};

/* device: borrowed until close. Starts a thread. 0; -EINVAL: a value of the shape is not possible;
 * -errno of rbx_memory_monitor_listen(); rbx_last_error() says more. */
int rbx_region_cache_open(struct rbx_region_cache **cache, struct rbx_device *device,
			  const struct rbx_regions_shape *shape, enum rbx_memory_monitor_mode mode);
/* Whether anything tells of changes. If not, all is refused. */
bool rbx_region_cache_keeps(const struct rbx_region_cache *cache);
/* In words: how much is kept, and what tells of changes; for rbx_describe(). */
const char *rbx_region_cache_why(const struct rbx_region_cache *cache);
/* All uses must have been given back. NULL: does nothing. */
void rbx_region_cache_close(struct rbx_region_cache *cache);

/* Asked once by the thread that knows the addresses, before it takes regions for them. false: a
 * change of memory is under way, and what the cache knows may not be used. */
bool rbx_region_cache_is_settled(struct rbx_region_cache *cache);

/**
 * rbx_region_cache_take() - the regions of a range of memory, each with a reference.
 * @use: receives them; the caller's until they are given back
 * @addr, @length_bytes: mapped, and writable; length_bytes is not 0
 * @error: RBX_ERROR_TEXT_MAX bytes for the device's reason
 *
 * Returns 0, or:
 *	-EAGAIN: others change the regions all the time
 *	-ENOBUFS: there is no room, as too much is in use
 *	-errno: of rbx_memory_monitor_watch(), such as -EOPNOTSUPP, or of the device
 * Context: may block for system calls; not in a callback of the monitor.
 */
int rbx_region_cache_take(struct rbx_region_cache *cache, struct rbx_region_use *use,
			  const void *addr, size_t length_bytes, char *error);

/* Any thread; never blocks for a system call that registers or deregisters. */
void rbx_region_cache_give(struct rbx_region_cache *cache, const uint32_t regions[],
			   uint32_t count);

/* The registration of a region that was taken. */
const struct rbx_mr *rbx_region_cache_mr(const struct rbx_region_cache *cache, uint32_t region);

void rbx_region_cache_counters(struct rbx_region_cache *cache,
			       struct rbx_region_cache_counters *counters);

#endif
