/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - connects to a server, for open and resume; the borrower then proves
 * who both are (wire/PROTOCOL.md, "Authentication").
 */
#include <linux/ktime.h>
#include <linux/random.h>

#include "kernel/lib/session/state.h"
#include "wire/reason.h"

int rbx_session_attach(struct rbx_session *session, struct rbx_ib_conn *conn,
		       const struct rbx_wire_attach *attach)
{
	uint8_t private_data[RBX_WIRE_ATTACH_BYTES];
	uint32_t reason;
	int err;

	rbx_wire_attach_encode(attach, private_data);
	err = rbx_ib_conn_connect(conn, private_data, sizeof(private_data),
				  rbx_session_left_ms(session));
	if (err != -ECONNREFUSED && err != -EBUSY)
		return err;
	reason = rbx_wire_refusal_decode(conn->reply, conn->reply_bytes);
	if (!reason)
		return err;
	pr_notice("rdmabox: %s refused: %s\n", session->name,
		  rbx_reason_sentence(reason));
	return rbx_reason_errno(reason);
}

/* The lock is held, but while it thinks. */
static int talk_locked(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;

	lockdep_assert_held(&session->lock);
	rbx_session_wait_call_locked(session);
	while (rbx_borrower_has_to_think(borrower)) {
		spin_unlock_irq(&session->lock);
		rbx_borrower_think(borrower);
		spin_lock_irq(&session->lock);
		rbx_borrower_go_on(borrower, ktime_get_ns());
		rbx_session_pump_locked(session);
		rbx_session_wait_call_locked(session);
	}
	return rbx_borrower_call_end(borrower, NULL);
}

int rbx_session_handshake(struct rbx_session *session)
{
	struct rbx_connection *connection;
	uint8_t nonce[RBX_WIRE_NONCE_BYTES];
	int err = rbx_connection_make(session, &connection);

	if (err)
		return err;
	get_random_bytes(nonce, sizeof(nonce));
	rbx_connection_begin(connection, nonce, session->until_ns);
	spin_lock_irq(&session->lock);
	err = talk_locked(session);
	spin_unlock_irq(&session->lock);
	if (err) {
		rbx_session_log(session, err);
		rbx_session_disconnect(session);
	}
	rbx_session_tick_soon(session); /* heartbeats begin, or it is over */
	return err;
}
