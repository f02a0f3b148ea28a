/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * builtin_atomics.h - the atomics of core/port.h by the compiler's builtins, for every port
 * that has none of its own (a kernel has).
 */
#ifndef RBX_PORT_BUILTIN_ATOMICS_H
#define RBX_PORT_BUILTIN_ATOMICS_H

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
