/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.c - the control connection of a session, and its data queue pairs.
 */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/session/set.h"

RBX_STATIC_ASSERT(RBX_ADDRESS_BYTES == RBX_NAME_MAX, "as connect() has them");
RBX_STATIC_ASSERT(RBX_SESSION_WHY_BYTES == RBX_ERROR_TEXT_MAX, "the same");

/* The first slots are receives; from RBX_CLIENT_RECEIVES on they are sends. */
static uint8_t *buffer_of(const struct rbx_clock *clock, uint32_t slot)
{
	size_t number = clock->number * RBX_SESSION_SLOTS + slot;

	return clock->bank->buffers + number * RBX_WIRE_MESSAGE_BYTES_MAX;
}

/* Generation, number in the bank, slot. */
static uint64_t wr_id_of(const struct rbx_connection *connection, uint32_t slot)
{
	return (uint64_t)connection->generation << 32 |
	       (uint64_t)connection->clock->number << 16 | slot;
}

int rbx_connection_receive(struct rbx_connection *connection, uint32_t slot)
{
	const struct rbx_clock *clock = connection->clock;
	const struct rbx_sge buffer = {
		.addr = (uintptr_t)buffer_of(clock, slot),
		.length_bytes = RBX_WIRE_MESSAGE_BYTES_MAX,
		.lkey = clock->bank->mr->lkey,
	};
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = wr_id_of(connection, slot),
		.sges = &buffer,
		.sge_count = 1,
	};

	return clock->set->ops->post_recv(connection->qp, &wr, &bad);
}

uint8_t *rbx_connection_send_buffer(const struct rbx_connection *connection, uint32_t slot)
{
	return buffer_of(connection->clock, RBX_CLIENT_RECEIVES + slot);
}

int rbx_connection_send(struct rbx_connection *connection, uint32_t slot,
			size_t length_bytes)
{
	const struct rbx_clock *clock = connection->clock;
	struct rbx_sge sge = {
		.addr = (uintptr_t)rbx_connection_send_buffer(connection, slot),
		.length_bytes = (uint32_t)length_bytes,
		.lkey = clock->bank->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = wr_id_of(connection, RBX_CLIENT_RECEIVES + slot),
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};

	return clock->set->ops->post_send(connection->qp, &wr, &bad);
}

const char *rbx_connection_cut_off(const struct rbx_connection *connection)
{
	return connection->qp->cut_off;
}

void rbx_clock_completed(struct rbx_session *session,
			 const struct rbx_clock *clock,
			 const struct rbx_wc *wc)
{
	uint32_t generation = (uint32_t)(wc->wr_id >> 32);
	uint32_t slot = (uint32_t)wc->wr_id & 0xffff;

	RBX_ASSERT(slot < RBX_SESSION_SLOTS);
	if (wc->status == -ECANCELED)
		rbx_session_connection_lost(session, generation,
					    "the connection was ended", 0);
	else if (wc->status)
		rbx_session_connection_lost(session, generation,
					    "the connection failed",
					    wc->status);
	else if (slot < RBX_CLIENT_RECEIVES)
		rbx_session_received(session, generation, slot,
				     buffer_of(clock, slot), wc->length_bytes);
	else
		rbx_session_sent(session, generation,
				 slot - RBX_CLIENT_RECEIVES);
}

/* ---- Connecting -------------------------------------------------------------------*/

/* Connects a queue pair with the attach message. The caller has taken the session. */
static int qp_connect(struct rbx_session *session,
		      const struct rbx_qp_init *init,
		      const struct rbx_wire_attach *attach, struct rbx_qp **qp,
		      char why[RBX_SESSION_WHY_BYTES])
{
	struct rbx_session_set *set = rbx_session_set_of(session->sessions);
	struct rbx_address *address = &session->address;
	uint8_t private_data[RBX_WIRE_ATTACH_BYTES];
	uint8_t reply[RBX_REJECT_DATA_MAX];
	char resolved[RBX_NAME_MAX] = "";
	struct rbx_connect_init connect = {
		.address = address->resolved[0] ? address->resolved :
						  address->name,
		.resolved = resolved,
		.timeout_ms = rbx_session_left_ms(session),
		.loopback_only = (!set->options.secret || set->options.integrity_off) &&
				 !set->options.insecure,
		.private_data = private_data,
		.private_data_bytes = sizeof(private_data),
		.reply_data = reply,
		.reply_data_max_bytes = sizeof(reply),
	};
	int err;

	rbx_wire_attach_encode(attach, private_data);
	err = set->ops->connect(set->options.device, init, &connect, qp, why);
	if (err == -EREMOTE) {
		snprintf(why, RBX_SESSION_WHY_BYTES,
			 set->options.integrity_off ?
				 "%s is another machine, and integrity=off is for one machine: use integrity=mac or tls (--integrity)" :
				 "%s is another machine and there is no secret: give a secret file (--secret-file), or insecure (--insecure)",
			 address->name);
		return -EPERM;
	}
	if (err)
		return rbx_session_refusal(session, err, reply,
					   connect.reply_data_bytes, why);
	memcpy(address->resolved, resolved, sizeof(resolved));
	return 0;
}

static int receives_post(struct rbx_connection *connection)
{
	uint32_t slot;
	int err = 0;

	for (slot = 0; slot < RBX_CLIENT_RECEIVES && !err; slot++)
		err = rbx_connection_receive(connection, slot);
	return err;
}

int rbx_connection_make(struct rbx_session *session,
			const struct rbx_wire_attach *attach,
			struct rbx_connection **out,
			char why[RBX_SESSION_WHY_BYTES])
{
	struct rbx_clock *clock = session->clock;
	struct rbx_connection *connection = &clock->connection;
	const struct rbx_qp_init init = {
		.send_cq = clock->bank->cq,
		.recv_cq = clock->bank->cq,
		.send_depth_count = RBX_BORROWER_SLOTS,
		.recv_depth_count = RBX_CLIENT_RECEIVES,
		.max_sge = 1,
	};
	int err = qp_connect(session, &init, attach, &connection->qp, why);

	if (err)
		return err;
	connection->clock = clock;
	connection->generation = session->generation;
	err = receives_post(connection);
	if (err) {
		rbx_connection_free(connection);
		snprintf(why, RBX_SESSION_WHY_BYTES,
			 "cannot post a receive: %s", strerror(-err));
		return err;
	}
	*out = connection;
	return 0;
}

void rbx_connection_free(struct rbx_connection *connection)
{
	connection->clock->set->ops->destroy_qp(connection->qp);
}

int rbx_session_connect_qp_until(struct rbx_session *session,
				 const struct rbx_qp_init *init,
				 uint64_t until_ns, struct rbx_qp **qp)
{
	char why[RBX_SESSION_WHY_BYTES] = "";
	struct rbx_wire_attach attach;
	int err = rbx_session_attach_begin(session, until_ns, &attach);

	if (err)
		return err;
	err = qp_connect(session, init, &attach, qp, why);
	rbx_session_attach_end(session);
	return err ? rbx_error(err, "%s", why) : 0;
}

int rbx_session_connect_qp(struct rbx_session *session,
			   const struct rbx_qp_init *init, struct rbx_qp **qp)
{
	return rbx_session_connect_qp_until(session, init, 0, qp);
}
