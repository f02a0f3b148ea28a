/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scripted_server.h - what a server says of itself, for tests that play one. */
#ifndef RBX_TESTS_SCRIPTED_SERVER_H
#define RBX_TESTS_SCRIPTED_SERVER_H

#include "wire/message.h"

#define SCRIPTED_SLAB_BYTES (1ull << 20)
#define SCRIPTED_LEASE_MS 8000u

/* All of a WELCOME but its request and its proof. */
static inline struct rbx_wire_message scripted_welcome(void)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_WELCOME,
		.welcome = {
			.session_id = 77,
			.incarnation = 5,
			.slab_bytes = SCRIPTED_SLAB_BYTES,
			.memory_bytes = 64 * SCRIPTED_SLAB_BYTES,
			.free_bytes = 60 * SCRIPTED_SLAB_BYTES,
			.quota_bytes = UINT64_MAX,
			.lease_ms = SCRIPTED_LEASE_MS,
			.requests_max = 7,
			.queue_pairs_max = 16,
		},
	};
}

static inline struct rbx_wire_message scripted_challenge(uint64_t request_id)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_CHALLENGE,
		.request_id = request_id,
		.challenge = { .nonce = { 9 }, .incarnation = 5 },
	};
}

#endif
