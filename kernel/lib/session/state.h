/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - what a session is made of.
 *
 * What is said, and what it means, is core/borrower.h's. Here are the connection, the
 * threads and the callbacks:
 *
 *	session.c     the calls of session.h
 *	handshake.c   connects, for open and resume
 *	connection.c  one control connection: posts, receives, ends
 *	news.c        the clock, and what is told
 *	letters.c     what the programs on both sides say to each other
 *
 * A session does one thing at a time: it is connected, resumed or closed, or a question
 * is asked. Whoever does it takes the session before (turn) and releases it after. A
 * question needs no thread meanwhile: a completion or the clock, which bring its answer,
 * the loss of the connection, or that the time is over, put it into the struct rbx_ask
 * and release the session. So one thread can ask several servers, and who resumes one of
 * them does not wait for the answers of the others.
 *
 * Locks, in this order: turn, then lock; or news_lock, then lock. Who has the turn may
 * wait for who holds news_lock, and not the other way round: what is told may call
 * nothing that blocks. So who tells news is remembered, and refused (-EDEADLK).
 */
#ifndef RBX_KERNEL_SESSION_STATE_H
#define RBX_KERNEL_SESSION_STATE_H

#include <linux/mutex.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/borrower.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/context.h"
#include "kernel/lib/session/session.h"

struct rbx_connection;

struct rbx_session {
	struct rbx_client *client;
	struct rbx_context *ctx; /* the client's */
	struct sockaddr_storage address;
	char name[RBX_SESSION_NAME_BYTES]; /* the address, for the log */
	struct rbx_session_events events;
	struct delayed_work tick; /* looks at the clock, tells news */

	/* Of who has taken the session: a semaphore, as an answer that is there releases
	 * it, in whatever context. Guards what think() and attach() of core/borrower.h
	 * touch, and the next. */
	struct semaphore turn;
	uint64_t until_ns; /* when all steps of a repair end; 0: there is none */

	/* Held by who brings a message or looks at the clock, until all news of that is
	 * told: so there is one of them at a time. */
	struct mutex news_lock;
	struct task_struct *teller; /* atomic: who tells news now; or NULL */

	spinlock_t lock; /* guards all below; taken with interrupts off */
	wait_queue_head_t changed; /* an answer, a loss, room for a letter */
	struct rbx_connection *connection; /* and turn; or NULL */
	struct rbx_borrower borrower;
	struct rbx_session_listener listener;
};

/* How long a step may wait. With the turn. */
uint32_t rbx_session_left_ms(const struct rbx_session *session);

/* connection.c */

/* Connects; receives are posted. It is the session's once it is begun. With
 * the turn. */
int rbx_connection_make(struct rbx_session *session,
			struct rbx_connection **connection);
/* Begins the handshake on it. */
void rbx_connection_begin(struct rbx_connection *connection,
			  const uint8_t nonce[RBX_WIRE_NONCE_BYTES],
			  uint64_t deadline_ns);
/* Ends the connection, if there is one, without a word. With the turn. */
void rbx_session_disconnect(struct rbx_session *session);
/* After an event: sends what the borrower wants sent, and wakes those who wait. Its
 * lock is held. A connection that is lost stays until who resumes or closes the session
 * ends it, as that blocks. */
void rbx_session_pump_locked(struct rbx_session *session);

/* news.c */

/* Does some work of a session in a while, also while memory is short. Any context. */
void rbx_session_queue(struct delayed_work *work, unsigned int delay_ms);
/* The clock is to be looked at soon, or there is news. Any context. */
void rbx_session_tick_soon(struct rbx_session *session);
void rbx_session_tick(struct work_struct *work);
/* Tells all news there is. news_lock is held. */
void rbx_session_tell_news(struct rbx_session *session);

/* Whether a callback calls, for which a wait would never end: neither what it waits for
 * nor the clock could be told. */
static inline bool rbx_session_is_telling(const struct rbx_session *session)
{
	return READ_ONCE(session->teller) == current;
}

/* handshake.c. With the turn. */

/* Opens or, if the session is known already, resumes: until until_ns. */
int rbx_session_handshake(struct rbx_session *session);
/* Connects with what attach says; turns a refusal into its errno. */
int rbx_session_attach(struct rbx_session *session, struct rbx_ib_conn *conn,
		       const struct rbx_wire_attach *attach);

/* session.c; with the lock held: until the call under way is over. */
void rbx_session_wait_call_locked(struct rbx_session *session);
/* Tells the log why a call failed. */
void rbx_session_log(const struct rbx_session *session, int err);

#endif
