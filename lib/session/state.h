/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - what a session and the set of sessions are made of.
 *
 *	session.c             the calls of session.h
 *	handshake.c   connects and authenticates, for open and resume
 *	connection.c  one control connection: sends, receives, its loss
 *	set.c         the control thread: completions, timers, callbacks
 *	letters.c     what the programs on both sides say to each other
 *	query.c       rbx_server_query()
 *
 * A call posts its message under the set's lock and waits on the session's
 * condition until the control thread has put the answer there, or the loss of
 * the connection. One call of a session is under way at a time; heartbeats and
 * letters go beside it.
 */
#ifndef RBX_LIB_SESSION_STATE_H
#define RBX_LIB_SESSION_STATE_H

#include <pthread.h>

#include "core/lease.h"
#include "core/mailbox.h"
#include "lib/secret.h"
#include "lib/session/session.h"
#include "wire/message.h"

/* One for each peer, and some for queries. */
#define RBX_SESSIONS_MAX (RBX_PEERS_MAX + 8u)

/* Each kind of message has a send buffer of its own, letters have several. */
enum rbx_session_send {
	RBX_SESSION_SEND_CALL, /* what a blocking call asks */
	RBX_SESSION_SEND_HEARTBEAT,
	RBX_SESSION_SEND_BYE,
	RBX_SESSION_SEND_RECEIPT, /* LETTER_TAKEN, not answered */
	RBX_SESSION_SEND_LETTER, /* the first of them, by sequence */
	RBX_SESSION_SENDS = RBX_SESSION_SEND_LETTER + RBX_WIRE_LETTERS_MAX,
};

/*
 * Messages that a server may send before we have handled any: 8 that nobody
 * asked for and 4 letters that it knows to have arrived, and answers to a call,
 * a heartbeat and 4 letters (wire/PROTOCOL.md, "Connections").
 */
#define RBX_SESSION_RECEIVES 20u
RBX_STATIC_ASSERT(RBX_SESSION_RECEIVES >=
			  8 + RBX_WIRE_LETTERS_MAX + 2 + RBX_WIRE_LETTERS_MAX,
		  "a receive for each message");

#define RBX_SESSION_CQ_DEPTH \
	(RBX_SESSIONS_MAX * (RBX_SESSION_RECEIVES + RBX_SESSION_SENDS))

/* Until all of it has been taken. */
#define RBX_SESSION_POLLS_PER_TURN (RBX_SESSION_CQ_DEPTH / RBX_POLL_BATCH + 1)

enum rbx_session_status {
	RBX_SESSION_DOWN, /* no connection: before open, or lost */
	RBX_SESSION_HANDSHAKE, /* connected, not yet known to each other */
	RBX_SESSION_UP, /* heartbeats run */
};

struct rbx_session {
	struct rbx_session_set *set;
	uint32_t index; /* in the set */
	char address[RBX_NAME_MAX];
	struct rbx_session_events events;

	/* Held by a blocking call; taken before the set's lock. Guards the
	 * three below. */
	pthread_mutex_t call_lock;
	uint64_t last_epoch; /* of the last slab that we were granted */
	uint64_t attach_serial; /* of the last data queue pair */
	uint32_t answer_ms; /* how long a call waits for one */

	/* All below is guarded by the set's lock. */
	pthread_cond_t changed; /* an answer, a loss, the end of a callback */
	enum rbx_session_status status;
	struct rbx_qp *qp;
	uint32_t generation; /* of the connection, in wr_id */
	uint32_t sends_busy; /* bits of enum rbx_session_send */
	uint64_t last_request_id;

	uint64_t call_id; /* request id of the call under way; 0: none */
	uint64_t call_sent_ns;
	bool call_answered;
	struct rbx_wire_message answer;

	uint64_t heartbeat_id; /* of the last one */
	struct rbx_lease lease; /* of a session that is up */

	struct rbx_mailbox mailbox;
	struct rbx_session_listener listener;
	bool receipt_owed; /* LETTER_TAKEN is to be sent */
	int letters_status; /* not 0: all letters end with it */

	bool lost_untold; /* lost() is to be called */
	bool closing; /* no callback any more */
	bool callback_running;
	char lost_reason[RBX_ERROR_TEXT_MAX];

	struct rbx_key session_key;
	struct rbx_key connection_key;
	struct rbx_wire_welcome welcome; /* of the first handshake */
	uint64_t free_bytes; /* as last told; read without the lock */
};

struct rbx_session_set {
	struct rbx_session_set_options options;
	const struct rbx_fabric_ops *ops;
	struct rbx_cq *cq;
	uint8_t *buffers; /* of all sessions, by index */
	size_t buffers_bytes;
	struct rbx_mr *buffers_mr;
	int wake_fd; /* eventfd: the control thread shall look */
	pthread_t thread;

	pthread_mutex_t lock; /* guards all below, all posting and polling */
	bool stopping;
	uint32_t last_generation;
	struct rbx_session *sessions[RBX_SESSIONS_MAX];
};

void rbx_session_set_wake(struct rbx_session_set *set);

/* connection.c; with the set's lock held. */

/* Takes a connected queue pair and posts the receives. */
int rbx_session_connection_start(struct rbx_session *session,
				 struct rbx_qp *qp);
/* Ends the connection, without a word to anybody. */
void rbx_session_connection_end(struct rbx_session *session);
/* The connection is of no use: ends it, wakes a call, has lost() called. */
void rbx_session_lose(struct rbx_session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Gives the message a request id and sends it. */
void rbx_session_send(struct rbx_session *session, enum rbx_session_send slot,
		      struct rbx_wire_message *message);
/* Handles a completion. May give up the lock for a callback. */
void rbx_session_completed(struct rbx_session_set *set,
			   const struct rbx_wc *wc);
/* Calls back, without the lock; not for one that closes. */
void rbx_session_tell_lost(struct rbx_session *session);
/* Give up the lock for a callback and take it again; the session stays. */
void rbx_session_callback_begin(struct rbx_session *session);
void rbx_session_callback_end(struct rbx_session *session);

/* letters.c; with the set's lock held. */

/* Sends what waits and may be sent now. */
void rbx_session_letters_send(struct rbx_session *session);
/* Both may give up the lock for a callback. */
void rbx_session_letter_received(struct rbx_session *session,
				 const struct rbx_wire_letter *letter);
void rbx_session_letter_taken(struct rbx_session *session,
			      const struct rbx_wire_letter_taken *taken);
/* No letter is sent any more: has the control thread end all with the status,
 * unless there is one already. */
void rbx_session_letters_stop(struct rbx_session *session, int status);
/* Ends them. Gives up the lock for the callbacks. */
void rbx_session_letters_end(struct rbx_session *session);

/*
 * Sends a message and waits for its answer, which is of the type expected.
 * With call_lock held, without the set's lock. 0; -ENOTCONN; -ETIMEDOUT, and
 * the connection is lost; what an ERROR says; -EPROTO for any other answer.
 */
int rbx_session_call(struct rbx_session *session,
		     struct rbx_wire_message *message, uint16_t expected,
		     struct rbx_wire_message *answer);

/* handshake.c; with call_lock held. Connects a queue pair with what
 * attach says; sets rbx_last_error(). */
int rbx_session_connect(struct rbx_session *session,
			const struct rbx_qp_init *init,
			const struct rbx_wire_attach *attach,
			struct rbx_qp **qp);
/* Opens or, where the session is known already, resumes. */
int rbx_session_handshake(struct rbx_session *session, bool resume);

#endif
