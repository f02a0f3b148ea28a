/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rogue.h - a server that is not what it should be.
 *
 * It speaks the protocol by the book up to the point where it does what its
 * mode says. (tests/server/stranger.h is such a client.)
 */
#ifndef RBX_TESTS_ROGUE_H
#define RBX_TESTS_ROGUE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/fabric_choice.h"
#include "lib/secret.h"
#include "wire/message.h"

#define ROGUE_RECEIVES 8
#define ROGUE_BUFFER_BYTES RBX_WIRE_MESSAGE_BYTES_MAX

enum rogue_mode {
	ROGUE_SILENT, /* accepts and says nothing */
	ROGUE_GARBAGE, /* answers HELLO with no message */
	ROGUE_IMPOSTOR, /* has no secret: sends back the client's own proof */
	ROGUE_NONSENSE, /* proves itself, and lends slabs of three bytes */
	ROGUE_WRONG_LOAN, /* lends a slab that reaches beyond the address space */
	ROGUE_FALLS_SILENT, /* welcomes, and never answers again */
	ROGUE_SHORT_LEASE, /* the same, with a lease that is over first */
	ROGUE_CHATTERS, /* welcomes, then answers what nobody asked */
	ROGUE_LEAVES, /* ends the connection after AUTH */
	ROGUE_LEAVES_OUT, /* says its second message, and never its first */
	ROGUE_HAS_HAD, /* has had a message that we never sent */
	ROGUE_WELCOME_OF_ANOTHER_HELLO, /* recorded in another handshake */
	ROGUE_WELCOME_OF_ANOTHER_CHALLENGE,
	/* From here on: a field of WELCOME is changed on the way. */
	ROGUE_CHANGES_WELCOME,
};

/* How many fields there are to change, one for each mode from there on. */
#define ROGUE_WELCOME_FIELDS 10

struct rogue {
	enum rogue_mode mode;
	const struct rbx_fabric_ops *ops;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_listener *listener;
	struct rbx_qp *qp;
	struct rbx_mr *mr;
	uint8_t buffers[ROGUE_RECEIVES + 1][ROGUE_BUFFER_BYTES]; /* the last one to send */
	struct rbx_wire_message hello, challenge;
	struct rbx_secret *secret;
	bool stopping; /* atomic */
	pthread_t thread;
};

/* Listens on a port of loopback. secret: rogue->secret, set before. */
void rogue_start(struct rogue *rogue, enum rogue_mode mode,
		 const struct rbx_fabric_choice *choice);
void rogue_stop(struct rogue *rogue);

#endif
