/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_cache.h - registrations that stay, for memory that is used again.
 *
 * core/regions decides what stays. This is its host: it registers and deregisters, outside of
 * the lock, has threads wait for each other, and listens to the monitor (lib/monitor), so that
 * memory which was unmapped is never found.
 *
 *	err = rbx_region_cache_take(cache, &use, addr, length_bytes, error);
 *	if (!err) {
 *		... for each part i of use.count: rbx_region_cache_mr(cache, &use, i)
 *		rbx_region_cache_give(cache, &use);
 *	}
 *
 * A part is registered for reading and writing by the device. It begins at a page, and may end
 * behind the memory that was asked for.
 *
 * What cannot be watched, such as a mapping of a file, is registered for this use alone. So is
 * what changes while it is being registered.
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

/* device: borrowed until close. Starts a thread. 0; -EINVAL: a value of the shape is not possible;
 * -errno of rbx_monitor_listen(); rbx_last_error() says more. */
int rbx_region_cache_open(struct rbx_region_cache **cache, struct rbx_device *device,
			  const struct rbx_regions_shape *shape, enum rbx_monitor_mode mode);
/* All uses must have been given back. NULL: does nothing. */
void rbx_region_cache_close(struct rbx_region_cache *cache);

/**
 * rbx_region_cache_take() - the regions of a range of memory, each with a reference.
 * @use: receives them; the caller's until it is given back
 * @addr, @length_bytes: mapped, and writable; length_bytes is not 0
 * @error: RBX_ERROR_TEXT_MAX bytes for the device's reason
 *
 * Returns 0, or:
 *	-EAGAIN: a change of memory is under way, or others change the regions all the time
 *	-ENOBUFS: there is no room, as too much is in use
 *	-errno: of the device
 * Context: may block for system calls; not in a callback of the monitor.
 */
int rbx_region_cache_take(struct rbx_region_cache *cache, struct rbx_region_use *use,
			  const void *addr, size_t length_bytes, char *error);

/* Any thread; never blocks for a system call that registers or deregisters. */
void rbx_region_cache_give(struct rbx_region_cache *cache, struct rbx_region_use *use);

/* The registration of a part of a use that was taken. */
const struct rbx_mr *rbx_region_cache_mr(const struct rbx_region_cache *cache,
					 const struct rbx_region_use *use, uint32_t part);

void rbx_region_cache_counters(struct rbx_region_cache *cache,
			       struct rbx_regions_counters *counters);

#endif
