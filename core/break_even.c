/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * break_even.c - see break_even.h.
 *
 * Measurements have noise, so the curves may cross more than once; the last crossing counts.
 * If the length is too long, a program gains a little less than it could. If it is too short,
 * many short requests cost more.
 */
#include "core/break_even.h"

#include "core/limits.h"

/* Longer than any measurement: 18 minutes. Keeps products within 64 bits. */
#define GAIN_MAX_NS ((uint64_t)1 << 40)
#define STEP_BYTES_MAX ((uint64_t)1 << 23)

static bool direct_is_cheaper(const struct rbx_break_even_point *point)
{
	return point->direct_ns <= point->copy_ns;
}

/* The difference of the two costs, bounded. */
static uint64_t distance_ns(const struct rbx_break_even_point *point)
{
	uint64_t apart_ns = direct_is_cheaper(point) ?
				    point->copy_ns - point->direct_ns :
				    point->direct_ns - point->copy_ns;

	return RBX_MIN(apart_ns, GAIN_MAX_NS);
}

/* Copying is cheaper at `before`, and not at `after`. */
static uint64_t cross(const struct rbx_break_even_point *before,
		      const struct rbx_break_even_point *after)
{
	uint64_t loss_ns = distance_ns(before);
	uint64_t sum_ns = loss_ns + distance_ns(after);
	uint64_t step_bytes = after->bytes - before->bytes;
	uint64_t at_bytes;

	RBX_ASSERT(before->bytes < after->bytes && loss_ns != 0);
	if (step_bytes > STEP_BYTES_MAX)
		return after->bytes;
	at_bytes = before->bytes + step_bytes * loss_ns / sum_ns;
	at_bytes = (at_bytes + RBX_PAGE_BYTES - 1) & ~(RBX_PAGE_BYTES - 1ull);
	return RBX_MIN(at_bytes, after->bytes);
}

uint64_t rbx_break_even(const struct rbx_break_even_point *points,
			uint32_t count)
{
	uint32_t first = count;

	while (first > 0 && direct_is_cheaper(&points[first - 1]))
		first--;
	if (first == count)
		return RBX_BREAK_EVEN_NEVER;
	return first == 0 ? points[0].bytes :
			    cross(&points[first - 1], &points[first]);
}
