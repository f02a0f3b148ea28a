/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.h - a paced endpoint: its operations go through a channel (core/paced.h).
 *
 * Its operations take credit of the context's window, in turn with the peers, and the
 * combiner posts them. A plain READ or WRITE with one segment may be merged.
 *
 * A queue with paced endpoints gives credit back when it is polled, so it also lets
 * parked channels go on. It does so under its lock. A thread that removes a channel takes
 * that lock once, so that afterwards no queue uses the channel.
 */
#ifndef RBX_LIB_ENDPOINT_PACED_H
#define RBX_LIB_ENDPOINT_PACED_H

#include "lib/endpoint/endpoint.h"

/* The id of the marker's work request. */
#define RBX_PACED_MARKER_ID (2ull << 32)

/* Called before the connection is made. Sets endpoint->paced. 0, -ENOMEM, -ENOSPC. */
int rbx_paced_make(struct rbx_endpoint *endpoint, struct rbx_context *ctx,
		   uint32_t depth_count);
/* Called when the endpoint has its queue pair; depth_count is the depth of that. */
void rbx_paced_begin(struct rbx_endpoint *endpoint, uint32_t depth_count);
/* The connection is to end, so operations that wait end too. Any thread. */
void rbx_paced_disconnect(struct rbx_endpoint *endpoint);
/* The endpoint is closed; this destroys its queue pair. */
void rbx_paced_end(struct rbx_endpoint *endpoint);
void rbx_paced_free(struct rbx_endpoint *endpoint);

/* How many operations it has room for. */
uint32_t rbx_paced_depth(const struct rbx_endpoint *endpoint);

/* Posts operations that were checked. 0 or -EAGAIN. */
int rbx_paced_post(struct rbx_endpoint *endpoint,
		   const struct rbx_operation *operations, unsigned int count);

/* Opens a memory window by its work request, in order with all ordered operations. It has
 * no completion for the program. *is_opening, atomic, is cleared when its completion is
 * polled. 0 or -EAGAIN. */
int rbx_paced_open_window(struct rbx_endpoint *endpoint, const struct rbx_wr *wr,
			  bool *is_opening, void *user);

/* ---- Called by the thread that polls, with the queue's lock ------------------------*/

/* Handles the completion of an operation, or of the marker. */
void rbx_paced_completed(struct rbx_queue *queue, const struct rbx_wc *wc);
/* Settles what a poll has found. The operations that ended then wait in the queue. */
void rbx_paced_settle(struct rbx_queue *queue);
/* Takes completions from those that wait in the queue. */
unsigned int rbx_paced_deliver(struct rbx_queue *queue,
			       struct rbx_completion *completions,
			       unsigned int max);

#endif
