/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * eviction.h - the content of SLAB_EVICT: which loan the server wants back, and by when.
 *
 * A loan is named by slab and epoch everywhere, from the message to the replica: a slab that
 * was revoked and lent again is another loan. The message may be repeated, and a repetition
 * says how much of the time is left.
 */
#ifndef RBX_EVICTION_H
#define RBX_EVICTION_H

#include "wire/message.h"

struct rbx_eviction {
	uint64_t slab_id;
	uint64_t epoch;
	uint64_t now_ns; /* when it came */
	uint64_t until_ns; /* it is revoked then; UINT64_MAX: no time is set */
};

static inline struct rbx_eviction
rbx_eviction_of(const struct rbx_wire_message *message, uint64_t now_ns)
{
	uint32_t grace_ms = message->evict.grace_ms;

	return (struct rbx_eviction){
		.slab_id = message->evict.slab_id,
		.epoch = message->epoch,
		.now_ns = now_ns,
		.until_ns = grace_ms == UINT32_MAX ?
				    UINT64_MAX :
				    now_ns + (uint64_t)grace_ms * 1000000,
	};
}

#endif
