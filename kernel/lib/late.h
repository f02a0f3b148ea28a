/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * late.h - late addresses: of memory that is mapped for a device only while it is posted there.
 *
 * An address that goes through the core is usually one of the device. Then the memory is mapped
 * for that device as long as a request takes, and can be sent to the servers behind it alone. A
 * late address is one of the CPU, and marked. The peer to which such memory is sent maps it for its
 * own device when it posts, and unmaps it when that has completed (peer/late.c). So it may be sent
 * to servers behind different devices, one after another or at once, and to a device that has come
 * back as another one.
 *
 * The mark is in the two highest bits. Addresses of devices have 00 there, those of the kernel's
 * memory are all the same. On a device that uses the CPU's addresses (ib_uses_virt_dma()) either
 * kind is good.
 */
#ifndef RBX_KERNEL_LATE_H
#define RBX_KERNEL_LATE_H

#include <linux/mm.h>
#include <linux/types.h>

#define RBX_LATE_BITS (3ull << 62)
#define RBX_LATE_MARK (2ull << 62)

/* memory: of the linear mapping, as pages and kmalloc() are. */
static inline u64 rbx_late_addr(const void *memory)
{
	return ((u64)(uintptr_t)memory & ~RBX_LATE_BITS) | RBX_LATE_MARK;
}

static inline bool rbx_addr_is_late(u64 addr)
{
	return (addr & RBX_LATE_BITS) == RBX_LATE_MARK;
}

static inline void *rbx_late_memory(u64 addr)
{
	return (void *)(uintptr_t)((addr & ~RBX_LATE_BITS) |
				   ((u64)PAGE_OFFSET & RBX_LATE_BITS));
}

#endif
