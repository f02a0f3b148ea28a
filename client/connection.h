/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.h - what a session asks of its host: control connections, and somebody
 * who looks at the clock.
 *
 * A connection carries messages of at most RBX_WIRE_MESSAGE_BYTES_MAX bytes. It has
 * RBX_CLIENT_RECEIVES receives, always posted, so that no message of the server finds
 * none and the end of the connection shows at once; and a send buffer for each slot of
 * the borrower. Its host tells what happens to it, until free() has returned, and says of
 * which connection: the session compares the generation with that of its own, so what
 * comes late of one that was replaced is passed over.
 *
 * make() and free() block, and belong to who has taken the session. The rest does not
 * block, and is called with the session's monitor entered.
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

/* A sentence that says why something failed. */
#define RBX_SESSION_WHY_BYTES 256u

/* ---- Connections: the host does -------------------------------------------------*/

/* Connects to the session's address with what attach says, within
 * rbx_session_left_ms(): it is the one of session->generation. Receives are posted. 0 or
 * -errno, with why in words, if there are any. */
int rbx_connection_make(struct rbx_session *session,
			const struct rbx_wire_attach *attach,
			struct rbx_connection **connection,
			char why[RBX_SESSION_WHY_BYTES]);
void rbx_connection_free(struct rbx_connection *connection);

/* Sends from the buffer of a slot, until rbx_session_sent() tells. 0 or -errno. */
int rbx_connection_send(struct rbx_connection *connection, uint32_t slot,
			const struct rbx_wire_message *message);
/* Posts a receive again. 0 or -errno. */
int rbx_connection_receive(struct rbx_connection *connection, uint32_t slot);
/* How the server broke the rules of the fabric, if it was cut off for that: a sentence
 * that stays; else NULL. */
const char *rbx_connection_cut_off(const struct rbx_connection *connection);

/* ---- Connections: the host tells, without the monitor ----------------------------*/

/* A message has come into a receive. The thread that brings it tells what it means, so
 * this may wait for the one that tells something else. */
void rbx_session_received(struct rbx_session *session, uint32_t generation,
			  uint32_t slot, const uint8_t *bytes,
			  size_t length_bytes);
/* Any context. */
void rbx_session_sent(struct rbx_session *session, uint32_t generation,
		      uint32_t slot);
/* It is of no use any more. why: a sentence that stays; err: what belongs to it, or 0.
 * Any context. */
void rbx_session_connection_lost(struct rbx_session *session,
				 uint32_t generation, const char *why, int err);

/* For the host's way to connect: the server refused a queue pair with err, and gave a
 * reason. Returns its errno, and says why; without a reason it is err. */
int rbx_session_refusal(const struct rbx_session *session, int err,
			const uint8_t *reply, size_t reply_bytes,
			char why[RBX_SESSION_WHY_BYTES]);

/* ---- Data queue pairs: the host connects them --------------------------------------*/

/* Takes the session and writes what is to be said to connect one, within
 * rbx_session_left_ms(). until_ns: 0: as long as an answer may take. 0, and it is ended;
 * or -ENOTCONN it is lost; -EDEADLK. */
int rbx_session_attach_begin(struct rbx_session *session, uint64_t until_ns,
			     struct rbx_wire_attach *attach);
void rbx_session_attach_end(struct rbx_session *session);

/* How long a step may take of who has taken the session. */
uint32_t rbx_session_left_ms(const struct rbx_session *session);

/* ---- The clock ---------------------------------------------------------------------*/

/* From here on somebody calls rbx_session_tick() when it is due. 0 or -errno, of which
 * rbx_error() was told. */
int rbx_clock_make(struct rbx_session *session, struct rbx_clock **clock);
/* It is due now: there is news, or an earlier deadline. Any context. */
void rbx_clock_soon(struct rbx_clock *clock);
/* When it returns no tick runs or will run. Blocks. */
void rbx_clock_free(struct rbx_clock *clock);

/* Looks at the clock and tells all news. now_ns was read before the last messages were
 * taken. Returns when it is due again; UINT64_MAX: when soon() says so. */
uint64_t rbx_session_tick(struct rbx_session *session, uint64_t now_ns);

/* Who opens a session lets some time pass. 0; -EINTR: it shall not wait. Blocks. */
int rbx_sessions_pause(struct rbx_sessions *sessions, uint64_t pause_ns);

#endif
