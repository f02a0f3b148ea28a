/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sessions.h - the sessions of a context (client/session.h), with what user space adds.
 *
 * The set has one control thread, which calls all callbacks: those of sessions and those
 * of messages. So none of them may wait (guard.h).
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
	const char *credential; /* its name; copied; NULL or "": it has none */
	bool insecure; /* allow no secret, and integrity=off, beyond loopback */
	bool integrity_off;
	uint32_t silence_ms; /* a connection is given up after so long a silence */
};

/* Starts the control thread. 0 or -errno. */
int rbx_sessions_open(struct rbx_sessions **sessions,
		      const struct rbx_sessions_options *options);

/* All sessions must have been closed before. */
void rbx_sessions_close(struct rbx_sessions *sessions);

/* The sessions of a context, for rbx_server_query(). */
struct rbx_sessions *rbx_context_sessions(struct rbx_context *ctx);

/*
 * Connects one data queue pair, which the server binds to the session. The caller owns
 * it, and may destroy it before or after rbx_session_close(). Blocks. -ENOTCONN: the
 * session is lost; -EBUSY: the server allows no more.
 */
int rbx_session_connect_qp(struct rbx_session *session,
			   const struct rbx_qp_init *init, struct rbx_qp **qp);

/* The same, but waits until then at most; 0: without a limit. */
int rbx_session_connect_qp_until(struct rbx_session *session,
				 const struct rbx_qp_init *init,
				 uint64_t until_ns, struct rbx_qp **qp);

/* The server's numbers. Fills at most stats->size_bytes. Blocks. */
int rbx_session_stats(struct rbx_session *session,
		      struct rbx_server_stats *stats);

#endif
