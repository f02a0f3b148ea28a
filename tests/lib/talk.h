/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * talk.h - two programs that talk, in one process, for tests of messages.
 *
 * What they say are the numbers 1, 2, 3 ... The host says each back to whom it
 * heard it from; both count what came out of turn, and how their own ended.
 */
#ifndef RBX_TESTS_TALK_H
#define RBX_TESTS_TALK_H

#include <semaphore.h>

#include "core/limits.h"
#include "core/port.h"
#include "include/rdmabox/message.h"
#include "tests/lib/tenant.h"

/* The program that serves: counts what it hears, and says it back. */
struct host {
	struct rbx_server *server;
	uint64_t client; /* atomic: who spoke last */
	uint64_t heard_count; /* atomic: the numbers 1, 2, 3 ... */
	uint32_t wrong_count; /* atomic */
	uint32_t ended_count; /* atomic: its own messages */
	uint32_t failed_count; /* atomic: of these */
	int failed_status; /* of the last one */
	bool echoes;
	bool waits; /* for the semaphore, in its handler: it must not */
	sem_t go_on;
};

/* The program of the client. */
struct guest {
	struct rbx_context *ctx;
	struct rbx_peer *peer;
	uint64_t heard_count; /* atomic */
	uint32_t wrong_count; /* atomic */
	uint32_t ended_count; /* atomic */
	uint32_t failed_count; /* atomic */
	int failed_status;
	int nested_status; /* of a call in its handler */
};

/* Its program has a message handler, if it listens. */
void host_start(struct host *host, bool listens);
/* Told how a message of the host ended; user is the host. */
void host_ended(int status, void *user);

void guest_open(struct guest *guest, const char *address, bool listens);
void guest_close(struct guest *guest);
void guest_ended(int status, void *user);
/* The guest's message handler; tries to wait in it, which is refused. */
void guest_heard(struct rbx_peer *peer, const void *data, size_t length,
		 void *user);

/* Wait until an atomic counter is at least that. */
void wait_count(const uint32_t *counter, uint32_t count);
void wait_heard(const uint64_t *counter, uint64_t count);

#endif
