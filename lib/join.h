/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* join.h - joins ended pieces into ended requests. */
#ifndef RBX_LIB_JOIN_H
#define RBX_LIB_JOIN_H

#include "core/piece_pool.h"
#include "lib/context.h"

/*
 * Puts ended pieces, at least one, back into their pool, and completes each request whose
 * last piece has ended. Called by the thread that polls. reserved[1] of a request is the
 * number of its pieces that have not ended (atomic).
 *
 * Returns whether a fence waits for pieces of the pool.
 */
bool rbx_join(struct rbx_context *ctx, struct rbx_piece_pool *pool,
	      struct rbx_piece_list *ended);

#endif
