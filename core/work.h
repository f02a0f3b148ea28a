/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * work.h - a work request and the fragments that share it.
 *
 * The planner makes it and the host posts it. A work request is in a slot of its queue pair's
 * send ring (send_ring.h) from planning to completion. Its members are the fragments that
 * complete with it.
 */
#ifndef RBX_WORK_H
#define RBX_WORK_H

#include "core/request.h"
#include "core/sge.h"

struct rbx_work {
	struct rbx_fragment *first; /* members, in the order of remote_addr, */
	struct rbx_fragment *last; /* linked by node.next, ended by NULL */
	uint32_t member_count;
	uint32_t length_bytes;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t staging_block; /* the first one, if staged */
	uint64_t posted_ns;
	uint8_t direction; /* enum rbx_direction */
	bool staged; /* copied through staging memory */
	uint32_t sge_count;
	struct rbx_sge sges[RBX_SGE_MAX];
};

/* Whether a fragment begins in remote memory where a work request ends. */
static inline bool rbx_work_continues(const struct rbx_work *work,
				      const struct rbx_fragment *fragment)
{
	return fragment->remote_addr ==
		       work->remote_addr + work->length_bytes &&
	       fragment->rkey == work->rkey &&
	       !(fragment->flags & RBX_FRAGMENT_ALONE);
}

#endif
