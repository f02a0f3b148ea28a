/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.h - a paced endpoint: its operations go through a channel (core/paced.h).
 *
 * Each operation has a slot of the endpoint's ring, as without pacing. But slots are
 * taken and given back in any order, each with its place in the channel.
 */
#ifndef RBX_KERNEL_ENDPOINT_PACED_H
#define RBX_KERNEL_ENDPOINT_PACED_H

#include "kernel/lib/endpoint/endpoint.h"

/* The endpoint is in its domain and has its rings. Sets endpoint->paced and tells the
 * context. 0, -ENOMEM, -ENOSPC. */
int rbx_paced_make(struct rbx_endpoint *endpoint);
/* The most operations that are posted to the device at a time. */
uint32_t rbx_paced_depth(const struct rbx_endpoint *endpoint);
/* The connection is to end, so operations that wait end too. Process context; the
 * endpoint is not closed. */
void rbx_paced_disconnect(struct rbx_endpoint *endpoint);
/* The endpoint is closed. When it returns, no thread posts on its queue pair any more. */
void rbx_paced_stop(struct rbx_endpoint *endpoint);
/* Its queue pair is destroyed: completes all that is left. */
void rbx_paced_finish(struct rbx_endpoint *endpoint, bool all_is_back);
/* NULL: nothing to free. */
void rbx_paced_free(struct rbx_paced_endpoint *paced);

/* Whether so many more may be posted. With post_lock. */
bool rbx_paced_has_room_locked(struct rbx_endpoint *endpoint, uint32_t count);
/* Submits operations that were checked and have room. Returns the channel if the caller
 * has to combine it, without the lock; or NULL. */
struct rbx_channel *
rbx_paced_submit_locked(struct rbx_endpoint *endpoint,
			const struct rbx_operation *operations, uint32_t count);
/* Frees the slot of an operation whose end was reported, or is about to be. */
void rbx_paced_slot_give(struct rbx_endpoint_slot *slot);

#endif
