/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.h - memory that a device reaches: protection domains, registered regions, and
 * windows onto a part of one.
 *
 * The calls that make and end them are of struct rbx_fabric_ops (fabric.h).
 */
#ifndef RBX_FABRIC_MEMORY_H
#define RBX_FABRIC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rbx_device;
struct rbx_qp;

/* Who may do what with registered memory; local read is always granted. */
enum rbx_rights {
	RBX_LOCAL_WRITE = 1,
	RBX_REMOTE_READ = 2,
	RBX_REMOTE_WRITE = 4,
	RBX_REMOTE_ATOMIC = 8, /* neither of the two above implies it */
	/*
	 * A peer whose connection is in the key's domain may end the key by a SEND
	 * with invalidate, lkey and rkey alike. When its receive completes, that
	 * peer reaches the memory no more and no new operation of another does;
	 * the mr is still its owner's to deregister, which waits for old ones.
	 */
	RBX_REMOTE_INVALIDATE = 16,
	RBX_WINDOWS = 32, /* windows can be opened onto it (open_window()) */
};

/*
 * A protection domain. A peer that learns or guesses a key can use it only if
 * its connection is in the key's domain, so who serves several peers that must
 * not see each other's memory gives each a domain of its own. NULL is the domain
 * that each device has from the start.
 */
struct rbx_domain {
	struct rbx_device *device;
};

/* What to register. The memory stays the caller's. */
struct rbx_mr_init {
	struct rbx_domain *domain; /* NULL: the device's */
	void *addr;
	size_t length_bytes;
	uint32_t rights; /* of enum rbx_rights */
	/*
	 * The memory file behind addr and the offset of addr in it, for a
	 * fabric that hands memory to peers on the same host; -1: none.
	 * Borrowed until deregistration. It must allow sealing (the fabric
	 * seals its size, then its seals) and hold nothing that the peer may
	 * not see. Where a peer may only read, seal it with
	 * F_SEAL_FUTURE_WRITE before, or the peer does not get it.
	 */
	int memory_fd;
	uint64_t memory_fd_offset;
	/*
	 * memory_fd is a dmabuf: memory of another device, which no CPU is to touch.
	 * addr is then nothing but the number by which its first byte is named, in a
	 * page as memory_fd_offset is. Without caps: -EOPNOTSUPP.
	 */
	bool is_dmabuf;
};

struct rbx_mr {
	struct rbx_device *device;
	void *addr;
	size_t length_bytes;
	uint32_t lkey;
	uint32_t rkey;
	struct rbx_mr *next; /* the business of who registered it */
};

/*
 * A window: a part of a region that the peer of one qp may reach, by a key of its own.
 * The key is of no use on another connection, if the device has windows; else it is
 * good in the domain, as one of register_memory().
 */
struct rbx_device_window {
	struct rbx_qp *qp;
	uint32_t rkey;
	bool is_open; /* from the start: see create_window() */
};

struct rbx_device_window_init {
	struct rbx_mr *mr; /* with RBX_WINDOWS, of the qp's domain; outlives it */
	void *addr;
	size_t length_bytes;
	uint32_t rights; /* of enum rbx_rights; at most those that are of peers */
};

#endif
