/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_memory.h - memory that the other side of an endpoint may reach.
 */
#ifndef RDMABOX_ENDPOINT_MEMORY_H
#define RDMABOX_ENDPOINT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_endpoint;
struct rbx_region; /* memory that the device knows */
struct rbx_protection_domain; /* whose keys work for which endpoints */
struct rbx_memory_window; /* a part of a region, for one endpoint */

/**
 * rbx_protection_domain_create() - makes a protection domain.
 * @domain: receives it
 *
 * A key works only over endpoints of its own domain. So a program that serves several
 * programs which must not reach each other's memory gives each a domain. Without one,
 * regions and endpoints are in that of the context.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL
 *	-ENOMEM: memory or the room of the device ran out
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_protection_domain_destroy().
 */
int rbx_protection_domain_create(struct rbx_context *ctx,
				 struct rbx_protection_domain **domain);

/**
 * rbx_protection_domain_destroy() - frees a protection domain.
 * @domain: NULL: nothing is done
 *
 * Returns 0, or:
 *	-EBUSY: it has regions or endpoints
 *	-EINVAL: called in a child of the process that made it
 * Context: any thread, callbacks too; blocks for a system call.
 */
int rbx_protection_domain_destroy(struct rbx_protection_domain *domain);

/* What the other side of an endpoint of its domain may do, if it knows the key. */
enum rbx_region_rights {
	RBX_REGION_READ = 1, /* it may read */
	RBX_REGION_WRITE = 2, /* it may write */
	RBX_REGION_ATOMIC = 4, /* atomics; neither of the two above implies it */
	/* It may end the key, by a SEND with RBX_OPERATION_INVALIDATE. */
	RBX_REGION_INVALIDATE = 8,
	/* It may do nothing, but parts may be opened by rbx_memory_window_open(). */
	RBX_REGION_WINDOWS = 16,
};

/**
 * rbx_region_export() - registers memory that others may reach.
 * @domain: NULL: that of the context
 * @addr: borrowed until rbx_region_release(); must stay mapped until then
 * @rights: of enum rbx_region_rights; 0: nobody may, as rbx_region_register()
 * @region: receives the region
 *
 * Everybody who is connected to an endpoint of the domain and learns the key may use it.
 * rbx_region_release() ends the key. When that returns nobody reaches the memory, not even
 * by an operation that was under way.
 *
 * Returns 0, or:
 *	-EINVAL: there is no such right, or the domain is of another context
 *	-EOPNOTSUPP: the device cannot give this right
 *	-E...: as rbx_region_register()
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_region_release().
 */
int rbx_region_export(struct rbx_context *ctx,
		      struct rbx_protection_domain *domain, void *addr,
		      size_t length, uint32_t rights,
		      struct rbx_region **region);

/**
 * rbx_region_export_dmabuf() - registers memory of another device that others may reach.
 * @fd: a dmabuf; borrowed until rbx_region_release()
 * @offset: where the region begins in it
 *
 * No CPU touches it: it is not copied, zeroed or summed, cannot be posted inline, and is
 * refused as the buffer of a volume or a peer. Segments name its bytes by the addresses of
 * rbx_region_key().
 *
 * Returns 0, or:
 *	-EOPNOTSUPP: this device, such as the soft one, cannot reach a dmabuf
 *	-E...: as rbx_region_export()
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_region_release().
 */
int rbx_region_export_dmabuf(struct rbx_context *ctx,
			     struct rbx_protection_domain *domain, int fd,
			     uint64_t offset, size_t length, uint32_t rights,
			     struct rbx_region **region);

/* What the other side has to be told, in whatever way. */
struct rbx_region_key {
	uint64_t address; /* of the first byte */
	uint64_t length_bytes; /* of the region */
	uint32_t key; /* that gives access */
};

/**
 * rbx_region_key() - tells what the other side has to know of a region.
 * @key: receives it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key);

/* ---- Memory windows ------------------------------------------------------------------*/

/**
 * rbx_memory_window_open() - lets the other side of one endpoint reach a part of a region.
 * @region: of the domain of the endpoint, with RBX_REGION_WINDOWS
 * @rights: of enum rbx_region_rights, without RBX_REGION_WINDOWS
 * @user: of the completion, if it fails
 * @window: receives the window
 *
 * If the device has memory windows (has_window_invalidate of the limits), the key works
 * over this endpoint alone. Else the part is registered once more, and its key works in the
 * protection domain, as one of rbx_region_export(). The other side may end the key by a
 * SEND with RBX_OPERATION_INVALIDATE. An RDMA device with windows lets it do so even
 * without RBX_REGION_INVALIDATE.
 *
 * A SEND that is posted later may tell of the key. The opening keeps its order among all
 * operations of the endpoint; if that is paced, among all but READs and plain WRITEs.
 *
 * The opening takes a place among the operations of the endpoint, unless the device has no
 * windows, and is silent. If it fails, or the connection ends before it, it completes with
 * a status, and the window is closed as any other.
 *
 * Returns 0, or:
 *	-EINVAL: the part does not lie in the region, or the region is not for windows
 *	-EOPNOTSUPP: the device cannot give this right
 *	-EAGAIN: the endpoint has no room for an operation: poll first
 *	-EIO: the device has failed, and the connection is over
 *	-ENOMEM: memory or the room of the device ran out
 *	-ENOSPC: all keys of the soft device are in use
 * Context: any thread, callbacks too; may block for a system call.
 * Lifetime: until rbx_memory_window_close(), before that of its endpoint and its region.
 */
int rbx_memory_window_open(struct rbx_endpoint *endpoint,
			   const struct rbx_region *region, void *addr,
			   size_t length, uint32_t rights, void *user,
			   struct rbx_memory_window **window);

/**
 * rbx_memory_window_key() - tells what the other side has to know of a window.
 * @key: receives it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_memory_window_key(const struct rbx_memory_window *window,
			   struct rbx_region_key *key);

/**
 * rbx_memory_window_close() - ends the key of a window.
 * @window: NULL: nothing is done
 *
 * It does so whether or not the other side has ended the key by RBX_OPERATION_INVALIDATE.
 * When it returns nobody reaches the memory by the window. Windows are closed before their
 * endpoint and their region.
 *
 * Returns 0, or:
 *	-EBUSY: its opening has not completed: poll first
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread, callbacks too; blocks for a system call.
 */
int rbx_memory_window_close(struct rbx_memory_window *window);

#ifdef __cplusplus
}
#endif

#endif
