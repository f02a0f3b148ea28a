/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - what a session and the set of sessions are made of.
 *
 * What is said, and what it means, is core/borrower.h's. Here are the connection, the
 * threads and the callbacks:
 *
 *	session.c     the calls of session.h
 *	handshake.c   connects, for open and resume
 *	connection.c  one control connection: posts, receives, ends
 *	set.c         the control thread: completions and timers
 *	news.c        what is told
 *	letters.c     what the programs on both sides say to each other
 *	query.c       rbx_server_query()
 *
 * A session does one thing at a time: it is connected, resumed or closed, or a question
 * is asked. Whoever does it takes the session before and releases it after. A question
 * needs no thread meanwhile: the control thread, which brings the answer, the loss of
 * the connection, or that the time is over, puts it into the struct rbx_ask and releases
 * the session. So one thread can ask several servers, and who resumes one of them does
 * not wait for the answers of the others.
 */
#ifndef RBX_LIB_SESSION_STATE_H
#define RBX_LIB_SESSION_STATE_H

#include <pthread.h>

#include "core/borrower.h"
#include "lib/secret.h"
#include "lib/session/session.h"

/* One for each peer, and some for queries. */
#define RBX_SESSIONS_MAX 72u

#define RBX_SESSION_SLOTS (RBX_CLIENT_RECEIVES + RBX_BORROWER_SLOTS)
#define RBX_SESSION_CQ_DEPTH (RBX_SESSIONS_MAX * RBX_SESSION_SLOTS)

/* Until all of it has been taken. */
#define RBX_SESSION_POLLS_PER_TURN (RBX_SESSION_CQ_DEPTH / RBX_POLL_BATCH + 1)

struct rbx_session {
	struct rbx_session_set *set;
	uint32_t index; /* in the set */
	char address[RBX_NAME_MAX];
	struct rbx_session_events events;

	/* What the address was resolved to when it was opened, by which it is
	 * connected to from then on: a repair asks nobody for a name. It belongs to
	 * who has taken the session, as what think() and attach() of core/borrower.h
	 * touch. */
	char resolved[RBX_NAME_MAX];

	/* All below is guarded by the set's lock. */
	pthread_cond_t changed; /* an answer, a loss, a release, a callback's end */
	bool is_taken;
	struct rbx_borrower borrower;
	struct rbx_qp *qp; /* NULL: no connection */
	uint32_t generation; /* of the connection, in wr_id */
	char away[RBX_ERROR_TEXT_MAX]; /* why there is no connection */
	struct rbx_session_listener listener;
	bool callback_running;
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
/* Does what the borrower wants done after an event: sends, ends a connection that is
 * lost, wakes those who wait and the control thread. */
void rbx_session_pump(struct rbx_session *session);
/* Handles a completion. May give up the lock for a callback. */
void rbx_session_completed(struct rbx_session_set *set,
			   const struct rbx_wc *wc);

/* news.c; with the set's lock held. Gives it up for callbacks; the session stays. */
void rbx_session_tell_news(struct rbx_session *session);

/* handshake.c; of a session that was taken. Both set rbx_last_error(). */

/* Connects a queue pair with what attach says. */
int rbx_session_connect(struct rbx_session *session,
			const struct rbx_qp_init *init,
			const struct rbx_wire_attach *attach,
			uint32_t timeout_ms, struct rbx_qp **qp);
/* Opens or, if the session is known already, resumes: not for longer than until then. */
int rbx_session_handshake(struct rbx_session *session, uint64_t until_ns);

/* session.c; with the set's lock held: until the call under way is over. */
void rbx_session_wait_call(struct rbx_session *session);
/* The same: if the call that was asked is over, its answer is there. */
void rbx_session_ask_end(struct rbx_session *session);
/* How long a step may wait that has to end by then; 0: no longer than any answer. */
uint32_t rbx_session_left_ms(const struct rbx_session *session, uint64_t until_ns);
/* What the borrower said of a call that ended so; sets rbx_last_error(). With the set's
 * lock held. */
int rbx_session_error(struct rbx_session *session, int err);

#endif
