/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.h - what a session needs from its host: control connections, and a clock.
 *
 * A connection carries messages of at most RBX_WIRE_MESSAGE_BYTES_MAX bytes. It has
 * RBX_CLIENT_RECEIVES receives, always posted, so that every message of the server finds one
 * and the end of the connection shows at once. It has a send buffer for each slot of the
 * borrower. Its host reports its events until free() has returned, and says of which
 * connection they are: the session compares the generation with that of its present
 * connection, and ignores late events of an earlier one.
 *
 * make() and free() block, and are for the thread that has taken the session. The other
 * functions do not block, and are called with the session's monitor entered.
 */
#ifndef RBX_CLIENT_CONNECTION_H
#define RBX_CLIENT_CONNECTION_H

#include "client/host.h"
#include "wire/attach.h"
#include "wire/message.h"

struct rbx_clock; /* the host's, one for each session */
struct rbx_connection; /* the host's */
struct rbx_session;
struct rbx_sessions;

/* Bytes of the text that says why something failed. */
#define RBX_SESSION_WHY_BYTES 256u

/* ---- Connections: the host does -------------------------------------------------*/

/* Connects to the session's address with the private data of attach, within
 * rbx_session_left_ms(). It becomes the connection of session->generation. Receives are
 * posted. Returns 0 or -errno, with a reason in words, if there is one. */
int rbx_connection_make(struct rbx_session *session,
			const struct rbx_wire_attach *attach,
			struct rbx_connection **connection,
			char why[RBX_SESSION_WHY_BYTES]);
void rbx_connection_free(struct rbx_connection *connection);

/* The send buffer of a slot, with room for RBX_WIRE_MESSAGE_BYTES_MAX; and sends what it
 * contains. It stays in use until rbx_session_sent(). 0 or -errno. */
uint8_t *rbx_connection_send_buffer(const struct rbx_connection *connection, uint32_t slot);
int rbx_connection_send(struct rbx_connection *connection, uint32_t slot,
			size_t length_bytes);
/* Posts a receive again. 0 or -errno. */
int rbx_connection_receive(struct rbx_connection *connection, uint32_t slot);
/* How the server broke the rules of the fabric, if it was cut off for that: a string that is
 * never freed; else NULL. */
const char *rbx_connection_cut_off(const struct rbx_connection *connection);

/* ---- Connections: the host reports, without the monitor ------------------------- */

/* A message has come into a receive, whose bytes are changed. The thread that brings it also
 * tells the news that follow, so this may wait for another thread that tells news. */
void rbx_session_received(struct rbx_session *session, uint32_t generation,
			  uint32_t slot, uint8_t *bytes, size_t length_bytes);
/* Any context. */
void rbx_session_sent(struct rbx_session *session, uint32_t generation,
		      uint32_t slot);
/* The connection is of no use any more. why: a string that is never freed; err: what goes
 * with it, or 0. Any context. */
void rbx_session_connection_lost(struct rbx_session *session,
				 uint32_t generation, const char *why, int err);

/* For connecting data queue pairs: the server refused one with err, and gave a reason.
 * Returns the errno of the reason, and reports it; without a reason it is err. */
int rbx_session_refusal(const struct rbx_session *session, int err,
			const uint8_t *reply, size_t reply_bytes,
			char why[RBX_SESSION_WHY_BYTES]);

/* ---- Data queue pairs: the host connects them --------------------------------------*/

/* Takes the session and writes the private data for connecting a data queue pair, within
 * rbx_session_left_ms(). until_ns: 0: as long as an answer may take. Returns 0, and the host
 * ends it; or -ENOTCONN the session is lost; -EDEADLK. */
int rbx_session_attach_begin(struct rbx_session *session, uint64_t until_ns,
			     struct rbx_wire_attach *attach);
void rbx_session_attach_end(struct rbx_session *session);

/* How long a step may take of the thread that has taken the session. */
uint32_t rbx_session_left_ms(const struct rbx_session *session);

/* ---- The clock ---------------------------------------------------------------------*/

/* From here on rbx_session_tick() is called when it is due. Returns 0 or -errno, which was
 * reported by rbx_error(). */
int rbx_clock_make(struct rbx_session *session, struct rbx_clock **clock);
/* A tick is due now: there is news, or an earlier deadline. Any context. */
void rbx_clock_soon(struct rbx_clock *clock);
/* When it returns, no tick is running or will run. Blocks. */
void rbx_clock_free(struct rbx_clock *clock);

/* Checks the time and tells all news. now_ns was read before the last messages were taken.
 * Returns when the next tick is due; UINT64_MAX: when soon() says so. */
uint64_t rbx_session_tick(struct rbx_session *session, uint64_t now_ns);

/*
 * A thread that opens a session waits for a while. Returns 0; -EINTR: it must not wait any
 * longer. Blocks.
 */
int rbx_sessions_pause(struct rbx_sessions *sessions, uint64_t pause_ns);

#endif
