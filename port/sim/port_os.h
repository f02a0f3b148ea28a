/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_os.h - the core's port to the simulator: that of user space, with atomics at which a
 * fiber may be preempted.
 *
 * Its mutexes are those of sim/host/threads.c. One thread runs, so the atomics are plain.
 * Before each of them other fibers may run. This explores the orders that sequentially
 * consistent processors could produce. It does not show weaker orders; real threads under
 * ThreadSanitizer do.
 */
#ifndef RBX_PORT_OS_H
#define RBX_PORT_OS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <isa-l/crc.h>

#include "port/posix_lock.h"

/* Ends the run with a result, see sim/fail.h. */
void rbx_sim_assert_failed(const char *condition, const char *file, int line)
	__attribute__((noreturn, cold));

#define RBX_ASSERT(condition)         \
	((condition) ? (void)0 :      \
		       rbx_sim_assert_failed(#condition, __FILE__, __LINE__))

#define rbx_port_copy(to, from, n) ((void)memcpy(to, from, n))
#define rbx_port_fill(to, byte, n) ((void)memset(to, byte, n))
#define rbx_port_equal(a, b, n) (memcmp(a, b, n) == 0)

static inline uint32_t rbx_port_crc32c(uint32_t crc, const void *p, size_t n)
{
	return ~crc32_iscsi((unsigned char *)p, (int)n, ~crc);
}

/* How many atomics until the fiber is preempted, see sim/fiber.c. */
extern uint32_t rbx_sim_preempt_left;
void rbx_sim_preempt(void);

static inline void rbx_port_atomic_begins(void)
{
	if (__builtin_expect(--rbx_sim_preempt_left == 0, 0))
		rbx_sim_preempt();
}

#define RBX_PORT_LOAD(p)                  \
	({                                \
		rbx_port_atomic_begins(); \
		*(p);                     \
	})
#define RBX_PORT_STORE(p, v)                         \
	({                                           \
		__typeof__(*(p)) port_value_ = (v);  \
		rbx_port_atomic_begins();            \
		*(p) = port_value_;                  \
	})

#define RBX_LOAD_RELAXED(p) RBX_PORT_LOAD(p)
#define RBX_LOAD_ACQUIRE(p) RBX_PORT_LOAD(p)
#define RBX_LOAD_ORDERED(p) RBX_PORT_LOAD(p)
#define RBX_STORE_RELAXED(p, v) ((void)RBX_PORT_STORE(p, v))
#define RBX_STORE_RELEASE(p, v) ((void)RBX_PORT_STORE(p, v))
#define RBX_EXCHANGE(p, v)                            \
	({                                            \
		__typeof__(*(p)) port_new_ = (v);     \
		__typeof__(*(p)) port_old_;           \
		rbx_port_atomic_begins();             \
		port_old_ = *(p);                     \
		*(p) = port_new_;                     \
		port_old_;                            \
	})
#define RBX_COMPARE_EXCHANGE(p, expected, v)          \
	({                                            \
		__typeof__(*(p)) port_new_ = (v);     \
		bool port_equal_;                     \
		rbx_port_atomic_begins();             \
		port_equal_ = *(p) == *(expected);    \
		if (port_equal_)                      \
			*(p) = port_new_;             \
		else                                  \
			*(expected) = *(p);           \
		port_equal_;                          \
	})
#define RBX_FETCH_ADD(p, v)                              \
	({                                               \
		__typeof__(*(p)) port_more_ =            \
			(__typeof__(*(p)))(v);           \
		__typeof__(*(p)) port_old_;              \
		rbx_port_atomic_begins();                \
		port_old_ = *(p);                        \
		*(p) = port_old_ + port_more_;           \
		port_old_;                               \
	})
#define RBX_ADD_RELAXED(p, v) ((void)RBX_FETCH_ADD(p, v))

#endif
