/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_state.h - the structure of a session.
 *
 * core/borrower.h knows the protocol. Here are the calls, the waiting and the callbacks;
 * connection.h says what the host provides.
 *
 *	session.c            opens, resumes, closes
 *	session_handshake.c  connects, for open and resume
 *	session_ask.c        asks, and taking the session
 *	session_events.c     the events of a connection
 *	session_news.c       news for the owner, and the clock
 *	session_messages.c   user messages
 *
 * A session does one thing at a time: it is connected, resumed or closed, or an ask is under
 * way. A thread takes the session before and releases it afterwards. An ask needs no thread
 * meanwhile: the thread that brings its answer, loses the connection, or checks the clock
 * puts the result into the struct rbx_ask and releases the session. So one thread can ask
 * several servers, and resuming one session does not wait for the answers of others.
 *
 * One thread at a time tells the news, the teller. A thread that brings a message or checks
 * the clock becomes the teller first, and remains so until all news is told. The thread that
 * has taken the session may wait for the teller, but not the other way round: a callback must
 * not call anything that waits. So the teller is remembered, and such calls of it return
 * -EDEADLK.
 *
 * A lost connection remains until the thread that resumes, gives up or closes the session
 * frees it, because that blocks.
 */
#ifndef RBX_CLIENT_SESSION_STATE_H
#define RBX_CLIENT_SESSION_STATE_H

#include "client/connection.h"
#include "client/session.h"
#include "core/borrower.h"

#define RBX_NS_PER_MS 1000000ull

struct rbx_session {
	struct rbx_sessions *sessions;
	struct rbx_session_events events;
	struct rbx_clock *clock;

	/* For the thread that has taken the session, as is what think() and attach() of
	 * core/borrower.h use. */
	struct rbx_address address; /* the host keeps here what it was resolved to */
	uint64_t until_ns; /* when all of it has to end; 0: an answer's time */

	struct rbx_monitor monitor; /* guards all below */
	bool is_taken;
	struct rbx_ask *asks_first; /* asks that wait until the session can be taken */
	bool asks_are_held; /* no ask is sent to the server */
	uint32_t callers_count; /* in calls that wait, until they use the session no more */
	struct rbx_borrower borrower;
	uint32_t generation; /* of the connection, even while it is being made; 0: none */
	struct rbx_connection *connection; /* or NULL */
	const char *broken_why; /* why it broke before it became the session's; or NULL */
	int broken_err;
	char away[RBX_SESSION_WHY_BYTES]; /* why there is no connection */
	struct rbx_session_listener listener;
	uintptr_t teller; /* rbx_thread_self() of the teller; 0: none. Atomic */
};

/* For so long the server may be silent. */
static inline uint32_t rbx_session_silence_ms(const struct rbx_session *session)
{
	return RBX_LOAD_RELAXED(&session->sessions->silence_ms);
}

/* ---- session_ask.c ---------------------------------------------------------------*/

void rbx_session_take(struct rbx_session *session);
void rbx_session_release(struct rbx_session *session);
/* The same with the monitor entered. */
void rbx_session_take_entered(struct rbx_session *session);
void rbx_session_release_entered(struct rbx_session *session);

/* Ends a call that may wait and has raised callers_count. After this it uses nothing of the
 * session but the monitor, to leave it. Entered. */
void rbx_session_caller_leaves(struct rbx_session *session);

/* -EDEADLK for the teller, else 0. Called before a call that waits. */
int rbx_session_guard(const struct rbx_session *session);
/* Reports by rbx_error() a call that ended so. Entered. */
int rbx_session_error(struct rbx_session *session, int err, bool is_refused,
		      const char *why);
/* The same for the borrower's call, which has ended with err. Entered. */
int rbx_session_call_error(struct rbx_session *session, int err);
/* After an event: the ask that is out may be over. Entered. */
void rbx_session_ask_end(struct rbx_session *session);
/* All asks are over with -ECANCELED. Entered. */
void rbx_session_asks_cancel(struct rbx_session *session);
/* The session may be free for the next ask, or have no server to ask. Entered. */
void rbx_session_ask_next(struct rbx_session *session);
/* Waits until the borrower's call is over. Entered. */
void rbx_session_wait_call(struct rbx_session *session);

/* ---- session_events.c --------------------------------------------------------------*/

/* After an event: sends what the borrower has to send, and wakes threads that wait. Entered. */
void rbx_session_pump(struct rbx_session *session);
/* Ends the connection, if there is one, without BYE. The session is taken. */
void rbx_session_disconnect(struct rbx_session *session);

/* ---- session_handshake.c --------------------------------------------------------------*/

/* Opens or, if the session is known already, resumes it, by until_ns. The session is taken. */
int rbx_session_handshake(struct rbx_session *session);

/* ---- session_news.c. Entered -----------------------------------------------------------*/

/* Becomes the teller; tells all news without the monitor, and ceases to be the teller. */
void rbx_session_tell_begin(struct rbx_session *session);
void rbx_session_tell_end(struct rbx_session *session);

#endif
