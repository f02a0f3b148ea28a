/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_peer.h - memory servers in this process, in the place of lib/peer/peer.c and
 * of the context, for tests of what stands above them.
 *
 * Fragments lie in one heap until a network thread picks one at random, carries
 * it out and calls done(): so they are delayed and reordered at will. Without
 * threads rbx_poll() is the network. Servers can be killed, filled, made to
 * fail now and then, and asked to take their slabs back.
 */
#ifndef RBX_TEST_FAKE_PEER_H
#define RBX_TEST_FAKE_PEER_H

#include "lib/context.h"
#include "lib/peer/peer.h"

#define FAKE_SERVERS_MAX 128u
#define FAKE_AREAS_MAX 64u

struct fake_server {
	char address[32];
	char labels[64];
	uint64_t slab_bytes;
	uint32_t area_count;
	int refuse; /* 0, or the -errno of each map */
	int keep; /* the same of each unmap */
	bool down;
	uint32_t fail_permille; /* parts that end with -EREMOTEIO */
	uint32_t keys[FAKE_AREAS_MAX]; /* 0: not lent */
	struct rbx_peer *owners[FAKE_AREAS_MAX]; /* of a key, who takes leave with it */
	uint8_t *memory;
	uint32_t sessions_count; /* open now */
};

/* threads 0: pollers = 0, and the test polls. */
struct rbx_context *fake_context_open(uint32_t threads, uint64_t seed);
void fake_context_close(struct rbx_context *ctx);

/* All servers are forgotten by fake_context_close(). */
struct fake_server *fake_server_start(const char *address, uint64_t slab_bytes,
				      uint32_t area_count);
/* Everything sent to it fails from now on; its peers are told. */
void fake_server_kill(struct fake_server *server);
/* Asks for all that is lent. */
void fake_server_evict(struct fake_server *server);
/* Ends what is lent: further accesses end with -EACCES. */
void fake_server_revoke(struct fake_server *server);
void fake_server_set_fail(struct fake_server *server, uint32_t permille);
void fake_server_set_refuse(struct fake_server *server, int err);
/* 0, or the -errno of each loan that is given back, which stays lent. */
void fake_server_set_keep(struct fake_server *server, int err);
uint32_t fake_server_lent_count(struct fake_server *server);

/* Holds all fragments back, or lets them go. */
void fake_network_hold(bool hold);
/* Fragments handed over and not carried out. */
uint32_t fake_network_pending_count(void);
/* The same, those to one server. */
uint32_t fake_server_pending_count(struct fake_server *server);
/* How many were handed over, and by how many calls, since the start. */
uint64_t fake_network_fragments_count(void);
uint64_t fake_network_submits_count(void);
/* Accesses with a key that had ended. */
uint64_t fake_network_stale_count(void);

#endif
