/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stats.h - keeps the counters of a channel that is closed. */
#ifndef RBX_LIB_STATS_H
#define RBX_LIB_STATS_H

struct rbx_channel;
struct rbx_context;

/* The caller holds the context's view_lock. */
void rbx_stats_keep_channel(struct rbx_context *ctx,
			    const struct rbx_channel *channel);

#endif
