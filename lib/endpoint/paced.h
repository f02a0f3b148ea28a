/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.h - an endpoint whose operations go through a channel (core/paced.h).
 *
 * They are merged, take credit of the context's window, in turn with its peers, and are
 * posted by whoever combines. What is one segment of plain READ or WRITE may be merged.
 *
 * A queue with such endpoints is one of those who give credit back, and so lets parked
 * channels go on. It does so under its lock; whoever removes a channel passes through it.
 */
#ifndef RBX_LIB_ENDPOINT_PACED_H
#define RBX_LIB_ENDPOINT_PACED_H

#include "lib/endpoint/endpoint.h"

/* Of a work request: the marker. */
#define RBX_PACED_MARKER_ID (2ull << 32)

/* Before the connection: 0, -ENOMEM, -ENOSPC. endpoint->paced is set. */
int rbx_paced_make(struct rbx_endpoint *endpoint, struct rbx_context *ctx,
		   uint32_t depth_count);
/* It has a queue pair, of that depth. */
void rbx_paced_begin(struct rbx_endpoint *endpoint, uint32_t depth_count);
/* Its connection is to end: so does what waits. Any thread. */
void rbx_paced_disconnect(struct rbx_endpoint *endpoint);
/* The endpoint is closed: its queue pair is destroyed here. */
void rbx_paced_end(struct rbx_endpoint *endpoint);
void rbx_paced_free(struct rbx_endpoint *endpoint);

/* Operations that it has places for. */
uint32_t rbx_paced_depth(const struct rbx_endpoint *endpoint);

/* Checked before. 0 or -EAGAIN. */
int rbx_paced_post(struct rbx_endpoint *endpoint,
		   const struct rbx_operation *operations, unsigned int count);

/* Opens a window by its work request, in order with all that is ordered, and silently;
 * *is_opening, atomic, is cleared when that is polled. 0 or -EAGAIN. */
int rbx_paced_open_window(struct rbx_endpoint *endpoint, const struct rbx_wr *wr,
			  bool *is_opening, void *user);

/* ---- By who polls, with the queue's lock -------------------------------------------*/

/* A completion of an operation, or of the marker. */
void rbx_paced_completed(struct rbx_queue *queue, const struct rbx_wc *wc);
/* What a poll has found is settled; the operations that it ended wait in the queue. */
void rbx_paced_settle(struct rbx_queue *queue);
/* Takes completions of those that wait. */
unsigned int rbx_paced_deliver(struct rbx_queue *queue,
			       struct rbx_completion *completions,
			       unsigned int max);

#endif
