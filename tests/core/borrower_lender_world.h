/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_lender_world.h - clients, one server, and the queues of bytes between them.
 *
 * A client is a borrower and what it knows that it has; of the server there is the
 * lender, and its end of each client's session.
 */
#ifndef RBX_TESTS_BORROWER_LENDER_WORLD_H
#define RBX_TESTS_BORROWER_LENDER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/borrower.h"
#include "core/lender.h"
#include "core/random.h"
#include "core/unheard.h"

#define CLIENTS 2
#define SLABS 7
#define KNOWN_MAX SLABS
#define QUEUE_MAX 64
#define MS 1000000ull
#define LEASE_NS (4000 * MS)
#define SILENCE_NS (600 * MS)
#define DEADLINE_NS (300 * MS)

struct bytes {
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;
};

struct queue {
	struct bytes messages[QUEUE_MAX];
	uint32_t first, count;
};

/* The server's end of a session: its mailbox stays, the connection comes and goes. */
struct served {
	uint64_t session_id; /* 0: nobody's yet */
	bool is_connected;
	bool is_open; /* welcomed */
	bool may_speak; /* the client has spoken after WELCOME */
	uint64_t seen_request_id;
	struct rbx_wire_message hello;
	struct rbx_transcript transcript;
	struct rbx_key key;
	struct rbx_seals seals;
	uint64_t preparing; /* slab id; 0: none */
	uint64_t waiting_id; /* request id of a MAP that waits; 0: none */
	struct rbx_mailbox mailbox;
	struct rbx_unheard unheard;
	uint64_t put_count, ended_count;
};

struct client {
	struct rbx_borrower b;
	struct queue up, down;
	bool is_cut; /* nothing passes, and nobody has told the borrower */
	uint64_t away_until_ns; /* no connection before */
	struct rbx_loan known[KNOWN_MAX];
	uint32_t known_count;
	struct rbx_loan unmapping;
	uint64_t put_count, ended_count, heard_count;
	struct served served;
};

extern struct world {
	struct rbx_random random;
	uint64_t now_ns;
	struct rbx_lender *lender;
	uint64_t last_session_id;
	struct client clients[CLIENTS];
	uint64_t resumes, maps, ended, expired, stale, user_messages;
} w;

/* A random number below the bound. */
uint32_t below(uint32_t bound);
void queue_put(struct queue *q, struct rbx_seal *seal, const struct rbx_wire_message *m);
struct bytes *queue_take(struct queue *q);
/* How many of the loans that a client knows of the server has too. */
uint32_t held_count(const struct client *c);

#endif
