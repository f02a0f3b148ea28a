/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_os.h - the core's port to user space: libc, compiler atomics, and the
 * CRC32C of ISA-L, which uses the processor's instruction where it has one.
 */
#ifndef RBX_PORT_OS_H
#define RBX_PORT_OS_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <isa-l/crc.h>

#define RBX_ASSERT(condition) assert(condition)

#define rbx_port_copy(to, from, n) ((void)memcpy(to, from, n))
#define rbx_port_fill(to, byte, n) ((void)memset(to, byte, n))
#define rbx_port_equal(a, b, n) (memcmp(a, b, n) == 0)

static inline uint32_t rbx_port_crc32c(uint32_t crc, const void *p, size_t n)
{
	return ~crc32_iscsi((unsigned char *)p, (int)n, ~crc);
}

#define RBX_LOAD_RELAXED(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define RBX_LOAD_ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define RBX_STORE_RELAXED(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define RBX_STORE_RELEASE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define RBX_LOAD_ORDERED(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define RBX_EXCHANGE(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define RBX_COMPARE_EXCHANGE(p, expected, v)                     \
	__atomic_compare_exchange_n(p, expected, v, false,       \
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define RBX_FETCH_ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define RBX_ADD_RELAXED(p, v) ((void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED))

#endif
