/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* join.h - ended pieces become ended requests. */
#ifndef RBX_LIB_JOIN_H
#define RBX_LIB_JOIN_H

#include "core/piece_pool.h"
#include "lib/context.h"

/*
 * Puts ended pieces, at least one, back into their pool, and completes the
 * requests that have no other left. By who polls. A request's reserved[1] is
 * the number of its pieces that have not ended (atomic).
 *
 * Returns whether a fence waits at the pool.
 */
bool rbx_join(struct rbx_context *ctx, struct rbx_piece_pool *pool,
	      struct rbx_piece_list *ended);

#endif
