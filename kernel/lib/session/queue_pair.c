/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pair.c - connects a queue pair that the server binds to a session.
 */
#include "client/session_state.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/context.h"
#include "kernel/lib/session/sessions.h"

int rbx_session_connect(struct rbx_session *session, struct rbx_ib_conn *conn,
			const struct rbx_wire_attach *attach, char *why)
{
	uint8_t private_data[RBX_WIRE_ATTACH_BYTES];
	int err;

	rbx_wire_attach_encode(attach, private_data);
	err = rbx_ib_conn_connect(conn, private_data, sizeof(private_data),
				  rbx_session_left_ms(session));
	return err ? rbx_session_refusal(session, err, conn->reply,
					 conn->reply_bytes, why) :
		     0;
}

static int qp_connect(struct rbx_session *session, struct rbx_ib_conn *conn,
		      struct ib_qp_init_attr *init,
		      void (*ended)(struct rbx_ib_conn *conn),
		      const struct rbx_wire_attach *attach)
{
	const struct rbx_context *ctx =
		rbx_client_of_sessions(session->sessions)->ctx;
	char why[RBX_SESSION_WHY_BYTES] = "";
	int err = rbx_ib_conn_resolve(conn, &init_net, &session->address.at,
				      ended, rbx_session_left_ms(session));

	if (!err && conn->id->device != ctx->device)
		err = -EXDEV;
	if (!err)
		err = rdma_create_qp(conn->id, ctx->pd, init);
	if (!err)
		err = rbx_session_connect(session, conn, attach, why);
	if (why[0])
		rbx_error(err, "%s", why);
	return err;
}

int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn),
			   uint64_t until_ns)
{
	struct rbx_wire_attach attach;
	int err;

	conn->id = NULL;
	err = rbx_session_attach_begin(session, until_ns, &attach);
	if (err)
		return err;
	err = qp_connect(session, conn, init, ended, &attach);
	rbx_session_attach_end(session);
	return err;
}
