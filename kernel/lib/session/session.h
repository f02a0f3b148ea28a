/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.h - the client's control connection to one memory server.
 *
 *	open -> [map, unmap, connect_qp]* -> close
 *	          |                    ^
 *	          +-> lost() -> resume-+   0: all grants are good, new queue pairs
 *	                          |        -ESTALE: everything is gone, close
 *	                          +------- other: try again, until you give up
 *
 * A session outlives its connections. lost() is told once for each connection that was
 * lost; from then on no data may be sent until resume() has succeeded. What is told
 * comes one at a time, and must not block: from there map, unmap, check, connect_qp and
 * letter_send are refused with -EDEADLK. Every other call blocks, and calls wait for
 * each other. What is said on the wire is core/borrower.h's.
 */
#ifndef RBX_KERNEL_SESSION_H
#define RBX_KERNEL_SESSION_H

#include <linux/inet.h>
#include <linux/socket.h>
#include <rdma/ib_verbs.h>

#include "core/ask.h"
#include "core/eviction.h"
#include "core/loan.h"

struct rbx_client;
struct rbx_ib_conn;
struct rbx_peer;
struct rbx_session;

/* A name: "[address]:port". */
#define RBX_SESSION_NAME_BYTES (INET6_ADDRSTRLEN + 10)

struct rbx_session_events {
	void (*lost)(void *user, const char *reason);
	void (*evict)(void *user, const struct rbx_eviction *eviction);
	void *user;
};

/* For the module: what all sessions share. */
int rbx_sessions_init(void);
void rbx_sessions_exit(void);

/* 0; -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT nobody there; -EACCES the secret was
 * refused, or the server could not prove that it has it; -EXDEV it is reached
 * through another device; -EBUSY it rejects for now; -EPROTO, -EPROTONOSUPPORT,
 * -ENOMEM. */
int rbx_session_open(struct rbx_client *client,
		     struct sockaddr_storage *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **session);
/* Says goodbye: the server takes back what is still borrowed. */
void rbx_session_close(struct rbx_session *session);
/* One attempt at a new control connection, not for longer than until then. See the page
 * above. */
int rbx_session_resume(struct rbx_session *session, uint64_t until_ns);
/* The owner will not resume any more. */
void rbx_session_give_up(struct rbx_session *session);

/* Makes and connects one data queue pair; after a failure, too, the caller
 * destroys the connection. -ENOTCONN while the session is lost. Not for longer than
 * until then; 0: for as long as it takes. */
int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn),
			   uint64_t until_ns);

/* Borrows one slab. -ENOSPC, -EDQUOT, -ENOTCONN, -ETIMEDOUT. */
int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan);
/* The same in two: asks, and does not block; then waits for the answer, which has to be
 * taken. The session is free for others as soon as the answer is there. */
void rbx_session_ask(struct rbx_session *session, struct rbx_ask *ask);
int rbx_session_answer(struct rbx_session *session, struct rbx_ask *ask,
		       struct rbx_loan *loan);
/* Gives it back; after 0 its rkey is dead. -ESTALE, -EPERM it is not ours any
 * more; -ENOTCONN, -ETIMEDOUT. */
int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan);
/* 0: the loan is still good. -ESTALE, -EPERM: revoked. */
int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan);

/* Puts a letter of at most RBX_WIRE_LETTER_BYTES_MAX in; any context. -EAGAIN: full;
 * -EHOSTUNREACH: given up. */
int rbx_session_letter_submit(struct rbx_session *session, const void *bytes,
			      size_t length_bytes,
			      void (*done)(int status, void *user), void *user);
/* The same, and waits for its end: not to be called by a handler. */
int rbx_session_letter_send(struct rbx_session *session, const void *bytes,
			    size_t length_bytes);

/* Who hears the letters of the server's program. */
struct rbx_session_listener {
	void (*message)(struct rbx_peer *peer, const void *data, size_t length,
			void *user);
	struct rbx_peer *peer;
	void *user;
};

/* -EBUSY: there is one, or a letter has come that nobody heard. */
int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener);

/* Told by the server when the session was opened. */
uint64_t rbx_session_slab_bytes(const struct rbx_session *session);
/* One number for each start of a server, at whatever address. */
uint64_t rbx_session_incarnation(const struct rbx_session *session);
/* As last told, by heartbeat or grant. Any context. */
uint64_t rbx_session_free_bytes(const struct rbx_session *session);
/* Its last sign of life. Any context. */
uint64_t rbx_session_heard_ns(const struct rbx_session *session);
/* When half of the lease is over, if the server is silent from now on. The same. */
uint64_t rbx_session_lease_half_ns(const struct rbx_session *session);
const char *rbx_session_name(const struct rbx_session *session);
const struct sockaddr_storage *
rbx_session_address(const struct rbx_session *session);

#endif
