/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.h - the client's control connection to one memory server.
 *
 * A session is who we are to a server: opened once with a proof of the shared
 * secret in both directions, it borrows and returns slabs and lends its name to
 * the data queue pairs. It is kept alive by heartbeats. It outlives its
 * connection: after lost() the owner calls rbx_session_resume(), which makes a
 * new control connection for the same session; the slabs are still ours, the
 * data queue pairs have ended at the server and are connected anew.
 *
 *	open -> [map, unmap, connect_qp]* -> close
 *	          |                    ^
 *	          +-> lost() -> resume-+   0: all loans are good, new queue pairs
 *	                          |        -ESTALE: everything is gone, close
 *	                          +------- other: try again, until you give up
 *
 * When to count a server as lost (wire/PROTOCOL.md, "The lease"): its control
 * connection has ended; or it has not answered for silence_ms; or nothing
 * we sent in the last half of the lease has been answered. In each case lost()
 * is called once, and from then on no data may be sent to the server until
 * resume() has succeeded.
 *
 * Threads: what is told comes one at a time, and must not block. Calls that wait, made
 * from there, would wait for themselves: they are refused with -EDEADLK. Every other
 * thread may block in them; they wait for each other. At most one close(), and nothing
 * after it. Failures are told by rbx_error().
 */
#ifndef RBX_CLIENT_SESSION_H
#define RBX_CLIENT_SESSION_H

#include "client/host.h"
#include "core/ask.h"
#include "core/eviction.h"
#include "core/loan.h"
#include "wire/proof.h"

struct rbx_peer;
struct rbx_session;

/* What the sessions of one owner have in common. The host keeps it, inside a struct of
 * its own: a device, and a secret. */
struct rbx_sessions {
	struct rbx_root secret; /* borrowed; of no bytes: there is none */
	/* Until a silent server counts as lost: half of the peer timeout. The rest is
	 * for resuming (core/peer_state.h). */
	uint32_t silence_ms;
	uint32_t last_generation; /* atomic: of the connections of all of them */
};

struct rbx_session_events {
	/* Once for each connection that is lost; reason is one line, valid
	 * during the call. */
	void (*lost)(void *user, const char *reason);
	/* The server wants a loan back. May be told more than once for one. */
	void (*evict)(void *user, const struct rbx_eviction *eviction);
	void *user;
};

/*
 * Connects and authenticates both ways. Copies the address. Blocks for at most twice
 * silence_ms. 0; -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT nobody there; -EACCES the
 * secret was refused, or the server could not prove that it has it; -EBUSY too many
 * clients, or it rejects for now, after trying again; -EXDEV it is reached through
 * another device; -EINTR the host would not wait any longer; -EPROTO, -EPROTONOSUPPORT
 * it speaks something else; -ENOMEM.
 */
int rbx_session_open(struct rbx_sessions *sessions,
		     const struct rbx_address *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **session);

/*
 * Says goodbye: the server takes back what is still borrowed and ends the data
 * queue pairs (which their owner destroys). No callback runs for the session
 * once this has returned. Others may still be in calls that wait: they end, and it
 * waits until they have left. Blocks; for the server's answer silence_ms at most, but between
 * one and five seconds.
 */
void rbx_session_close(struct rbx_session *session);

/*
 * Makes one attempt at a new control connection: after lost(), or at any time
 * if a data queue pair has failed; a connection that still stands is given
 * up first, without lost(). 0: the server has ended all data queue pairs of
 * before, and every loan is as it was (rbx_session_check() asks for one); a slab
 * that was lent in an answer that never came has gone back. What was asked of the server
 * has ended with -ENOTCONN.
 * -ESTALE: it was restarted or the lease ran out: all loans are gone.
 * -ECANCELED: it is being closed.
 * -ECONNREFUSED: nobody listens there, so it has ended.
 * -EHOSTUNREACH, -ETIMEDOUT, -EBUSY: nobody answers, or not now. Else as
 * rbx_session_open(). After a failure the session is lost and lost() is not
 * called again. Blocks, but not beyond until_ns.
 *
 * Before it sends anything again the owner destroys its own ends of the old
 * queue pairs: if both are on one host the soft fabric carries out a request
 * in the process that posted it, and no server can hold that back.
 */
int rbx_session_resume(struct rbx_session *session, uint64_t until_ns);
/* From here on who wants to ask the server something waits, if it is there, and a close
 * waits as well: while its owner resumes it and connects the data queue pairs, so that no
 * answer that takes long holds these up. And they go on. */
void rbx_session_hold_asks(struct rbx_session *session);
void rbx_session_let_asks_go(struct rbx_session *session);

/* The owner will not resume any more: all messages end with -EHOSTUNREACH, and the
 * connection ends, so that the server takes back what it has lent. Blocks. */
void rbx_session_give_up(struct rbx_session *session);

/* ---- Loans ---------------------------------------------------------------------*/

/* Borrows one slab; if a resume comes in between, asks anew. -ENOSPC, -EDQUOT, -ENOTCONN,
 * -ETIMEDOUT. Blocks. */
int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan);
/* The same and the next two for who does not wait: the ask says what (core/ask.h), and
 * stays until it is over. The answer: -EAGAIN: it is not. The session is free for others
 * as soon as it is. Does not block. */
void rbx_session_ask(struct rbx_session *session, struct rbx_ask *ask);
int rbx_session_answer(struct rbx_session *session, struct rbx_ask *ask,
		       struct rbx_loan *loan);
/* Gives it back; when it returns 0 its rkey is dead. -ESTALE, -EPERM: it is not ours
 * any more; -ENOTCONN, -ETIMEDOUT. Blocks. */
int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan);
/* 0: the loan is still good. -ESTALE, -EPERM: revoked. Blocks. */
int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan);

/* ---- Messages: what the programs on both sides say to each other -----------*/

/* Copies a message of at most RBX_WIRE_USER_MESSAGE_BYTES_MAX; any context. done()
 * is told its end. -EAGAIN: full; -EHOSTUNREACH: given up. */
int rbx_session_message_submit(struct rbx_session *session, const void *bytes,
			       size_t length_bytes,
			       void (*done)(int status, void *user),
			       void *user);
/* The same, and waits for its end. */
int rbx_session_message_send(struct rbx_session *session, const void *bytes,
			     size_t length_bytes);

/* Who hears the messages of the server's program. */
struct rbx_session_listener {
	void (*message)(struct rbx_peer *peer, const void *data, size_t length,
			void *user);
	struct rbx_peer *peer;
	void *user;
	uint64_t *heard_count; /* a counter of theirs, or NULL */
};

/* -EBUSY: there is one, or a message has come that nobody heard. */
int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener);

/* ---- What is known of the server: any context ------------------------------------*/

/* Told by the server when the session was opened. */
uint64_t rbx_session_slab_bytes(const struct rbx_session *session);
/* One number for each start of a server, at whatever address. */
uint64_t rbx_session_incarnation(const struct rbx_session *session);
/* How long the server keeps what it has lent to a client that is silent. */
uint64_t rbx_session_lease_ns(const struct rbx_session *session);
/* When half of the lease is over, if the server is silent from now on. */
uint64_t rbx_session_lease_half_ns(const struct rbx_session *session);
/* As last told, by heartbeat or loan. */
uint64_t rbx_session_free_bytes(const struct rbx_session *session);
/* Its last sign of life. */
uint64_t rbx_session_heard_ns(const struct rbx_session *session);
/* The text of its address. */
const char *rbx_session_name(const struct rbx_session *session);

#endif
