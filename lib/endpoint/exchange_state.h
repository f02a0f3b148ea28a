/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_state.h - the state of an exchanger. Two files use it: exchange.c has the calls of
 * the program, exchange_engine.c posts and polls.
 */
#ifndef RBX_LIB_ENDPOINT_EXCHANGE_STATE_H
#define RBX_LIB_ENDPOINT_EXCHANGE_STATE_H

#include "core/exchange.h"
#include "lib/endpoint/exchange.h"

/* Memory of an operation of ours. */
struct rbx_conditional {
	struct rbx_segment buffer;
	struct rbx_region *own; /* registered for it; NULL: its region or any key does */
	void *user;
	uint32_t parts_count; /* gathered, and not ended */
	bool is_whole; /* all of it is gathered */
	int status; /* the first failure of a part */
};

struct rbx_offered {
	struct rbx_region *region; /* NULL: its key has ended */
	void *user;
};

/* What is to be posted. */
struct rbx_exchange_batch {
	uint32_t at, count;
	struct rbx_operation operations[RBX_CHAIN_MAX];
	struct rbx_segment segments[RBX_CHAIN_MAX];
	uint8_t bytes[RBX_CHAIN_MAX][RBX_WIRE_EXCHANGE_BYTES];
};

struct rbx_exchanger {
	struct rbx_endpoint *endpoint;
	struct rbx_exchanger *next; /* of the queue, guarded by its exchanges_lock */
	bool is_cut; /* atomic: by the program */
	uint32_t count;
	uint32_t part_bytes; /* of an operation at most */
	uint8_t *receives; /* RBX_WIRE_EXCHANGE_RECEIVES of them */
	struct rbx_region *receives_region; /* NULL: any key does */

	pthread_mutex_t lock; /* guards what follows */
	struct rbx_exchange *core;
	uint64_t ticked_ns; /* when the deadlines were last looked at */
	bool must_disconnect; /* the peer has broken the protocol */
	struct rbx_exchange_post posting; /* the operation that is gathered */
	uint32_t posting_bytes; /* of it are gathered */
	bool is_posting;
	struct rbx_exchange_batch batch;
	uint8_t *empty[RBX_WIRE_EXCHANGE_RECEIVES]; /* receives to be posted */
	uint32_t empty_count;
	struct rbx_conditional *conditionals;
	struct rbx_offered *offers;
};

/* ---- exchange_engine.c ------------------------------------------------------------------*/

/* Posts what there is to post, and sends what there is to say. With the lock. */
void rbx_exchanger_pump_locked(struct rbx_exchanger *exchanger);
/* Gathers a write of nothing. A thread that polls may sleep since there was no exchanger: when
 * it completes, that thread begins to look at deadlines. Before it is in the queue's list. */
void rbx_exchanger_wake_gather(struct rbx_exchanger *exchanger);

#endif
