/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * misbehaving_server.h - a server that breaks the protocol.
 *
 * It speaks the protocol by the book up to the point where it does what its
 * mode says. (tests/server/raw_client.h is such a client.)
 */
#ifndef RBX_TESTS_MISBEHAVING_SERVER_H
#define RBX_TESTS_MISBEHAVING_SERVER_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/fabric_choice.h"
#include "lib/secret.h"
#include "wire/seal.h"

#define SERVER_RECEIVES 8
#define SERVER_BUFFER_BYTES RBX_WIRE_MESSAGE_BYTES_MAX

enum server_mode {
	SERVER_SILENT, /* accepts and says nothing */
	SERVER_GARBAGE, /* answers HELLO with no message */
	SERVER_IMPOSTOR, /* has no secret: sends back the client's own proof */
	SERVER_NONSENSE, /* proves itself, and lends slabs of three bytes */
	SERVER_WRONG_LOAN, /* lends a slab that reaches beyond the address space */
	SERVER_FALLS_SILENT, /* welcomes, and never answers again */
	SERVER_SHORT_LEASE, /* the same, with a lease that is over first */
	SERVER_CHATTERS, /* welcomes, then answers what nobody asked */
	SERVER_LEAVES, /* ends the connection after AUTH */
	SERVER_LEAVES_OUT, /* says its second message, and never its first */
	SERVER_HAS_HAD, /* has had a message that we never sent */
	SERVER_WELCOME_OF_ANOTHER_HELLO, /* recorded in another handshake */
	SERVER_WELCOME_OF_ANOTHER_CHALLENGE,
	/* From here on: a field of WELCOME is changed on the way. */
	SERVER_CHANGES_WELCOME,
};

/* How many fields there are to change, one for each mode from there on. */
#define SERVER_WELCOME_FIELDS 11

struct misbehaving_server {
	enum server_mode mode;
	const struct rbx_fabric_ops *ops;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_listener *listener;
	struct rbx_qp *qp;
	struct rbx_mr *mr;
	/* The last one to send. */
	uint8_t buffers[SERVER_RECEIVES + 1][SERVER_BUFFER_BYTES];
	struct rbx_wire_message hello, challenge;
	struct rbx_secret *secret;
	struct rbx_seals seals;
	bool stopping; /* atomic */
	pthread_t thread;
};

/* Listens on a port of loopback. secret: server->secret, set before. */
void misbehaving_server_start(struct misbehaving_server *server,
			      enum server_mode mode,
			      const struct rbx_fabric_choice *choice);
void misbehaving_server_stop(struct misbehaving_server *server);

#endif
