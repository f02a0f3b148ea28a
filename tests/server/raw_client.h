/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * raw_client.h - an untrusted client that speaks to a server as it likes, byte by byte.
 *
 * It has a queue pair and knows the protocol, and keeps none of its rules
 * unless the test says so.
 */
#ifndef RBX_TESTS_RAW_CLIENT_H
#define RBX_TESTS_RAW_CLIENT_H

#include "tests/server/world.h"
#include "wire/attach.h"
#include "wire/message.h"
#include "wire/reason.h"
#include "wire/seal.h"

#define RAW_CLIENT_RECEIVES 16
#define RAW_CLIENT_SENDS 64 /* all that a test sends over one connection */
#define RAW_CLIENT_BUFFER_BYTES 8192

struct raw_client {
	struct world *world;
	struct rbx_cq *cq;
	bool is_guest; /* cq, buffers and mr are another raw client's */
	struct rbx_qp *qp;
	uint8_t *buffers; /* the sends, then the receives */
	struct rbx_mr *mr;
	uint32_t sends_count; /* each has a buffer: it may leave late */
	uint64_t next_id;
	/* Of the handshake, as far as it got. */
	struct rbx_wire_message hello;
	struct rbx_transcript transcript;
	struct rbx_key session_key;
	struct rbx_key connection_key;
	struct rbx_wire_message welcome;
	struct rbx_seals next_seals; /* of messages after WELCOME, once the proof was sent */
	struct rbx_seals seals;
};

/* Connects with these private data. 0, or -errno with the reason told. */
int raw_client_connect(struct raw_client *raw, struct world *world,
		       const void *private_data, size_t length_bytes,
		       uint32_t *reason);
/* The same, for control, and it must succeed. */
void raw_client_arrive(struct raw_client *raw, struct world *world);
/* The same, and it names the session that it means to resume. */
void raw_client_arrive_to_resume(struct raw_client *raw, struct world *world,
				 uint64_t session_id);
/* The same, with the buffers and the completion queue of another one: for many who
 * speak in turns. */
void raw_client_arrive_beside(struct raw_client *raw,
			      const struct raw_client *other);
void raw_client_leave(struct raw_client *raw);

void raw_client_send_bytes(struct raw_client *raw, const void *bytes,
			   size_t length_bytes);
/* Gives it the next request id unless it has one. */
void raw_client_send(struct raw_client *raw, struct rbx_wire_message *message);
/* The next message. False: the connection has ended. */
bool raw_client_hear(struct raw_client *raw, struct rbx_wire_message *message);
/* The next message refuses for this reason, and the connection ends. */
void raw_client_is_refused(struct raw_client *raw, uint32_t reason);

/* HELLO and the answer to it, which is CHALLENGE. */
void raw_client_greet(struct raw_client *raw);
/* AUTH with this secret (NULL: none), after raw_client_greet(). */
void raw_client_prove(struct raw_client *raw, const struct rbx_secret *secret);
/* All of it: afterwards it is a client. */
void raw_client_enter(struct raw_client *raw);
/* As far as AUTH, with a secret of this name. Its answer is still to come. */
void raw_client_prove_as(struct raw_client *raw, const char *credential, const char *secret);
/* A second connection of the session of the first, as far as WELCOME. It knows of
 * slabs up to this epoch. */
void raw_client_resume(struct raw_client *again, const struct raw_client *first,
		       uint64_t last_epoch);

#endif
