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
 *	          +-> lost() -> resume-+   0: all grants are good, new queue pairs
 *	                          |        -ESTALE: everything is gone, close
 *	                          +------- other: try again, until you give up
 *
 * When to count a server as lost (wire/PROTOCOL.md, "The lease"): its control
 * connection has ended; or it has not answered for peer_timeout_ms; or nothing
 * we sent in the last half of the lease has been answered. In each case lost()
 * is called once, and from then on no data may be sent to the server until
 * resume() has succeeded.
 *
 * Threads: the set has one control thread, which calls lost() and evict(); they
 * must not block, so they may call none of the blocking calls below. Blocking
 * calls come from any other thread, at most one close() and nothing after it.
 * Failures set rbx_last_error() of the calling thread.
 */
#ifndef RBX_LIB_SESSION_H
#define RBX_LIB_SESSION_H

#include "fabric/fabric.h"
#include "include/rdmabox/server.h"
#include "lib/peer/peer.h"

struct rbx_secret;
struct rbx_session;
struct rbx_session_set; /* all sessions of a context */

struct rbx_session_set_options {
	struct rbx_device *device; /* borrows until rbx_session_set_close() */
	const struct rbx_secret *secret; /* the same; NULL: none */
	bool insecure; /* no secret even beyond loopback */
	uint32_t peer_timeout_ms; /* until a silent server counts as lost */
};

/* Starts the control thread. 0 or -errno. */
int rbx_session_set_open(struct rbx_session_set **set,
			 const struct rbx_session_set_options *options);

/* All sessions have been closed before. */
void rbx_session_set_close(struct rbx_session_set *set);

struct rbx_session_events {
	/* Once for each connection that is lost; reason is one line, valid
	 * during the call. */
	void (*lost)(void *user, const char *reason);
	/* The server wants a loan back. May be told more than once for one. */
	void (*evict)(void *user, const struct rbx_eviction *eviction);
	void *user;
};

/*
 * Connects and authenticates both ways. Blocks for at most about twice the
 * timeout. 0; -EINVAL address; -EPERM no secret and not loopback;
 * -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT nobody there; -EACCES the secret
 * was refused, or the server could not prove that it has it; -EBUSY too many
 * clients, or it rejects for now, after trying again for a timeout; -EPROTO,
 * -EPROTONOSUPPORT it speaks something else; -ENOMEM.
 */
int rbx_session_open(struct rbx_session_set *set, const char *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **session);

/*
 * Says goodbye: the server takes back what is still borrowed and ends the data
 * queue pairs (which their owner destroys). No callback runs for the session
 * once this has returned. Blocks.
 */
void rbx_session_close(struct rbx_session *session);

/*
 * Makes one attempt at a new control connection: after lost(), or at any time
 * where a data queue pair has failed; a connection that still stands is given
 * up first, without lost(). 0: the server has ended all data queue pairs of
 * before, and every grant is as it was (rbx_session_check() asks for one); a slab
 * that was lent in an answer that never came has gone back.
 * -ESTALE: it was restarted or the lease ran out: all grants are gone.
 * -ECONNREFUSED: nobody listens there, so it has ended.
 * -EHOSTUNREACH, -ETIMEDOUT, -EBUSY: nobody answers, or not now. Else as
 * rbx_session_open(). After a failure the session is lost and lost() is not
 * called again. Blocks, but not beyond until_ns.
 *
 * Before it sends anything again the owner destroys its own ends of the old
 * queue pairs: where both are on one host the soft fabric carries out a request
 * in the process that posted it, and no server can hold that back.
 */
int rbx_session_resume(struct rbx_session *session, uint64_t until_ns);

/*
 * One data queue pair that the server binds to the session. The caller owns
 * it, and destroys it before or after rbx_session_close(). Blocks. -ENOTCONN
 * while the session is lost; -EBUSY the server allows no more.
 */
int rbx_session_connect_qp(struct rbx_session *session,
			   const struct rbx_qp_init *init, struct rbx_qp **qp);

/* The same, but not for longer than until then; 0: for as long as it takes. */
int rbx_session_connect_qp_until(struct rbx_session *session,
				 const struct rbx_qp_init *init,
				 uint64_t until_ns, struct rbx_qp **qp);

/* Borrows one slab. -ENOSPC, -EDQUOT, -ENOTCONN, -ETIMEDOUT. Blocks. */
int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan);
/* The same in two: asks, and does not block; then waits for the answer, which has to be
 * taken. The session is free for others as soon as the answer is there. */
void rbx_session_ask(struct rbx_session *session, struct rbx_ask *ask);
int rbx_session_answer(struct rbx_session *session, struct rbx_ask *ask,
		       struct rbx_loan *loan);

/* Gives it back; when it returns 0 its rkey is dead. -ESTALE, -EPERM where it
 * is not ours any more, -ENOTCONN, -ETIMEDOUT. Blocks. */
int rbx_session_unmap(struct rbx_session *session,
		      const struct rbx_loan *loan);

/* 0: the grant is still good. -ESTALE, -EPERM: revoked. Blocks. */
int rbx_session_check(struct rbx_session *session,
		      const struct rbx_loan *loan);

/* The server's numbers. Fills at most stats->size_bytes. Blocks. */
int rbx_session_stats(struct rbx_session *session,
		      struct rbx_server_stats *stats);

/* ---- Letters: what the programs on both sides say to each other. */

/* Copies a letter; never blocks. As rbx_message_submit(). */
int rbx_session_letter_submit(struct rbx_session *session, const void *bytes,
			      size_t length_bytes,
			      void (*done)(int status, void *user), void *user);
/* The same, waited for. As rbx_message_send(). */
int rbx_session_letter_send(struct rbx_session *session, const void *bytes,
			    size_t length_bytes);

/* Who hears the letters of the server's program, on the control thread. */
struct rbx_session_listener {
	void (*message)(struct rbx_peer *peer, const void *data, size_t length,
			void *user);
	struct rbx_peer *peer;
	void *user;
	uint64_t *heard_count; /* a counter of theirs */
};

/* -EBUSY: there is one, or a letter has come that nobody heard. */
int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener);

/* The owner will not resume any more: all letters end with -EHOSTUNREACH, and the
 * connection ends, so that the server takes back what it has lent. */
void rbx_session_give_up(struct rbx_session *session);

/* Told by the server when the session was opened. */
uint64_t rbx_session_slab_bytes(const struct rbx_session *session);
/* One number for each start of a server, at whatever address. */
uint64_t rbx_session_incarnation(const struct rbx_session *session);
/* When half of the lease is over, if the server is silent from now on. Of a session
 * that was opened; any thread. */
uint64_t rbx_session_lease_half_ns(const struct rbx_session *session);
uint32_t rbx_session_lease_ms(const struct rbx_session *session);
/* As last told, by heartbeat or grant. */
uint64_t rbx_session_free_bytes(const struct rbx_session *session);
/* Its last sign of life. Any thread. */
uint64_t rbx_session_heard_ns(const struct rbx_session *session);
const char *rbx_session_address(const struct rbx_session *session);

/* The sessions of a context, for rbx_server_query(). */
struct rbx_session_set *rbx_context_sessions(struct rbx_context *ctx);

#endif
