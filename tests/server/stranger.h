/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stranger.h - a peer that speaks to a server as it likes, byte by byte.
 *
 * It has a queue pair and knows the protocol, and keeps none of its rules
 * unless the test says so.
 */
#ifndef RBX_TESTS_STRANGER_H
#define RBX_TESTS_STRANGER_H

#include "tests/server/world.h"
#include "wire/attach.h"
#include "wire/message.h"
#include "wire/reason.h"

#define STRANGER_RECEIVES 16
#define STRANGER_SENDS 64 /* all that a test sends over one connection */
#define STRANGER_BUFFER_BYTES 8192

struct stranger {
	struct world *world;
	struct rbx_cq *cq;
	bool is_guest; /* cq, buffers and mr are another stranger's */
	struct rbx_qp *qp;
	uint8_t *buffers; /* the sends, then the receives */
	struct rbx_mr *mr;
	uint32_t sends_count; /* each has a buffer: it may leave late */
	uint64_t next_id;
	/* Of the handshake, as far as it got. */
	struct rbx_wire_message hello;
	struct rbx_transcript transcript;
	struct rbx_key connection_key;
	struct rbx_wire_message welcome;
};

/* Connects with these private data. 0, or -errno with the reason told. */
int stranger_connect(struct stranger *stranger, struct world *world,
		     const void *private_data, size_t length_bytes,
		     uint32_t *reason);
/* The same, for control, and it must succeed. */
void stranger_arrive(struct stranger *stranger, struct world *world);
/* The same, and it names the session that it means to resume. */
void stranger_arrive_to_resume(struct stranger *stranger, struct world *world,
			       uint64_t session_id);
/* The same, with the buffers and the completion queue of another one: for many who
 * speak in turns. */
void stranger_arrive_beside(struct stranger *stranger,
			    const struct stranger *other);
void stranger_leave(struct stranger *stranger);

void stranger_send_bytes(struct stranger *stranger, const void *bytes,
			 size_t length_bytes);
/* Gives it the next request id unless it has one. */
void stranger_send(struct stranger *stranger, struct rbx_wire_message *message);
/* The next message. False: the connection has ended. */
bool stranger_hear(struct stranger *stranger, struct rbx_wire_message *message);
/* The next message refuses for this reason, and the connection ends. */
void stranger_is_refused(struct stranger *stranger, uint32_t reason);

/* HELLO and the answer to it, which is CHALLENGE. */
void stranger_greet(struct stranger *stranger);
/* AUTH with this secret (NULL: none), after stranger_greet(). */
void stranger_prove(struct stranger *stranger, const struct rbx_secret *secret);
/* All of it: afterwards it is a client. */
void stranger_enter(struct stranger *stranger);
/* A second connection of the session of the first, as far as WELCOME. It knows of
 * slabs up to this epoch. */
void stranger_resume(struct stranger *again, const struct stranger *first,
		     uint64_t last_epoch);

#endif
