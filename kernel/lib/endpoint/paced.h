/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.h - an endpoint whose operations go through a channel (core/paced.h).
 *
 * Each has a slot of the endpoint's ring as without one; but slots are taken and given
 * back in any order, with the place of the channel that goes with it.
 */
#ifndef RBX_KERNEL_ENDPOINT_PACED_H
#define RBX_KERNEL_ENDPOINT_PACED_H

#include "kernel/lib/endpoint/endpoint.h"

/* In its domain, with its rings: endpoint->paced is set, and the context knows it. 0,
 * -ENOMEM, -ENOSPC. */
int rbx_paced_make(struct rbx_endpoint *endpoint);
/* Operations that are posted to the device at a time. */
uint32_t rbx_paced_depth(const struct rbx_endpoint *endpoint);
/* Its connection is to end: so does what waits. Process context; it is not closed. */
void rbx_paced_disconnect(struct rbx_endpoint *endpoint);
/* It is closed: when this returns nobody posts on its queue pair any more. */
void rbx_paced_stop(struct rbx_endpoint *endpoint);
/* And its queue pair is destroyed: all that is left completes. */
void rbx_paced_finish(struct rbx_endpoint *endpoint, bool all_is_back);
/* NULL: nothing to free. */
void rbx_paced_free(struct rbx_paced_endpoint *paced);

/* Whether so many may be posted. With post_lock. */
bool rbx_paced_has_room_locked(struct rbx_endpoint *endpoint, uint32_t count);
/* Operations that were checked, and have room. The channel, which the caller combines,
 * without the lock; or NULL. */
struct rbx_channel *
rbx_paced_submit_locked(struct rbx_endpoint *endpoint,
			const struct rbx_operation *operations, uint32_t count);
/* One has been told of, or is about to be. */
void rbx_paced_slot_give(struct rbx_endpoint_slot *slot);

#endif
