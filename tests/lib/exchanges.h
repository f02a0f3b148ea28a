/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* exchanges.h - endpoints that exchange buffers, for tests. */
#ifndef RBX_TESTS_EXCHANGES_H
#define RBX_TESTS_EXCHANGES_H

#include <errno.h>
#include <string.h>

#include "include/rdmabox/exchange.h"
#include "tests/lib/endpoints.h"

#define KIB 1024u
#define LONG_MS 20000u

static inline void open_exchanging(struct endpoints *e, uint32_t count)
{
	endpoint_options.exchanges = count;
	endpoints_open(e);
}

/* Polls both sides, as each needs the engine of the other, until each has a completion. NULL:
 * that side has none. */
static inline void poll_both(struct endpoints *e, struct rbx_completion *of_a,
			     struct rbx_completion *of_b)
{
	struct rbx_completion completion;
	bool a = !of_a, b = !of_b;

	for (uint32_t i = 0; i < LONG_MS && !(a && b); i++) {
		if (rbx_queue_poll(e->a.queue, &completion, 1, 0) == 1) {
			assert_false(a);
			a = true;
			*of_a = completion;
		}
		if (rbx_queue_poll(e->b.queue, &completion, 1, 1) == 1) {
			assert_false(b);
			b = true;
			*of_b = completion;
		}
	}
	assert_true(a && b);
}

static inline void completion_is(const struct rbx_completion *completion, const struct side *side,
				 enum rbx_completion_kind kind, uintptr_t user, int status,
				 uint32_t length_bytes)
{
	assert_ptr_equal(completion->endpoint, side->endpoint);
	assert_int_equal((uintptr_t)completion->user, user);
	assert_int_equal(completion->status, status);
	assert_int_equal(completion->kind, kind);
	assert_int_equal(completion->length_bytes, length_bytes);
}

/* A buffer of a side without its region: what the call does about it is up to it. */
static inline int conditional_write(const struct side *side, uint64_t tag, size_t offset,
				    uint32_t length_bytes, uint32_t timeout_ms, uintptr_t user)
{
	const struct rbx_segment buffer = { side->of_device + offset, length_bytes, NULL };

	return rbx_conditional_write(side->endpoint, tag, &buffer, timeout_ms, (void *)user);
}

static inline int conditional_read(const struct side *side, uint64_t tag, size_t offset,
				   uint32_t length_bytes, uint32_t timeout_ms, uintptr_t user)
{
	const struct rbx_segment buffer = { side->of_device + offset, length_bytes, NULL };

	return rbx_conditional_read(side->endpoint, tag, &buffer, timeout_ms, (void *)user);
}

static inline int offer(const struct side *side, uint64_t tag, size_t offset,
			uint32_t length_bytes, enum rbx_offer_access access, uint32_t timeout_ms,
			uintptr_t user)
{
	return rbx_offer(side->endpoint, tag, side->of_device + offset, length_bytes, access,
			 timeout_ms, (void *)user);
}

/* Registrations that have not ended. */
static inline uint64_t alive_of(const struct side *side)
{
	struct rbx_stats stats;

	rbx_stats_get(side->ctx, &stats);
	return stats.registrations - stats.deregistrations;
}

static inline void fill(const struct side *side, size_t offset, uint32_t length_bytes,
			uint32_t seed)
{
	for (uint32_t i = 0; i < length_bytes; i++)
		side->memory[offset + i] = (uint8_t)(i * 7 + i / 251 + seed);
}

#endif
