/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost.h - measures what it costs to copy and to register a buffer on this device.
 *
 * buffers=auto and rdmabox-tune(1) use it. The public part is rbx_buffer_cost_measure().
 */
#ifndef RBX_LIB_BUFFER_COST_H
#define RBX_LIB_BUFFER_COST_H

#include <stdint.h>

struct rbx_context;
struct rbx_region_cost;

/*
 * Measures a few lengths, for about RBX_BUFFER_COST_BUDGET_NS at most. Returns the
 * break-even length (core/break_even.h), or RBX_BREAK_EVEN_NEVER if memory cannot be
 * registered here or copying was cheaper at all measured lengths.
 */
#define RBX_BUFFER_COST_BUDGET_NS 15000000ull
uint64_t rbx_buffer_cost_quick(struct rbx_context *ctx);

/* Measures what registering takes by pages and by calls, from one length and another. 0 or
 * -errno. */
int rbx_region_cost_measure(struct rbx_context *ctx, struct rbx_region_cost *cost);

#endif
