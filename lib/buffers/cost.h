/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost.h - what copying and registering a buffer cost on this device.
 *
 * The measurement behind buffers=auto and rdmabox-tune(1); the public half is
 * rbx_buffer_cost_measure().
 */
#ifndef RBX_LIB_BUFFER_COST_H
#define RBX_LIB_BUFFER_COST_H

#include <stdint.h>

struct rbx_context;

/*
 * Measures a few lengths, for at most about RBX_BUFFER_COST_BUDGET_NS, and
 * returns the break-even (core/break_even.h): RBX_BREAK_EVEN_NEVER where memory
 * cannot be registered here, or copying was cheaper as far as it came.
 */
#define RBX_BUFFER_COST_BUDGET_NS 15000000ull
uint64_t rbx_buffer_cost_quick(struct rbx_context *ctx);

#endif
