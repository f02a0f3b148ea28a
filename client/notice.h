/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * notice.h - reports what happens to peers and slabs, for logs and tracepoints.
 *
 * The host provides these functions. They only report: they change nothing. Each is called
 * with no lock held, and must not block.
 */
#ifndef RBX_CLIENT_NOTICE_H
#define RBX_CLIENT_NOTICE_H

#include "core/eviction.h"
#include "core/peer_state.h"
#include "core/slab.h"

struct rbx_peer;

/* Its connection has entered another phase. reason: for DRAINING. */
void rbx_notice_phase(const struct rbx_peer *peer, enum rbx_peer_phase phase,
		      const char *reason);
/* Its server wants a loan back. Any context. */
void rbx_notice_eviction(const struct rbx_peer *peer,
			 const struct rbx_eviction *eviction);
/* The upkeep thread is about to do a task of a slab. */
void rbx_notice_task(const struct rbx_slab *slab, enum rbx_slab_task task);

#endif
