/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * break_even.h - finds the length from which registering a buffer costs less than copying it
 * (the paper, section IV-A and figure 5b).
 */
#ifndef RBX_BREAK_EVEN_H
#define RBX_BREAK_EVEN_H

#include "core/port.h"

#define RBX_BREAK_EVEN_NEVER UINT64_MAX

/* What one length costs, copied or registered. */
struct rbx_break_even_point {
	uint64_t bytes;
	uint64_t copy_ns;
	uint64_t direct_ns; /* registering and deregistering */
};

/*
 * The break-even in a curve by rising length: from there on registering is not more expensive
 * at any length measured. Between two points of the curve it is where straight lines cross,
 * rounded up to a page. RBX_BREAK_EVEN_NEVER: copying is cheaper at the last point, or there
 * is no point.
 */
uint64_t rbx_break_even(const struct rbx_break_even_point *points,
			uint32_t count);

#endif
