/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.h - a control connection of the server: its states, its late answers, and
 * which untrusted clients may have one (half_open.c).
 *
 * All functions are called with the server's lock held.
 */
#ifndef RBX_SERVER_CONNECTION_H
#define RBX_SERVER_CONNECTION_H

#include "core/unheard.h"
#include "fabric/fabric.h"
#include "server/bounds.h"
#include "wire/seal.h"

struct rbx_client;
struct rbx_server;
struct rbx_slab;

enum rbx_connection_state {
	RBX_CONNECTION_FREE, /* no connection */
	RBX_CONNECTION_NEW, /* of an untrusted client; waits for HELLO */
	RBX_CONNECTION_CHALLENGED, /* of an untrusted client; waits for AUTH */
	RBX_CONNECTION_OPEN, /* belongs to a client */
	RBX_CONNECTION_CLOSING, /* ends when the last answer has arrived */
};

enum rbx_late_kind {
	RBX_LATE_NONE,
	RBX_LATE_LOAN, /* SLAB_MAP */
	RBX_LATE_UNMAPPED, /* SLAB_UNMAP */
};

/* A request that is answered later, when the memory of its slab is ready (borrowing.c). */
struct rbx_late_answer {
	enum rbx_late_kind kind;
	struct rbx_connection *connection;
	uint32_t slot; /* of the receive with the request */
	uint64_t request_id;
	uint64_t since_ns; /* LOAN: when the request came */
	uint64_t epoch; /* UNMAPPED */
	struct rbx_wire_map map; /* LOAN: for a slab of a named volume */
	uint64_t holder_id; /* LOAN: who it is for */
	struct rbx_slab *slab; /* NULL: it waits for a slab */
	struct rbx_late_answer *next; /* in the list of those that wait */
};

/* Connections of one kind. */
struct rbx_connection_list {
	struct rbx_connection *first;
	uint32_t count;
};

/* A control connection. */
struct rbx_connection {
	enum rbx_connection_state state;
	/* In a list: of half-open ones (NEW, CHALLENGED, CLOSING), or of free ones
	 * (FREE). */
	struct rbx_connection *next, *prev;
	uint32_t generation;
	struct rbx_qp *qp;
	struct rbx_client *client; /* if OPEN; else NULL */
	uint64_t arrived_ns;
	/* The session that it came to resume or belongs to; 0: of an untrusted client. */
	uint64_t session_id;
	uint64_t deadline_ns; /* NEW, CHALLENGED, CLOSING: it is ended then */
	uint64_t last_request_id;
	uint32_t sends_busy; /* bit n: send buffer n is in use */
	struct rbx_unheard unheard; /* evictions that the client may not have read yet */
	int answering; /* the receive whose message is being handled; -1: none */
	uint64_t asked_ns[RBX_CONTROL_RECEIVES_MAX]; /* when its message was found */
	bool client_is_up; /* it has sent a message since WELCOME, so we may send */
	bool resumes;
	char credential[RBX_CREDENTIAL_BYTES]; /* as HELLO names it */
	uint64_t resume_session_id;
	uint64_t resume_last_epoch; /* the last loan that the client knows of */
	struct rbx_transcript transcript;
	struct rbx_seals seals;
	struct rbx_late_answer late[RBX_CONTROL_RECEIVES_MAX];
};

RBX_STATIC_ASSERT(RBX_CONTROL_SENDS_MAX <= 32, "sends_busy has a bit for each");

/* ---- connection.c --------------------------------------------------------*/

/* Both take the request over. */
void rbx_request_refuse(struct rbx_server *s, struct rbx_conn_request *request,
			uint32_t reason);
void rbx_connection_accept(struct rbx_server *s,
			   struct rbx_conn_request *request,
			   uint64_t named_session_id, uint64_t now_ns);
void rbx_connection_completed(struct rbx_server *s, const struct rbx_wc *wc,
			      uint64_t now_ns);
/* Answers the message that is being handled, once: with a message, or with a refusal that
 * leaves the connection open. */
void rbx_connection_answer(struct rbx_server *s,
			   struct rbx_connection *connection,
			   const struct rbx_wire_message *message);
void rbx_connection_answer_error(struct rbx_server *s,
				 struct rbx_connection *connection,
				 uint64_t request_id, uint32_t reason);
/* The message that is being handled keeps its buffers until it is answered by
 * rbx_connection_send_late(). Returns its slot. */
uint32_t rbx_connection_answer_later(struct rbx_connection *connection);
void rbx_connection_send_late(struct rbx_server *s,
			      struct rbx_connection *connection, uint32_t slot,
			      const struct rbx_wire_message *message);
/* Sends a message that is no answer. False: too many are in flight; try again later. */
bool rbx_connection_tell(struct rbx_server *s,
			 struct rbx_connection *connection,
			 const struct rbx_wire_message *message);
/* Sends the reason, then ends the connection. Either in place of an answer, or at any
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

/* The connection becomes half open; it ceases to be half open. */
void rbx_half_open_join(struct rbx_server *s,
			struct rbx_connection *connection);
void rbx_half_open_part(struct rbx_server *s,
			struct rbx_connection *connection);
/* It is CLOSING and its session has ended. It stays as a connection of an untrusted
 * client. */
void rbx_half_open_orphan(struct rbx_server *s,
			  struct rbx_connection *connection);
/* Whether a new connection may come. It may take the slot of one that is there. */
bool rbx_half_open_admit(struct rbx_server *s, const char *peer_name,
			 uint64_t named_session_id, uint64_t now_ns);
/* Ends handshakes and closing connections that take too long. */
void rbx_half_open_tick(struct rbx_server *s, uint64_t now_ns);
void rbx_half_open_end_all(struct rbx_server *s);

/* ---- borrowing.c ---------------------------------------------------------*/

/* Forgets them, as the connection has ended. */
void rbx_late_answers_forget(struct rbx_server *s,
			     struct rbx_connection *connection);

#endif
