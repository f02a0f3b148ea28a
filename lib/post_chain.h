/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post_chain.h - translates a chain of the core into a list of the fabric's work
 * requests, on the stack, and posts it with one call. Only the last one is signaled.
 */
#ifndef RBX_LIB_POST_CHAIN_H
#define RBX_LIB_POST_CHAIN_H

#include "core/channel.h"
#include "fabric/fabric.h"

/* translate: fills in a work request except wr_id and next. It is inlined, as each caller
 * passes it by its name. Returns how many work requests, the last of the chain, the
 * device did not take. Called by the combiner. */
static inline uint32_t
rbx_post_chain(struct rbx_channel *channel, const struct rbx_chain *chain,
	       struct rbx_qp *qp,
	       void (*translate)(const struct rbx_qp *qp,
				 const struct rbx_work *work,
				 struct rbx_wr *wr))
{
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];
	struct rbx_wr wrs[RBX_CHAIN_MAX];
	struct rbx_wr *bad = wrs;
	uint32_t i = 0;

	do { /* a chain has one at least */
		uint32_t number = chain->first_number + i;

		translate(qp, rbx_send_ring_slot(ring, number), &wrs[i]);
		wrs[i].wr_id = number;
		wrs[i].next = &wrs[i + 1];
	} while (++i < chain->work_count);
	wrs[i - 1].next = NULL;
	wrs[i - 1].flags |= RBX_WR_SIGNALED;
	if (!qp->device->ops->post_send(qp, wrs, &bad))
		return 0;
	return chain->work_count - (uint32_t)(bad - wrs);
}

#endif
