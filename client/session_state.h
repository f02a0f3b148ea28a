/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_state.h - what a session is made of.
 *
 * What is said, and what it means, is core/borrower.h's. Here are the calls, the waiting
 * and the callbacks; connection.h says what the host brings.
 *
 *	session.c            opens, resumes, closes
 *	session_handshake.c  connects, for open and resume
 *	session_ask.c        questions, and who has taken the session
 *	session_events.c     what happens to a connection, and what is done then
 *	session_news.c       what is told, and the clock
 *	session_messages.c   messages between the programs on both sides
 *
 * A session does one thing at a time: it is connected, resumed or closed, or a question
 * is asked. Whoever does it takes the session before and releases it after. A question
 * needs no thread meanwhile: what brings its answer, the loss of the connection, or the
 * clock, puts that into the struct rbx_ask and releases the session. So one thread can
 * ask several servers, and who resumes one of them does not wait for the answers of the
 * others.
 *
 * News is told by one thread at a time, the teller: a thread that brings a message or
 * looks at the clock becomes it first, and stays it until all that has happened is told.
 * Who has taken the session may wait for the teller, and not the other way round: what is
 * told may call nothing that waits. So the teller is remembered, and refused (-EDEADLK).
 *
 * A connection that is lost stays until who resumes, gives up or closes the session
 * frees it, as that blocks.
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

	/* Of who has taken the session, as what think() and attach() of core/borrower.h
	 * touch. */
	struct rbx_address address; /* the host notes what it was resolved to */
	uint64_t until_ns; /* when all of it has to end; 0: it has as long as an answer */

	struct rbx_monitor monitor; /* guards all below */
	bool is_taken;
	struct rbx_ask *asks_first; /* that wait until it can be taken */
	bool asks_are_held; /* nobody asks the server anything */
	uint32_t callers_count; /* in calls that wait, until they have done with all this */
	struct rbx_borrower borrower;
	uint32_t generation; /* of the connection, also while it is made; 0: none */
	struct rbx_connection *connection; /* or NULL */
	const char *broken_why; /* it broke before it was the session's; or NULL */
	int broken_err;
	char away[RBX_SESSION_WHY_BYTES]; /* why there is no connection */
	struct rbx_session_listener listener;
	uintptr_t teller; /* rbx_thread_self() of who tells news; 0: nobody. Atomic */
};

/* ---- session_ask.c ---------------------------------------------------------------*/

void rbx_session_take(struct rbx_session *session);
void rbx_session_release(struct rbx_session *session);
/* The same with the monitor entered. */
void rbx_session_take_entered(struct rbx_session *session);
void rbx_session_release_entered(struct rbx_session *session);

/* Of callers_count, which a call has raised that may wait; after this it touches nothing
 * of the session but the monitor, to leave it. Entered. */
void rbx_session_caller_leaves(struct rbx_session *session);

/* -EDEADLK for the teller, else 0. Before a call that waits. */
int rbx_session_guard(const struct rbx_session *session);
/* Tells rbx_error() of a call that ended so. Entered. */
int rbx_session_error(struct rbx_session *session, int err, bool is_refused,
		      const char *why);
/* Of the borrower's call, which has ended with err. Entered. */
int rbx_session_call_error(struct rbx_session *session, int err);
/* After an event: the question that is out may be over. Entered. */
void rbx_session_ask_end(struct rbx_session *session);
/* All questions are over with -ECANCELED. Entered. */
void rbx_session_asks_cancel(struct rbx_session *session);
/* The session may be free for the next question, or have nobody to ask. Entered. */
void rbx_session_ask_next(struct rbx_session *session);
/* Until the borrower's call is over. Entered. */
void rbx_session_wait_call(struct rbx_session *session);

/* ---- session_events.c --------------------------------------------------------------*/

/* After an event: sends what the borrower wants sent, and wakes those who wait.
 * Entered. */
void rbx_session_pump(struct rbx_session *session);
/* Ends the connection, if there is one, without a word. Taken. */
void rbx_session_disconnect(struct rbx_session *session);

/* ---- session_handshake.c --------------------------------------------------------------*/

/* Opens or, if the session is known already, resumes: until until_ns. Taken. */
int rbx_session_handshake(struct rbx_session *session);

/* ---- session_news.c. Entered -----------------------------------------------------------*/

/* Becomes the teller; tells all there is, without the monitor, and is it no more. */
void rbx_session_tell_begin(struct rbx_session *session);
void rbx_session_tell_end(struct rbx_session *session);

#endif
