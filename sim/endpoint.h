/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - programs that communicate over endpoints, and what is checked.
 *
 *	endpoint.c         machines: one listens, the others connect; harm is done
 *	endpoint_end.c     an end of a connection, from its queue to its close
 *	endpoint_oracle.c  what may be heard, read, and found in exported memory
 *
 * For each connection: messages are received in order, each once, complete; a message whose
 * send succeeded was received; after the first failed send none succeeds; all that is posted
 * ends, and once; atomics find what earlier ones have left; reads find what was written
 * before; and exported memory is not accessed any more when its key has ended.
 */
#ifndef RBX_SIM_ENDPOINT_H
#define RBX_SIM_ENDPOINT_H

#include "include/rdmabox/endpoint.h"
#include "sim/random.h"

/* Connections of a run; messages of one in each direction. */
#define RBX_SIM_CONNECTIONS_MAX 200u
#define RBX_SIM_MESSAGES_MAX 200u
/* Of exported memory; at least as many as operations may be outstanding. */
#define RBX_SIM_WINDOWS 64u
#define RBX_SIM_TEXT_BYTES 1024u

enum rbx_sim_text {
	RBX_SIM_TEXT_SENT,
	RBX_SIM_TEXT_SENT_IMMEDIATE,
	RBX_SIM_TEXT_SENT_INVALIDATE, /* the last: ends the key of the gift */
	RBX_SIM_TEXT_WRITTEN, /* WRITE with immediate, into the window of its number */
	RBX_SIM_TEXT_SCRATCH, /* not a message: written, and read again */
};

/* What each end exports. */
struct rbx_sim_exported {
	uint64_t words[2]; /* counted up: by FETCH_ADD, by COMPARE_SWAP */
	uint8_t written[RBX_SIM_WINDOWS][RBX_SIM_TEXT_BYTES];
	uint8_t scratch[RBX_SIM_WINDOWS][RBX_SIM_TEXT_BYTES];
};

/* What one end sends and the other receives. Messages are numbered from 1. */
struct rbx_sim_stream {
	uint32_t said, had, heard; /* posted; succeeded; received */
	bool has_failed;
	uint8_t kinds[RBX_SIM_MESSAGES_MAX + 1]; /* enum rbx_sim_text */
	uint32_t atomics_said[2];
	bool gift_has_ended; /* the sender knows that it was received */
};

struct rbx_sim_connection {
	struct rbx_sim_stream streams[2]; /* by sender: 0 is the connecting end */
	/* For each end: all that was posted has ended and was checked. */
	bool has_drained[2];
};

/* Bytes of a text, written to `text`. */
uint32_t rbx_sim_text_make(uint8_t *text, uint32_t connection, uint32_t side,
			   enum rbx_sim_text kind, uint32_t number);

/* side: the receiver; exported: its memory; NULL: the key has ended. */
void rbx_sim_endpoint_heard(uint32_t connection, uint32_t side,
			    const struct rbx_completion *completion,
			    const uint8_t *text,
			    const struct rbx_sim_exported *exported,
			    uint32_t gift_key);
/* A message has ended at its sender. */
void rbx_sim_endpoint_said(uint32_t connection, uint32_t side, uint32_t number,
			   int status);
/* An end has drained. */
void rbx_sim_endpoint_drained(uint32_t connection, uint32_t side);

/* Fills memory whose key has ended, and checks whether it stays so. */
void rbx_sim_stamp(void *memory, size_t bytes);
void rbx_sim_stamp_check(const void *memory, size_t bytes, const char *what);

extern struct rbx_sim_connection rbx_sim_connections[RBX_SIM_CONNECTIONS_MAX];
extern uint32_t rbx_sim_connections_count;

/* What the ends tell each other while they connect. */
struct rbx_sim_hello {
	uint64_t exported, gift; /* addresses */
	uint32_t exported_key, gift_key;
	uint32_t connection;
};

struct rbx_sim_end;

/* An end of a program on this node. Fails the run if it cannot. */
struct rbx_sim_end *rbx_sim_end_make(struct rbx_context *ctx, uint32_t side,
				     struct rbx_random *random);
const struct rbx_endpoint_options *
rbx_sim_end_options(const struct rbx_sim_end *end);
void rbx_sim_end_hello(struct rbx_sim_end *end, uint32_t connection,
		       struct rbx_sim_hello *hello);
/* Communicates until the connection is over, closes, and frees. endpoint: may be NULL. */
void rbx_sim_end_run(struct rbx_sim_end *end, struct rbx_endpoint *endpoint,
		     const struct rbx_sim_hello *other);

/* endpoint.c: runs the scenario. */
void rbx_sim_endpoints_direct(void);

#endif
