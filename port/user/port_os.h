/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_os.h - the core's port to user space: libc, compiler atomics, and the CRC32C of ISA-L,
 * which uses the processor's instruction if it has one.
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

#include "port/builtin_atomics.h"
#include "port/posix_lock.h"

#define RBX_ASSERT(condition) assert(condition)

#define rbx_port_copy(to, from, n) ((void)memcpy(to, from, n))
#define rbx_port_fill(to, byte, n) ((void)memset(to, byte, n))
#define rbx_port_equal(a, b, n) (memcmp(a, b, n) == 0)

static inline uint32_t rbx_port_crc32c(uint32_t crc, const void *p, size_t n)
{
	return ~crc32_iscsi((unsigned char *)p, (int)n, ~crc);
}

#endif
