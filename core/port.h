/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port.h - everything that the core and the wire code need from their environment.
 *
 * The core decides and does nothing else: it owns no thread, clock, memory or I/O, and the
 * host supplies the lock type. The rest of what it needs is listed here, once for all hosts.
 * port/<host>/port_os.h provides it and is found by the include path, never by an #if. A new
 * host implements this page and can use the core.
 *
 * port_os.h provides
 *   fixed-width types, size_t, bool, NULL, offsetof
 *   errno values (EINVAL and so on)
 *   RBX_ASSERT(condition)        an invariant of ours, never peer data
 *   rbx_port_copy(to, from, n)   memcpy
 *   rbx_port_fill(to, byte, n)   memset
 *   rbx_port_equal(a, b, n)      memcmp() == 0
 *   rbx_port_crc32c(crc, p, n)   Castagnoli CRC over n bytes, from crc
 *   rbx_port_hmac_sha256()       declared below, a file of the port's own
 *   the atomics below
 *   struct rbx_lock              held for a few steps, never while anything
 *                                blocks, and never while another is taken
 *   rbx_lock_init(lock), rbx_lock(lock), rbx_unlock(lock)
 *
 * The atomics are those that the core's lock-free parts need. A comment at each use says
 * its purpose and its pair.
 *   RBX_LOAD_RELAXED(p)          RBX_STORE_RELAXED(p, v)
 *   RBX_LOAD_ACQUIRE(p)          RBX_STORE_RELEASE(p, v)
 *   RBX_LOAD_ORDERED(p)
 *   RBX_EXCHANGE(p, v)           returns the old value
 *   RBX_COMPARE_EXCHANGE(p, expected, v)  true: stored; false: *expected now
 *                                holds what is there
 *   RBX_FETCH_ADD(p, v)          returns the old value
 *   RBX_ADD_RELAXED(p, v)        a counter that orders nothing
 * The ordered load and the three read-modify-write operations acquire, release
 * and stand in one total order (sequentially consistent), which the "announce,
 * then look again" patterns need: of two threads that each change one word and
 * then read the other's, at least one sees the change.
 */
#ifndef RBX_PORT_H
#define RBX_PORT_H

#include "port_os.h"

/* HMAC-SHA256 of a text, by the system's library: this project has no hash code of its own.
 * It may block. If it fails, its result cannot be guessed. */
#define RBX_HMAC_BYTES 32u
void rbx_port_hmac_sha256(const uint8_t *key, size_t key_bytes,
			  const uint8_t *text, size_t text_bytes,
			  uint8_t mac[RBX_HMAC_BYTES]);

/* An invariant on the path of every request. It is checked if RBX_DEBUG is defined, as in the
 * builds that are tested; a release build skips it. */
#ifdef RBX_DEBUG
#define RBX_DEBUG_ASSERT(condition) RBX_ASSERT(condition)
#else
#define RBX_DEBUG_ASSERT(condition) ((void)sizeof(condition))
#endif

#define RBX_STATIC_ASSERT(condition, what) _Static_assert(condition, what)

#define RBX_CONTAINER_OF(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

/* Cold path: the compiler keeps the function, and what it needs, out of line. */
#define RBX_RARE __attribute__((__cold__, __noinline__))

/* Kept out of line for another reason: a caller that mostly does without it need not save the
 * registers that it would take. */
#define RBX_APART __attribute__((__noinline__))

/* Each argument is evaluated once, so it may be a call that does something. */
#define RBX_MIN(a, b)                          \
	__extension__({                        \
		const __typeof__(a) a_ = (a);  \
		const __typeof__(b) b_ = (b);  \
		a_ < b_ ? a_ : b_;             \
	})
#define RBX_MAX(a, b)                          \
	__extension__({                        \
		const __typeof__(a) a_ = (a);  \
		const __typeof__(b) b_ = (b);  \
		a_ > b_ ? a_ : b_;             \
	})

#endif
