/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.h - a control connection of the server: its states, what is answered late,
 * and which untrusted clients may have one (half_open.c).
 *
 * All functions are called with the server's lock held.
 */
#ifndef RBX_SERVER_CONNECTION_H
#define RBX_SERVER_CONNECTION_H

#include "core/unheard.h"
#include "fabric/fabric.h"
#include "server/bounds.h"
#include "wire/proof.h"

struct rbx_client;
struct rbx_server;
struct rbx_slab;

enum rbx_connection_state {
	RBX_CONNECTION_FREE, /* no connection */
	RBX_CONNECTION_NEW, /* of an untrusted client; HELLO is awaited */
	RBX_CONNECTION_CHALLENGED, /* the same; AUTH is awaited */
	RBX_CONNECTION_OPEN, /* belongs to a client */
	RBX_CONNECTION_CLOSING, /* ends when the last answer has arrived */
};

enum rbx_late_kind {
	RBX_LATE_NONE,
	RBX_LATE_LOAN, /* SLAB_MAP */
	RBX_LATE_UNMAPPED, /* SLAB_UNMAP */
};

/* A request that is answered when the memory of its slab is done (borrowing.c). */
struct rbx_late_answer {
	enum rbx_late_kind kind;
	struct rbx_connection *connection;
	uint32_t slot; /* of the receive that it came in */
	uint64_t request_id;
	uint64_t since_ns; /* LOAN: it came */
	uint64_t epoch; /* UNMAPPED */
	struct rbx_slab *slab; /* NULL: it waits for one */
	struct rbx_late_answer *next; /* of those that wait */
};

/* Connections of one kind. */
struct rbx_connection_list {
	struct rbx_connection *first;
	uint32_t count;
};

/* A control connection. */
struct rbx_connection {
	enum rbx_connection_state state;
	/* NEW, CHALLENGED, CLOSING: of those that are half open; FREE: of those. */
	struct rbx_connection *next, *prev;
	uint32_t generation;
	struct rbx_qp *qp;
	struct rbx_client *client; /* of an OPEN one; else NULL */
	uint64_t arrived_ns;
	/* That it came to resume, or is of; 0: of an untrusted client. */
	uint64_t session_id;
	uint64_t deadline_ns; /* NEW, CHALLENGED, CLOSING: then it is ended */
	uint64_t last_request_id;
	uint32_t sends_busy; /* bit n: send buffer n is under way */
	struct rbx_unheard unheard; /* evictions */
	int answering; /* receive whose message is being handled; -1: none */
	uint64_t asked_ns[RBX_CONTROL_RECEIVES_MAX]; /* when its message was found */
	bool client_is_up; /* it has spoken since WELCOME, and may be spoken to */
	bool resumes;
	uint64_t resume_session_id;
	uint64_t resume_last_epoch; /* of what the client knows to be lent */
	struct rbx_transcript transcript;
	struct rbx_late_answer late[RBX_CONTROL_RECEIVES_MAX];
};

RBX_STATIC_ASSERT(RBX_CONTROL_SENDS_MAX <= 32, "sends_busy has a bit for each");

/* ---- connection.c --------------------------------------------------------*/

/* Both take the request. */
void rbx_request_refuse(struct rbx_server *s, struct rbx_conn_request *request,
			uint32_t reason);
void rbx_connection_accept(struct rbx_server *s,
			   struct rbx_conn_request *request,
			   uint64_t named_session_id, uint64_t now_ns);
void rbx_connection_completed(struct rbx_server *s, const struct rbx_wc *wc,
			      uint64_t now_ns);
/* Answers the message that is being handled, once: with a message, or with a
 * refusal after which the connection lives on. */
void rbx_connection_answer(struct rbx_server *s,
			   struct rbx_connection *connection,
			   const struct rbx_wire_message *message);
void rbx_connection_answer_error(struct rbx_server *s,
				 struct rbx_connection *connection,
				 uint64_t request_id, uint32_t reason);
/* The message that is being handled keeps its buffers, for an answer by
 * rbx_connection_send_late(). Returns which. */
uint32_t rbx_connection_answer_later(struct rbx_connection *connection);
void rbx_connection_send_late(struct rbx_server *s,
			      struct rbx_connection *connection, uint32_t slot,
			      const struct rbx_wire_message *message);
/* Says something unasked. False: too much is under way; try again later. */
bool rbx_connection_tell(struct rbx_server *s,
			 struct rbx_connection *connection,
			 const struct rbx_wire_message *message);
/* Tells the reason, then ends the connection. In place of an answer, or at any
 * time before the client is known. */
void rbx_connection_refuse(struct rbx_server *s,
			   struct rbx_connection *connection,
			   uint64_t request_id, uint32_t reason);
void rbx_connection_end(struct rbx_server *s,
			struct rbx_connection *connection);
void rbx_connection_set_state(struct rbx_server *s,
			      struct rbx_connection *connection,
			      enum rbx_connection_state state,
			      uint64_t deadline_ns);

/* ---- half_open.c; the lists in tables.c ------------------------------------*/

/* It is half open from now on; it is no longer. */
void rbx_half_open_join(struct rbx_server *s,
			struct rbx_connection *connection);
void rbx_half_open_part(struct rbx_server *s,
			struct rbx_connection *connection);
/* It is CLOSING, and its session has ended: it stays as one of an untrusted client. */
void rbx_half_open_orphan(struct rbx_server *s,
			  struct rbx_connection *connection);
/* May another one come? It may cost one that is there its place. */
bool rbx_half_open_admit(struct rbx_server *s, const char *peer_name,
			 uint64_t named_session_id, uint64_t now_ns);
/* Ends handshakes and farewells that take too long. */
void rbx_half_open_tick(struct rbx_server *s, uint64_t now_ns);
void rbx_half_open_end_all(struct rbx_server *s);

/* ---- borrowing.c ---------------------------------------------------------*/

/* Nobody is there any more to hear them. */
void rbx_late_answers_forget(struct rbx_server *s,
			     struct rbx_connection *connection);

#endif
