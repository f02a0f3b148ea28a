/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * copy_pace.h - when the next cell of a rebuild may be copied.
 *
 * Without a rate copies yield to requests. As long as no request comes, each copy that ends is
 * followed by the next one at once, and the link is full. Once a request has come, one copy is
 * under way at a time, and then copying rests: so long that a copy is under way in a tenth of the
 * time. Most of that it waits itself, for threads to wake up, and is in the way of others in a
 * hundredth of the time or two. So about one request in a hundred meets a copy, and the 99th
 * percentile of their latencies stays about where it was. What is measured is the duration of a
 * copy: on a faster link more is copied, and if requests fill the link, less. When no request has
 * come for RBX_COPY_QUIET_NS, the link is the copies' again.
 *
 * Copies never stop: they have RBX_COPY_FLOOR_BYTES in each second. If a server waits for its
 * replica to leave, they are hurried: one is under way in half of the time.
 *
 * With a rate, copies keep to it, whether requests come or not; UINT64_MAX is none.
 *
 * Requests are seen by how often pieces of the pool were used (piece_pool.h), so they pay
 * nothing. All but rbx_copy_pace_goes_on() is of the upkeep thread.
 */
#ifndef RBX_COPY_PACE_H
#define RBX_COPY_PACE_H

#include "core/limits.h"
#include "core/port.h"

struct rbx_copy_pace {
	uint64_t rate_bytes; /* atomic: in each second; 0: copies yield */
	bool yields; /* atomic: requests came lately */
	uint64_t uses; /* atomic: of the pool, when it was looked at last */
	uint64_t quiet_ns; /* from then on no request came lately */
	uint64_t started_ns; /* of the copy that is under way while copies yield; 0: none is */
	uint64_t not_before_ns; /* the next one */
};

/* Any thread, at any time. */
static inline void rbx_copy_pace_limit(struct rbx_copy_pace *pace, uint64_t rate_bytes)
{
	RBX_STORE_RELAXED(&pace->rate_bytes, rate_bytes);
}

/* uses: of the pool now. Returns whether the next copy may follow one that has ended, at once;
 * else the upkeep thread decides. Any thread. */
bool rbx_copy_pace_goes_on(const struct rbx_copy_pace *pace, uint64_t uses);

/* Notes how often the pool was used. */
void rbx_copy_pace_look(struct rbx_copy_pace *pace, uint64_t uses, uint64_t now_ns);

/* Returns 0: a copy of so many bytes may start, and is about to; or when to ask again, UINT64_MAX:
 * when one has ended. */
uint64_t rbx_copy_pace_next(struct rbx_copy_pace *pace, uint32_t under_way_count,
			    uint32_t bytes, bool is_hurried, uint64_t now_ns);

#endif
