/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.h - an endpoint that exchanges buffers by tag (rdmabox/exchange.h).
 *
 * core/exchange.h decides. This is its host: it registers, posts, polls, and ends keys. The
 * messages of such an endpoint are its own, and so are all its receives.
 *
 * Locks. exchanges_lock of a queue: guards the list of its exchangers, and is held by the
 * thread that polls while it works for them. lock of an exchanger: guards its state. Order:
 * exchanges_lock or the lock of the queue, then the lock of an exchanger, then post_lock.
 * Memory is never registered or deregistered under the lock of an exchanger.
 */
#ifndef RBX_LIB_ENDPOINT_EXCHANGE_H
#define RBX_LIB_ENDPOINT_EXCHANGE_H

#include "lib/endpoint/endpoint.h"

/* Called before the connection is made. Sets endpoint->exchanger. Its receives are all that the
 * endpoint has (endpoint.c); what it posts has no room of its own. 0, -ENOMEM, -E... of a
 * registration. */
int rbx_exchanger_make(struct rbx_endpoint *endpoint, struct rbx_context *ctx, uint32_t count);
/* The endpoint has its queue pair: receives are posted. */
void rbx_exchanger_begin(struct rbx_endpoint *endpoint);
/* The endpoint is to be closed: no thread that polls works for it any more. */
void rbx_exchanger_stop(struct rbx_endpoint *endpoint);
/* It has no queue pair any more. NULL: nothing is done. */
void rbx_exchanger_free(struct rbx_exchanger *exchanger);
/* The program ends the connection. */
void rbx_exchanger_cut(struct rbx_exchanger *exchanger);

/* ---- Called by the thread that polls, with the queue's lock ------------------------*/

/* A part of an operation, or a message, has ended. user: as posted. */
void rbx_exchanger_posted(struct rbx_exchanger *exchanger, void *user, int status);
/* A receive has. */
void rbx_exchanger_received(struct rbx_exchanger *exchanger, uint8_t *bytes,
			    const struct rbx_wc *wc);

/* ---- Called by the thread that polls, without a lock --------------------------------*/

/* Does what there is to do for the exchangers of a queue. Returns how many completions. */
unsigned int rbx_exchangers_run(struct rbx_queue *queue, struct rbx_completion *completions,
				unsigned int max);
/* A thread that sleeps looks at deadlines as often as this. */
#define RBX_EXCHANGERS_TICK_MS 10

#endif
