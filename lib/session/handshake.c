/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - connects to a server, for open and resume; the borrower then proves
 * who both are (wire/PROTOCOL.md, "Authentication").
 */
#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/session/state.h"
#include "wire/attach.h"
#include "wire/reason.h"

int rbx_session_connect(struct rbx_session *session,
			const struct rbx_qp_init *init,
			const struct rbx_wire_attach *attach,
			uint32_t timeout_ms, struct rbx_qp **qp)
{
	struct rbx_session_set *set = session->set;
	uint8_t private_data[RBX_WIRE_ATTACH_BYTES];
	uint8_t reply[RBX_REJECT_DATA_MAX];
	char error[RBX_ERROR_TEXT_MAX] = "";
	char resolved[RBX_NAME_MAX] = "";
	struct rbx_connect_init connect = {
		.address = session->resolved[0] ? session->resolved :
						  session->address,
		.resolved = resolved,
		.timeout_ms = timeout_ms,
		.private_data = private_data,
		.private_data_bytes = sizeof(private_data),
		.reply_data = reply,
		.reply_data_max_bytes = sizeof(reply),
	};
	uint32_t reason;
	int err;

	rbx_wire_attach_encode(attach, private_data);
	err = set->ops->connect(set->options.device, init, &connect, qp, error);
	if (!err) {
		memcpy(session->resolved, resolved, sizeof(resolved));
		return 0;
	}
	reason = rbx_wire_refusal_decode(reply, connect.reply_data_bytes);
	if ((err == -ECONNREFUSED || err == -EBUSY) && reason)
		return rbx_error(rbx_reason_errno(reason), "%s refused: %s",
				 session->address, rbx_reason_sentence(reason));
	return rbx_error(err, "%s", error);
}

static int control_connect(struct rbx_session *session, uint64_t until_ns,
			   struct rbx_qp **qp)
{
	/* A server keeps places for clients that it knows; nobody is known yet at
	 * the first time. */
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
		.session_id = session->borrower.welcome.session_id,
	};
	const struct rbx_qp_init init = {
		.send_cq = session->set->cq,
		.recv_cq = session->set->cq,
		.send_depth_count = RBX_BORROWER_SLOTS,
		.recv_depth_count = RBX_CLIENT_RECEIVES,
		.max_sge = 1,
	};

	return rbx_session_connect(session, &init, &attach,
				   rbx_session_left_ms(session, until_ns), qp);
}

/* With the set's lock held, but while it thinks. */
static int talk_locked(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	int err;

	rbx_session_pump(session);
	rbx_session_wait_call(session);
	while (rbx_borrower_has_to_think(borrower)) {
		pthread_mutex_unlock(&session->set->lock);
		rbx_borrower_think(borrower);
		pthread_mutex_lock(&session->set->lock);
		rbx_borrower_go_on(borrower, rbx_now_ns());
		rbx_session_pump(session);
		rbx_session_wait_call(session);
	}
	err = rbx_borrower_call_end(borrower, NULL);
	if (!err)
		return 0;
	rbx_borrower_drop(borrower);
	rbx_session_pump(session);
	return rbx_session_error(session, err);
}

int rbx_session_handshake(struct rbx_session *session, uint64_t until_ns)
{
	uint8_t nonce[RBX_WIRE_NONCE_BYTES];
	struct rbx_qp *qp;
	int err;

	err = rbx_random(nonce, sizeof(nonce));
	if (!err)
		err = control_connect(session, until_ns, &qp);
	if (err)
		return err;
	pthread_mutex_lock(&session->set->lock);
	err = rbx_session_connection_start(session, qp);
	if (!err) {
		rbx_borrower_connected(&session->borrower, nonce, until_ns);
		err = talk_locked(session);
	}
	pthread_mutex_unlock(&session->set->lock);
	return err;
}
