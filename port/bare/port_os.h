/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_os.h - a port to nothing: no libc, no operating system, no headers.
 *
 * Only compiled, never run: it proves that the core and the wire code need only what
 * core/port.h lists.
 */
#ifndef RBX_PORT_OS_H
#define RBX_PORT_OS_H

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define UINT16_MAX __UINT16_MAX__
#define UINT32_MAX __UINT32_MAX__
#define UINT64_MAX __UINT64_MAX__

enum {
	EPERM = 1,
	ENOENT = 2,
	EIO = 5,
	EAGAIN = 11,
	ENOMEM = 12,
	EACCES = 13,
	EFAULT = 14,
	EBUSY = 16,
	EEXIST = 17,
	ENODEV = 19,
	EINVAL = 22,
	ENFILE = 23,
	EMFILE = 24,
	ENOSPC = 28,
	ENODATA = 61,
	EPROTO = 71,
	EBADMSG = 74,
	EMSGSIZE = 90,
	EPROTOTYPE = 91,
	EPROTONOSUPPORT = 93,
	EOPNOTSUPP = 95,
	ENOBUFS = 105,
	ENOTCONN = 107,
	ETIMEDOUT = 110,
	ECONNREFUSED = 111,
	EHOSTUNREACH = 113,
	ESTALE = 116,
	EREMOTEIO = 121,
	EDQUOT = 122,
	ECANCELED = 125,
};

#define RBX_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())

void rbx_port_copy(void *to, const void *from, size_t n);
void rbx_port_fill(void *to, int byte, size_t n);
bool rbx_port_equal(const void *a, const void *b, size_t n);
uint32_t rbx_port_crc32c(uint32_t crc, const void *p, size_t n);

struct rbx_lock {
	int unused;
};
void rbx_lock_init(struct rbx_lock *lock);
void rbx_lock(struct rbx_lock *lock);
void rbx_unlock(struct rbx_lock *lock);

#include "port/builtin_atomics.h"

#endif
