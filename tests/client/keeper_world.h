/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_world.h - a named volume with two replicas, and its servers, which answer when the test
 * says so: for the tests of the keeper.
 */
#ifndef RBX_TESTS_KEEPER_WORLD_H
#define RBX_TESTS_KEEPER_WORLD_H

#include <pthread.h>

#include "client/keeper_state.h"
#include "tests/client/asked_peers.h"

#define SERVERS ASKED_PEERS /* the one at place i has the incarnation i + 1 */
#define AGAIN_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)

/* In the place of client/session.c: at the close, servers are asked one by one, and one that comes
 * is asked by the thread that has connected it. What they were asked; epoch 0: nobody was. */
extern struct rbx_wire_record closed_with;
/* One that is there again tells these slabs, and notes these intents. */
extern struct rbx_wire_labels told_labels;
extern struct rbx_wire_intents noted_intents;
/* How it was opened last, and what it answered. */
extern enum rbx_wire_open_mode opened_mode;
extern struct rbx_wire_record looked_record;
/* What is asked so ends with this; 0 at first. */
extern int talk_err;

/* What the host was told since the volume goes on. */
extern struct stopped {
	uint32_t count;
	char server[RBX_STOP_SERVER_BYTES], why[RBX_ERROR_BYTES];
} stopped;

struct world {
	struct rbx_volume_control control;
	struct rbx_named named;
	struct rbx_keeper keeper;
	struct rbx_flow_counters counters;
	uint64_t now_ns;
};

/* The volume is open on the first count of the servers: its record is accepted by all. */
struct world *make(uint32_t count);
struct world *make_with(uint32_t count, bool checksums);
void end(struct world *w);

void has_slab(struct world *w, uint32_t server, uint32_t slab);
uint64_t turn(struct world *w);
void suspect(struct world *w, uint32_t server);
bool is_down(const struct world *w, uint32_t server);
bool has_failed(struct world *w, uint32_t server);

/* Waits until the keeper was woken once more, by another thread. */
void woken_wait(void);

/* The same until the keeper can see a newcomer. Answers wake it, too. */
void newcomer_wait(struct world *w);

/* The first two servers, without which the volume is over. */
void two_are_lost(struct world *w);

/* The thread that has connected a server that comes again, and waits for the keeper. */
struct comer {
	struct world *w;
	uint32_t place, failed_place;
	int err;
	pthread_t thread;
};

/* Returns when the keeper can see it. */
void comes_again(struct comer *comer, struct world *w, uint32_t place, uint32_t failed_place);
int came(struct comer *comer);

#endif
