/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_world.h - a named volume with two replicas, and its servers, which answer when the test
 * says so: for the tests of the keeper.
 */
#ifndef RBX_TESTS_KEEPER_WORLD_H
#define RBX_TESTS_KEEPER_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/keeper.h"

#define SERVERS 4u
#define AGAIN_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)

/* In the place of client/peer.c. The server at place i has the incarnation i + 1. */
struct server {
	struct rbx_ask *ask; /* that it has not answered */
	struct rbx_wire_record asked; /* what it was asked to accept last */
	uint32_t asks_count;
	int answer;
	bool has_answered;
	bool is_silent; /* not up */
	uint64_t lease_ns; /* 0: it has no end */
	uint64_t answered_ns; /* what was sent then, and nothing later */
};

extern struct server servers[SERVERS];

/* In the place of client/session.c: at the close, servers are asked one by one. What they were
 * asked; epoch 0: nobody was. */
extern struct rbx_wire_record closed_with;

struct world {
	struct rbx_volume_control control;
	struct rbx_named named;
	struct rbx_keeper keeper;
	struct rbx_flow_counters counters;
	uint64_t now_ns;
};

/* The volume is open on the first count of the servers: its record is accepted by all. */
struct world *make(uint32_t count);
void end(struct world *w);

void answers(uint32_t server, int err);
void has_slab(struct world *w, uint32_t server, uint32_t slab);
uint64_t turn(struct world *w);
void suspect(struct world *w, uint32_t server);
bool is_down(const struct world *w, uint32_t server);
bool has_failed(struct world *w, uint32_t server);

/* Waits until the keeper was woken once more, by another thread. */
void woken_wait(void);

#endif
