/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.h - a server and a client of it in one process, for tests.
 *
 * The fabric is soft over TCP; RBX_TEST_FABRIC and RBX_TEST_LISTEN in the
 * environment choose another one ("verbs", "10.9.0.1:0").
 */
#ifndef RBX_TESTS_WORLD_H
#define RBX_TESTS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "include/rdmabox/server.h"
#include "lib/fabric_choice.h"
#include "lib/secret.h"
#include "lib/session/sessions.h"

#define WORLD_SLAB_BYTES (64u << 10)
#define WORLD_WAIT_MS 20000 /* against hangs only */

/* What lost() and evict() told. */
struct witness {
	int lost_count; /* atomic */
	int evict_count; /* atomic */
	uint64_t evicted_slab_id; /* atomic: of the last one */
	uint64_t evicted_epoch; /* atomic: the same */
};

struct world {
	struct rbx_server_options options;
	struct rbx_server *server;
	struct rbx_fabric_choice choice;
	struct rbx_device *device; /* the client's */
	struct rbx_secret *secret; /* the client's */
	struct rbx_sessions *set;
	struct rbx_cq *cq; /* of data queue pairs */
	uint8_t *memory; /* one slab, registered */
	struct rbx_mr *mr;
	struct witness witness;
};

/* Options for this environment: 4 slabs, loopback, port 0. */
void world_options(struct world *world);
/* Starts the server by world->options; then the client's side. */
void world_start(struct world *world);
/* Both, with the options as they are. */
void world_begin(struct world *world);
void world_stop(struct world *world);
/* Waits until done(world) or fails the test. */
void world_wait(struct world *world, bool (*done)(struct world *world));

struct rbx_session *world_session(struct world *world);
/* The same, with a secret of this name. NULL: it was refused, with -EACCES. */
struct rbx_session *world_session_as(struct world *world, const char *credential,
				     const char *secret);
struct rbx_qp *world_qp(struct world *world, struct rbx_session *session);
/* Whole of world->memory to or from a slab. Returns the status. */
int world_transfer(struct world *world, struct rbx_qp *qp, uint8_t opcode,
		   const struct rbx_loan *loan);
struct rbx_server_stats world_stats(struct world *world);
/* A client comes, and is lent a slab. */
void world_serves_on(struct world *world);

/* Writes a secret file and returns its path, until the next call. */
const char *world_secret_file(const char *text, unsigned int mode);
/* The same for a file of secrets, with lines NAME:SECRET. */
const char *world_secrets_file(const char *text);

#endif
