/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sessions.h - the sessions of a context (client/session.h), and what they have besides
 * in a program.
 *
 * The set has one control thread, on which everything is told: the callbacks of
 * sessions, and those of messages. So none of them may wait (guard.h).
 */
#ifndef RBX_LIB_SESSIONS_H
#define RBX_LIB_SESSIONS_H

#include "client/session.h"
#include "fabric/fabric.h"
#include "include/rdmabox/server.h"

struct rbx_context;
struct rbx_secret;

struct rbx_sessions_options {
	struct rbx_device *device; /* borrows until rbx_sessions_close() */
	const struct rbx_secret *secret; /* the same; NULL: none */
	bool insecure; /* no secret even beyond loopback */
	uint32_t silence_ms; /* until a silent server counts as lost */
};

/* Starts the control thread. 0 or -errno. */
int rbx_sessions_open(struct rbx_sessions **sessions,
		      const struct rbx_sessions_options *options);

/* All sessions have been closed before. */
void rbx_sessions_close(struct rbx_sessions *sessions);

/* Those of a context, for rbx_server_query(). */
struct rbx_sessions *rbx_context_sessions(struct rbx_context *ctx);

/* As rbx_session_open(), by the text of an address. -EPERM: it is beyond loopback, and
 * there is no secret. */
int rbx_session_open_name(struct rbx_sessions *sessions, const char *name,
			  const struct rbx_session_events *events,
			  struct rbx_session **session);

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

/* The server's numbers. Fills at most stats->size_bytes. Blocks. */
int rbx_session_stats(struct rbx_session *session,
		      struct rbx_server_stats *stats);

#endif
