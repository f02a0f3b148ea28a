/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_pair.h - a borrower and a scripted server: the test sees what the borrower
 * sends, and decides what the server says.
 */
#ifndef RBX_TESTS_BORROWER_PAIR_H
#define RBX_TESTS_BORROWER_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/borrower.h"
#include "tests/core/scripted_server.h"

#define MS 1000000ull
#define SILENCE_NS (1000 * MS)
#define LEASE_MS SCRIPTED_LEASE_MS
#define ANSWER_MS 500
#define DEADLINE_NS (ANSWER_MS * MS)

/* A borrower, and what is known of it on the other side. */
struct pair {
	struct rbx_borrower b;
	uint64_t now_ns;
	struct rbx_wire_message sent; /* the last one */
	int slot; /* of it */
	uint32_t sent_count;
	struct rbx_root root;
	struct rbx_transcript transcript;
	struct rbx_key session_key;
	struct rbx_seals seals; /* of the server */
	struct rbx_wire_message welcome; /* what the server says; no proof yet */
};

/* Not connected yet. */
struct pair *pair_make(void);
/* Connected and welcomed; free() is its end. */
struct pair *pair_up(void);
/* Connected and welcomed again. */
void pair_resume(struct pair *p);

/* The steps of a handshake: HELLO is sent, CHALLENGE is answered by AUTH, WELCOME comes. */
void pair_connect(struct pair *p);
void pair_challenge(struct pair *p);
void pair_welcome(struct pair *p);
/* The borrower computes or checks a proof, and goes on. The last two do it too. */
void pair_think(struct pair *p);

/* Takes what is to be sent; each buffer is free at once. */
void pair_pump(struct pair *p);
/* The server says this. */
void pair_say(struct pair *p, const struct rbx_wire_message *m);
void pair_say_user_message(struct pair *p, uint64_t sequence);
/* Lends a slab in answer to what was sent last. */
void pair_lend(struct pair *p, uint64_t slab_id, uint64_t epoch);

/* Begins a call, and sends it. */
void pair_call(struct pair *p, enum rbx_call_kind kind,
	       const struct rbx_loan *loan);
/* The status of a MAP that is answered so. */
int pair_map(struct pair *p, uint64_t slab_id, uint64_t epoch,
	     struct rbx_loan *loan);

#endif
