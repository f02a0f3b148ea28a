/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_handshake.c - connects to a server, for open and resume. Then the borrower proves
 * the identity of both sides (wire/PROTOCOL.md, "Authentication").
 */
#include "client/session_state.h"
#include "wire/reason.h"

int rbx_session_refusal(const struct rbx_session *session, int err,
			const uint8_t *reply, size_t reply_bytes,
			char why[RBX_SESSION_WHY_BYTES])
{
	uint32_t reason;

	if (err != -ECONNREFUSED && err != -EBUSY)
		return err;
	reason = rbx_wire_refusal_decode(reply, reply_bytes);
	if (!reason)
		return err;
	snprintf(why, RBX_SESSION_WHY_BYTES, "%s refused: %s",
		 session->address.name, rbx_reason_sentence(reason));
	return rbx_reason_errno(reason);
}

/* From here on the host may report events of this connection, though it is not complete yet. */
static void connection_expect(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	session->generation =
		RBX_FETCH_ADD(&session->sessions->last_generation, 1) + 1;
	session->broken_why = NULL;
	rbx_monitor_leave(&session->monitor);
}

static int connection_make(struct rbx_session *session,
			   struct rbx_connection **connection)
{
	/* A server reserves room for clients that it knows; the first time it knows none. */
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
		.session_id = session->borrower.welcome.session_id,
	};
	char why[RBX_SESSION_WHY_BYTES] = "";
	int err;

	connection_expect(session);
	err = rbx_connection_make(session, &attach, connection, why);
	if (!err)
		return 0;
	if (!why[0])
		snprintf(why, sizeof(why), "it could not be connected");
	else
		rbx_error(err, "%s", why);
	rbx_monitor_enter(&session->monitor);
	session->generation = 0;
	snprintf(session->away, sizeof(session->away), "%s", why);
	rbx_monitor_leave(&session->monitor);
	return err;
}

static void connection_begin(struct rbx_session *session,
			     struct rbx_connection *connection,
			     const uint8_t nonce[RBX_WIRE_NONCE_BYTES])
{
	session->connection = connection;
	rbx_borrower_connected(&session->borrower, nonce, session->until_ns);
	if (session->broken_why)
		rbx_borrower_lost(&session->borrower, session->broken_why,
				  session->broken_err);
	rbx_session_pump(session);
	rbx_clock_soon(session->clock); /* the deadline counts */
}

/* Why a server did not let us in, in words that name the credential. */
static void refusal_tell(struct rbx_session *session, const char *why)
{
	const char *credential = session->sessions->credential;

	if (credential[0] && why == rbx_reason_sentence(RBX_REASON_WRONG_SECRET))
		snprintf(session->away, sizeof(session->away),
			 "the secret of credential %s is wrong, or the server has no such credential; give the name and secret of a line of its --secrets file",
			 credential);
	else
		snprintf(session->away, sizeof(session->away), "%s", why);
}

/* Monitor entered, except during think(). */
static int talk(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	int err;

	rbx_session_wait_call(session);
	while (rbx_borrower_has_to_think(borrower)) {
		rbx_monitor_leave(&session->monitor);
		rbx_borrower_think(borrower);
		rbx_monitor_enter(&session->monitor);
		rbx_borrower_go_on(borrower, rbx_now_ns());
		rbx_session_pump(session);
		rbx_session_wait_call(session);
	}
	err = rbx_borrower_call_end(borrower, NULL);
	if (!err)
		return 0;
	refusal_tell(session, borrower->call.why);
	return rbx_session_error(session, err, borrower->call.message.type == RBX_WIRE_ERROR,
				 session->away);
}

int rbx_session_handshake(struct rbx_session *session)
{
	struct rbx_connection *connection;
	uint8_t nonce[RBX_WIRE_NONCE_BYTES];
	int err = rbx_random(nonce, sizeof(nonce));

	if (!err)
		err = connection_make(session, &connection);
	if (err)
		return err;
	rbx_monitor_enter(&session->monitor);
	connection_begin(session, connection, nonce);
	err = talk(session);
	rbx_clock_soon(session->clock); /* heartbeats begin, or it is over */
	rbx_monitor_leave(&session->monitor);
	if (err)
		rbx_session_disconnect(session);
	return err;
}
