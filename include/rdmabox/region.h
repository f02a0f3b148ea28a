/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region.h - local memory that is registered once.
 *
 * Not needed, but the cheapest way with a NIC: a request whose buffer lies in
 * a region is neither copied nor registered on the way.
 */
#ifndef RDMABOX_REGION_H
#define RDMABOX_REGION_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_region; /* local memory, registered once */

/**
 * rbx_region_register() - registers memory.
 * @addr: borrowed until rbx_region_release(); must stay mapped until then
 * @length: bytes, at least 1
 * @region: receives the region
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the range is empty or wraps around
 *	-ENOMEM: the memory cannot be pinned; rbx_last_error() says which limit to raise
 *	-EFAULT: with verbs: not all of it is mapped readable and writable
 *	-ENOSPC: all keys of the soft device are in use
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_region_release().
 */
int rbx_region_register(struct rbx_context *ctx, void *addr, size_t length,
			struct rbx_region **region);

/**
 * rbx_region_release() - ends the registration of memory.
 * @region: no request that uses it may be outstanding. NULL: nothing is done
 *
 * The memory stays the caller's.
 *
 * Context: any thread, callbacks too; blocks for a system call.
 */
void rbx_region_release(struct rbx_region *region);

/**
 * rbx_memory_changed() - tells that memory is no longer what it was.
 * @addr: any address of it; need not be mapped
 * @length: bytes, at least 1
 *
 * For allocators. The library keeps registrations of buffers to use them again, and must
 * forget those of memory that is unmapped, moved or discarded. Call this before the memory is
 * given back to the system, and when no thread will submit a request with it any more. A
 * registration that began before the call is not used for a request that is submitted after
 * it. Regions and requests that are outstanding are not affected. The call is not needed if
 * memory_monitor sees the change by itself.
 *
 * Returns 0, or:
 *	-EINVAL: the range is empty or wraps around
 * Context: any thread, callbacks too, and with locks of an allocator held: it allocates
 *	nothing. May block shortly while another change is told.
 */
int rbx_memory_changed(void *addr, size_t length);

#ifdef __cplusplus
}
#endif

#endif
