/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * copy_pace.c - copies that yield, or keep to a rate, see copy_pace.h.
 *
 * How long a copy took is seen by the upkeep thread, when it was woken: a little too long, so
 * copies rest a little longer.
 */
#include "core/copy_pace.h"

#define SECOND_NS 1000000000ull

bool rbx_copy_pace_goes_on(const struct rbx_copy_pace *pace, uint64_t uses)
{
	uint64_t rate_bytes = RBX_LOAD_RELAXED(&pace->rate_bytes);

	if (rate_bytes)
		return rate_bytes == UINT64_MAX;
	return !RBX_LOAD_RELAXED(&pace->yields) && RBX_LOAD_RELAXED(&pace->uses) == uses;
}

void rbx_copy_pace_look(struct rbx_copy_pace *pace, uint64_t uses, uint64_t now_ns)
{
	if (pace->uses != uses)
		pace->quiet_ns = now_ns + RBX_COPY_QUIET_NS;
	RBX_STORE_RELAXED(&pace->uses, uses);
	RBX_STORE_RELAXED(&pace->yields, now_ns < pace->quiet_ns);
}

/* A copy starts if its time has come. What was not used of the rate is kept for a moment only. */
static uint64_t rate_next(struct rbx_copy_pace *pace, uint64_t rate_bytes, uint32_t bytes,
			  uint64_t now_ns)
{
	uint64_t kept_ns = RBX_MIN(now_ns, RBX_COPY_BURST_NS);

	if (now_ns < pace->not_before_ns)
		return pace->not_before_ns;
	pace->not_before_ns = RBX_MAX(pace->not_before_ns, now_ns - kept_ns) +
			      bytes * SECOND_NS / rate_bytes;
	return 0;
}

/* How long to rest after a copy. */
static uint64_t rest_ns(uint64_t took_ns, uint32_t bytes, bool is_hurried)
{
	uint64_t share = is_hurried ? RBX_COPY_HURRIED_SHARE : RBX_COPY_SHARE;

	return RBX_MIN(took_ns, bytes * SECOND_NS / RBX_COPY_FLOOR_BYTES / share) * (share - 1);
}

uint64_t rbx_copy_pace_next(struct rbx_copy_pace *pace, uint32_t under_way_count,
			    uint32_t bytes, bool is_hurried, uint64_t now_ns)
{
	uint64_t rate_bytes = RBX_LOAD_RELAXED(&pace->rate_bytes);

	if (rate_bytes)
		return rate_next(pace, rate_bytes, bytes, now_ns);
	if (!pace->yields) {
		pace->started_ns = pace->not_before_ns = 0;
		return 0;
	}
	if (under_way_count)
		return UINT64_MAX;
	if (pace->started_ns)
		pace->not_before_ns =
			now_ns + rest_ns(now_ns - pace->started_ns, bytes, is_hurried);
	pace->started_ns = 0;
	if (now_ns < pace->not_before_ns)
		return RBX_MIN(pace->not_before_ns, pace->quiet_ns);
	pace->started_ns = now_ns;
	return 0;
}
