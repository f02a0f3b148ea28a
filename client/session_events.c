/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_events.c - handles the events of a control connection: incoming messages go to the
 * borrower, and its messages are sent.
 */
#include "client/session_state.h"

/* Keeps the borrower's text, with its time and errno. */
static void away_note(struct rbx_session *session)
{
	const struct rbx_borrower *borrower = &session->borrower;
	size_t size = sizeof(session->away);

	if (borrower->why_err)
		snprintf(session->away, size, "%s: %s", borrower->why,
			 rbx_status_text(borrower->why_err));
	else if (borrower->why_ms)
		snprintf(session->away, size, "%s for %u ms", borrower->why,
			 borrower->why_ms);
	else
		snprintf(session->away, size, "%s", borrower->why);
}

void rbx_session_pump(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	struct rbx_wire_message message;
	size_t length_bytes;
	int slot, err;

	/* Bounded: each pass takes a send buffer, and only completions free them. */
	while ((slot = rbx_borrower_next(borrower, rbx_now_ns(), &message)) >=
	       0) {
		length_bytes = rbx_borrower_encode(
			borrower, &message,
			rbx_connection_send_buffer(session->connection, (uint32_t)slot));
		err = rbx_connection_send(session->connection, (uint32_t)slot,
					  length_bytes);
		if (!err)
			continue;
		rbx_borrower_lost(borrower, "cannot post a message", err);
		rbx_clock_soon(session->clock); /* to tell it */
	}
	if (session->connection && borrower->phase == RBX_BORROWER_AWAY)
		away_note(session);
	rbx_session_ask_end(session);
	rbx_session_ask_next(session);
	rbx_monitor_wake(&session->monitor);
}

void rbx_session_disconnect(struct rbx_session *session)
{
	struct rbx_connection *connection;

	rbx_monitor_enter(&session->monitor);
	connection = session->connection;
	session->connection = NULL;
	session->generation = 0;
	rbx_borrower_drop(&session->borrower);
	rbx_session_pump(session);
	rbx_monitor_leave(&session->monitor);
	if (connection)
		rbx_connection_free(connection);
}

/* ---- Events from the host -------------------------------------------------------- */

/* Monitor entered. */
static void lost(struct rbx_session *session, const char *why, int err)
{
	if (!session->connection) {
		session->broken_why = why;
		session->broken_err = err;
		return;
	}
	rbx_borrower_lost(&session->borrower, why, err);
	rbx_session_pump(session);
	rbx_clock_soon(session->clock); /* to tell it */
}

void rbx_session_connection_lost(struct rbx_session *session,
				 uint32_t generation, const char *why, int err)
{
	const char *cut_off = NULL;

	rbx_monitor_enter(&session->monitor);
	if (generation == session->generation) {
		if (session->connection)
			cut_off = rbx_connection_cut_off(session->connection);
		lost(session, cut_off ? cut_off : why, cut_off ? 0 : err);
	}
	rbx_monitor_leave(&session->monitor);
}

void rbx_session_sent(struct rbx_session *session, uint32_t generation,
		      uint32_t slot)
{
	rbx_monitor_enter(&session->monitor);
	if (generation == session->generation && session->connection) {
		rbx_borrower_sent(&session->borrower, slot);
		rbx_session_pump(session);
	}
	rbx_monitor_leave(&session->monitor);
}

/* The bytes have been copied out when the receive is posted again, which happens before
 * anything is sent or told. */
static void message_take(struct rbx_session *session, uint32_t slot,
			 uint8_t *bytes, size_t length_bytes)
{
	struct rbx_borrower *borrower = &session->borrower;
	int err;

	rbx_borrower_message(borrower, bytes, length_bytes, rbx_now_ns());
	if (borrower->phase != RBX_BORROWER_AWAY) {
		err = rbx_connection_receive(session->connection, slot);
		if (err)
			rbx_borrower_lost(borrower, "cannot post a receive",
					  err);
	}
	rbx_session_pump(session);
}

void rbx_session_received(struct rbx_session *session, uint32_t generation,
			  uint32_t slot, uint8_t *bytes, size_t length_bytes)
{
	rbx_monitor_enter(&session->monitor);
	rbx_session_tell_begin(session);
	if (generation == session->generation) {
		if (session->connection)
			message_take(session, slot, bytes, length_bytes);
		else
			lost(session, "an unsolicited message", 0);
	}
	rbx_session_tell_end(session);
	rbx_monitor_leave(&session->monitor);
}
