/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.h - memory that a device accesses: protection domains, registered regions, and
 * windows onto a part of one.
 *
 * The functions that make and destroy them are in struct rbx_fabric_ops (fabric.h).
 */
#ifndef RBX_FABRIC_MEMORY_H
#define RBX_FABRIC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rbx_device;
struct rbx_qp;

/* What peers may do with registered memory; local read is always granted. */
enum rbx_rights {
	RBX_LOCAL_WRITE = 1,
	RBX_REMOTE_READ = 2,
	RBX_REMOTE_WRITE = 4,
	RBX_REMOTE_ATOMIC = 8, /* not implied by the two above */
	/*
	 * A peer whose connection is in the key's domain may end the key, lkey and rkey
	 * alike, by a SEND with invalidate. When its receive completes, that peer cannot
	 * reach the memory any more, and no new operation of another peer can. The owner
	 * still has to deregister the mr, which waits for old operations.
	 */
	RBX_REMOTE_INVALIDATE = 16,
	RBX_WINDOWS = 32, /* windows can be opened onto it (open_window()) */
};

/*
 * A protection domain. A peer that learns or guesses a key can use it only if its connection
 * is in the key's domain. So a program that serves several peers which must not see each
 * other's memory gives each a domain of its own. NULL is the domain that each device has from
 * the start.
 */
struct rbx_domain {
	struct rbx_device *device;
};

/* What to register. The memory still belongs to the caller. */
struct rbx_mr_init {
	struct rbx_domain *domain; /* NULL: the device's */
	void *addr;
	size_t length_bytes;
	uint32_t rights; /* of enum rbx_rights */
	/*
	 * The memory file behind addr and the offset of addr in it, for a fabric that shares
	 * memory with peers on the same host; -1: none. Borrowed until deregistration. It
	 * must allow sealing (the fabric seals its size, then its seals) and contain nothing
	 * that the peer may not see. If a peer may only read, seal it with
	 * F_SEAL_FUTURE_WRITE before, or the peer does not get it.
	 */
	int memory_fd;
	uint64_t memory_fd_offset;
	/*
	 * memory_fd is a dmabuf: memory of another device, which the CPU must not touch. addr
	 * is then only the number by which its first byte is named, with the same offset in a
	 * page as memory_fd_offset. Without caps: -EOPNOTSUPP.
	 */
	bool is_dmabuf;
};

struct rbx_mr {
	struct rbx_device *device;
	void *addr;
	size_t length_bytes;
	uint32_t lkey;
	uint32_t rkey;
};

/*
 * A window: a part of a region that the peer of one qp may reach, by a key of its own. If the
 * device has windows, the key is not valid on another connection; else it is valid in the
 * domain, like one of register_memory().
 */
struct rbx_device_window {
	struct rbx_qp *qp;
	uint32_t rkey;
	bool is_open; /* from the start, see create_window() */
};

struct rbx_device_window_init {
	struct rbx_mr *mr; /* with RBX_WINDOWS, of the qp's domain; outlives it */
	void *addr;
	size_t length_bytes;
	uint32_t rights; /* of enum rbx_rights; only those that peers can have */
};

#endif
