/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_os.h - the core's port to the Linux kernel.
 *
 * Types, copies and CRC32C are the kernel's own. A failed assertion is a bug of ours, after
 * which stored data cannot be trusted. It is written to the log, and from then on every I/O
 * ends with an error (kernel/lib/broken.h). An error can be noticed, a page of wrong data
 * cannot. The thread goes on: if it were ended, it would keep its locks, and all that waits
 * for a page would wait with it.
 *
 * The atomics are those of the kernel's memory model. xchg(), a cmpxchg() that succeeds, and
 * atomic_fetch_add() are fully ordered: what the thread does before is seen before, and what
 * it reads after is read after. So in "change one word, then look at the other's" the change
 * itself is the barrier, and an ordered load has only to be an acquire. The core keeps its
 * counters in plain integers of 32 and 64 bits, which atomic_t and atomic64_t consist of.
 */
#ifndef RBX_PORT_OS_H
#define RBX_PORT_OS_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

#define UINT8_MAX U8_MAX
#define UINT16_MAX U16_MAX
#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX

void rbx_port_break(void);

#define RBX_ASSERT(condition)                     \
	do {                                      \
		if (WARN_ON_ONCE(!(condition)))   \
			rbx_port_break();         \
	} while (0)

#define rbx_port_copy(to, from, n) ((void)memcpy(to, from, n))
#define rbx_port_fill(to, byte, n) ((void)memset(to, byte, n))
#define rbx_port_equal(a, b, n) (memcmp(a, b, n) == 0)

static inline uint32_t rbx_port_crc32c(uint32_t crc, const void *p, size_t n)
{
	return ~crc32c(~crc, p, n);
}

#define RBX_LOAD_RELAXED(p) READ_ONCE(*(p))
#define RBX_LOAD_ACQUIRE(p) smp_load_acquire(p)
#define RBX_STORE_RELAXED(p, v) WRITE_ONCE(*(p), v)
#define RBX_STORE_RELEASE(p, v) smp_store_release(p, v)
#define RBX_LOAD_ORDERED(p) smp_load_acquire(p)
#define RBX_EXCHANGE(p, v) xchg(p, (__typeof__(*(p)))(v))

/* One that fails is like an ordered load. */
#define RBX_COMPARE_EXCHANGE(p, expected, v)                \
	({                                                  \
		bool port_done_ = try_cmpxchg(p, expected, v); \
							    \
		if (!port_done_)                            \
			smp_mb();                           \
		port_done_;                                 \
	})

/* Taken only in process context, so interrupts stay on. */
struct rbx_lock {
	spinlock_t spin;
};

static inline void rbx_lock_init(struct rbx_lock *lock)
{
	spin_lock_init(&lock->spin);
}

static inline void rbx_lock(struct rbx_lock *lock)
{
	spin_lock(&lock->spin);
}

static inline void rbx_unlock(struct rbx_lock *lock)
{
	spin_unlock(&lock->spin);
}

static inline uint32_t rbx_port_fetch_add_32(void *p, uint32_t v)
{
	return (uint32_t)atomic_fetch_add((int)v, (atomic_t *)p);
}

static inline uint64_t rbx_port_fetch_add_64(void *p, uint64_t v)
{
	return (uint64_t)atomic64_fetch_add((s64)v, (atomic64_t *)p);
}

/* Integers of 32 or 64 bits. */
#define RBX_FETCH_ADD(p, v)                                                \
	({                                                                 \
		static_assert(sizeof(*(p)) == 4 || sizeof(*(p)) == 8);     \
		(__typeof__(*(p)))(sizeof(*(p)) == 8 ?                     \
			rbx_port_fetch_add_64(p, (uint64_t)(v)) :          \
			rbx_port_fetch_add_32(p, (uint32_t)(v)));          \
	})

#define RBX_ADD_RELAXED(p, v)                                              \
	({                                                                 \
		static_assert(sizeof(*(p)) == 4 || sizeof(*(p)) == 8);     \
		if (sizeof(*(p)) == 8)                                     \
			atomic64_add((s64)(v), (atomic64_t *)(void *)(p)); \
		else                                                       \
			atomic_add((int)(v), (atomic_t *)(void *)(p));     \
	})

#endif
