/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * asked_peers.h - servers that are asked something and answer when the test says so, in the place
 * of client/peer.c.
 */
#ifndef RBX_TESTS_ASKED_PEERS_H
#define RBX_TESTS_ASKED_PEERS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/peer.h"
#include "wire/message.h"

#define ASKED_PEERS 4u

struct server {
	struct rbx_ask *ask; /* that it has not answered */
	struct rbx_wire_message asked; /* what it was asked last */
	uint32_t asks_count;
	int answer;
	bool has_answered;
	bool is_silent; /* not up */
	bool drains;
	bool is_renounced; /* nothing that waits is sent to it any more */
	uint64_t lease_ns; /* 0: it has no end */
	uint64_t answered_ns; /* what was sent then, and nothing later */
};

/* All zeros at first; the test puts them into its volume as peers. */
extern struct server servers[ASKED_PEERS];

static inline struct server *of_peer(const struct rbx_peer *peer)
{
	return (struct server *)(uintptr_t)peer;
}

/* To what it was asked last. */
void answers(uint32_t server, int err);

#endif
