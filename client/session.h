/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.h - the client's control connection to one memory server.
 *
 * A session is the client's identity at a server. It is opened once, with a proof of the
 * shared secret in both directions. It borrows and returns slabs, and its identity is used to
 * connect data queue pairs. Heartbeats keep it alive. It outlives its connection: after
 * lost() the owner calls rbx_session_resume(), which makes a new control connection for the
 * same session. The slabs are still ours. The data queue pairs have ended at the server and
 * are connected anew.
 *
 *	open -> [map, unmap, connect_qp]* -> close
 *	          |                    ^
 *	          +-> lost() -> resume-+   0: all loans are good, new queue pairs
 *	                          |        -ESTALE: everything is gone, close
 *	                          +------- other: try again, until you give up
 *
 * A server counts as lost (wire/PROTOCOL.md, "The lease") if its control connection has
 * ended, or it has not answered for silence_ms, or nothing we sent in the last half of the
 * lease has been answered. In each case lost() is called once, and from then on no data may
 * be sent to the server until resume() has succeeded.
 *
 * Threads: callbacks come one at a time, and must not block. A call that waits, made from a
 * callback, would wait for itself: it returns -EDEADLK. All other threads may block in such
 * calls; they wait for each other. close() is called at most once, and nothing after it.
 * Failures are reported by rbx_error().
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

/* What the sessions of one owner have in common. The host keeps it, inside a structure of its
 * own that has the device and the secret. */
struct rbx_sessions {
	/* Borrowed, by each session until it is open; so no session is being opened while it is
	 * changed. No bytes: there is no secret. */
	struct rbx_root secret;
	char credential[RBX_CREDENTIAL_BYTES]; /* whose secret it is; empty: it has no name */
	/* After such a silence a server counts as lost: half of the peer timeout. The rest is
	 * for resuming (core/peer_state.h). */
	uint32_t silence_ms; /* atomic: for sessions that are opened later */
	uint32_t last_generation; /* atomic: of the connections of all of them */
};

struct rbx_session_events {
	/* Called once for each connection that is lost. reason is one line, valid during the
	 * call. */
	void (*lost)(void *user, const char *reason);
	/* The server wants a loan back. May be called more than once for one loan. */
	void (*evict)(void *user, const struct rbx_eviction *eviction);
	void *user;
	/* The server drains (rbx_session_drains()); once. NULL: nothing is to be done. */
	void (*drains)(void *user);
};

/*
 * Connects and authenticates both ways. Copies the address. Blocks for at most twice
 * silence_ms. 0; -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT no server answers there; -EACCES
 * the secret was refused, or the server could not prove that it has it; -EBUSY too many
 * clients, or it rejects for now, after several tries; -EXDEV it is reached through another
 * device; -EINTR the host would not wait any longer; -EPROTO, -EPROTONOSUPPORT it speaks
 * another protocol; -ENOMEM.
 */
int rbx_session_open(struct rbx_sessions *sessions,
		     const struct rbx_address *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **session);
/* The same, with the address as text, which the host reads. -EINVAL: it is none. In a program,
 * -EPERM: it is beyond loopback, and there is no secret. */
int rbx_session_open_name(struct rbx_sessions *sessions, const char *name,
			  const struct rbx_session_events *events,
			  struct rbx_session **session);

/*
 * Says BYE: the server takes back what is still borrowed and ends the data queue pairs (their
 * owner destroys them). No callback runs for the session once this has returned. Other
 * threads may still be in calls that wait: these end, and close() waits until they have
 * returned. Blocks; for the server's answer silence_ms, but at least one and at most five
 * seconds.
 */
void rbx_session_close(struct rbx_session *session);

/* Its server counts as lost after such a silence from now on. Does not block. */
void rbx_session_set_silence(struct rbx_session *session, uint32_t silence_ms);

/*
 * Makes one attempt at a new control connection: after lost(), or at any time if a data queue
 * pair has failed. A connection that still exists is given up first, without lost().
 *
 * 0: the server has ended all earlier data queue pairs, and every loan is as it was
 * (rbx_session_check() asks for one). A slab that was lent in an answer that never came has
 * gone back. Requests to the server have ended with -ENOTCONN.
 * -ESTALE: the server was restarted or the lease ran out: all loans are lost.
 * -ECANCELED: the session is being closed.
 * -ECONNREFUSED: nothing listens there, so the server has ended.
 * -EHOSTUNREACH, -ETIMEDOUT, -EBUSY: no answer, or not now. Other errors as
 * rbx_session_open(). After a failure the session is lost and lost() is not called again.
 * Blocks, but not beyond until_ns.
 *
 * The owner destroys its own ends of the old queue pairs before it sends anything again: if
 * both ends are on one host, the soft fabric carries out a request in the process that posted
 * it, and no server can stop that.
 */
int rbx_session_resume(struct rbx_session *session, uint64_t until_ns);
/* From here on threads that want to ask the server something wait, if it is there, and so
 * does close(). The owner does this while it resumes the session and connects the data queue
 * pairs, so that no slow answer delays these. let_asks_go() lets them go on. */
void rbx_session_hold_asks(struct rbx_session *session);
void rbx_session_let_asks_go(struct rbx_session *session);

/* The owner will not resume any more: all messages end with -EHOSTUNREACH, and the connection
 * ends, so that the server takes its loans back. Blocks. */
void rbx_session_give_up(struct rbx_session *session);

/* ---- Loans ---------------------------------------------------------------------*/

/* Borrows one slab; asks again if the session was resumed in between. -ENOSPC, -EDQUOT,
 * -ENOTCONN, -ETIMEDOUT. Blocks. */
int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan);
/* The same for a slab of the named volume that the session has opened. */
int rbx_session_map_for(struct rbx_session *session, const struct rbx_wire_map *map,
			struct rbx_loan *loan);
/* The same and the next two without waiting: the ask says which (core/ask.h), and must exist
 * until it is over. answer(): -EAGAIN: it is not over. The session is free for others as soon
 * as it is over. Does not block. */
void rbx_session_ask(struct rbx_session *session, struct rbx_ask *ask);
int rbx_session_answer(struct rbx_session *session, struct rbx_ask *ask,
		       struct rbx_loan *loan);
/* Gives it back; when it returns 0 its rkey is not valid any more. -ESTALE, -EPERM: it is not
 * ours any more; -ENOTCONN, -ETIMEDOUT. Blocks. */
int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan);
/* 0: the loan is still valid. -ESTALE, -EPERM: revoked. Blocks. */
int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan);

/* A request about a named volume; the answer takes its place in message. Returns 0 or the
 * -errno of the server's reason, as wire/reason.h has them. */
int rbx_session_talk(struct rbx_session *session, struct rbx_wire_message *message);

/* ---- Messages between the programs on both sides --------------------------- */

/* Copies a message of at most RBX_WIRE_USER_MESSAGE_BYTES_MAX; any context. done() is called
 * at its end. -EAGAIN: full; -EHOSTUNREACH: the session was given up. */
int rbx_session_message_submit(struct rbx_session *session, const void *bytes,
			       size_t length_bytes,
			       void (*done)(int status, void *user),
			       void *user);
/* The same, but waits for its end. */
int rbx_session_message_send(struct rbx_session *session, const void *bytes,
			     size_t length_bytes);

/* Receives the messages of the server's program. */
struct rbx_session_listener {
	void (*message)(struct rbx_peer *peer, const void *data, size_t length,
			void *user);
	struct rbx_peer *peer;
	void *user;
	uint64_t *heard_count; /* a counter of the listener, or NULL */
};

/* -EBUSY: there is one, or a message has come that no listener received. */
int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener);

/* ---- What the server has reported: any context ----------------------------------- */

/* As the server said when the session was opened. */
uint64_t rbx_session_slab_bytes(const struct rbx_session *session);
/* How much it lends in all, to whomever. */
uint64_t rbx_session_memory_bytes(const struct rbx_session *session);
/* A number that identifies a server by its memory, at whatever address. */
uint64_t rbx_session_incarnation(const struct rbx_session *session);
/* Its labels (core/server_labels.h). */
const char *rbx_session_labels(const struct rbx_session *session);
/* How long the server keeps the loans of a silent client. */
uint64_t rbx_session_lease_ns(const struct rbx_session *session);
/* When half of the lease is over, if the server is silent from now on. */
uint64_t rbx_session_lease_half_ns(const struct rbx_session *session);
/* As last reported, by heartbeat or loan. */
uint64_t rbx_session_free_bytes(const struct rbx_session *session);
/* Whether it lends nothing more, and ends soon. */
bool rbx_session_drains(const struct rbx_session *session);
/* When the last message came. */
uint64_t rbx_session_heard_ns(const struct rbx_session *session);
/* The text of its address. */
const char *rbx_session_name(const struct rbx_session *session);

#endif
