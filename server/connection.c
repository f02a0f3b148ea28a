/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.c - a control connection of the server: its messages in and out, and its
 * end.
 *
 * Each connection has RBX_CONTROL_RECEIVES_MAX receive buffers and RBX_CONTROL_SENDS_MAX
 * send buffers. The answer to the message in receive buffer n is sent from send buffer n.
 * The receive is posted again only when that answer has arrived. So a client that asks
 * and does not read its answers comes to a stop, and a buffer for an answer is always
 * free, also for a late one (borrowing.c). A message without an answer frees its receive
 * at once. The other send buffers are for messages that are no answers.
 *
 * Receives are always posted. So the end of a connection, whatever its reason, shows at
 * once as a completion with an error. A connection that is refused is told the reason
 * first. It ends when that message has arrived, or when that has taken too long.
 */
#include <string.h>

#include "server/state.h"
#include "wire/attach.h"

static uint32_t connection_index(const struct rbx_server *s,
				 const struct rbx_connection *c)
{
	return (uint32_t)(c - s->connections);
}

static uint64_t wr_id_of(const struct rbx_server *s,
			 const struct rbx_connection *c, enum rbx_wr_kind kind,
			 uint32_t slot)
{
	return rbx_wr_name_pack((struct rbx_wr_name){
		.kind = (uint8_t)kind,
		.slot = (uint8_t)slot,
		.index = connection_index(s, c),
		.generation = c->generation,
	});
}

static bool state_is_half_open(enum rbx_connection_state state)
{
	return state == RBX_CONNECTION_NEW ||
	       state == RBX_CONNECTION_CHALLENGED ||
	       state == RBX_CONNECTION_CLOSING;
}

void rbx_connection_set_state(struct rbx_server *s, struct rbx_connection *c,
			      enum rbx_connection_state state,
			      uint64_t deadline_ns)
{
	bool was_half_open = state_is_half_open(c->state);

	RBX_ASSERT(c->state != RBX_CONNECTION_FREE ||
		   state == RBX_CONNECTION_NEW);
	RBX_ASSERT(c->state != RBX_CONNECTION_CLOSING ||
		   state == RBX_CONNECTION_FREE);
	RBX_ASSERT(state != RBX_CONNECTION_OPEN ||
		   c->state == RBX_CONNECTION_CHALLENGED);
	if (!was_half_open && state_is_half_open(state))
		rbx_half_open_join(s, c);
	else if (was_half_open && !state_is_half_open(state))
		rbx_half_open_part(s, c);
	c->state = state;
	c->deadline_ns = deadline_ns;
}

/* ---- Beginning and end ---------------------------------------------------*/

void rbx_request_refuse(struct rbx_server *s, struct rbx_conn_request *request,
			uint32_t reason)
{
	uint8_t refusal[RBX_WIRE_REFUSAL_BYTES];

	rbx_refusal_note(s, reason);
	rbx_log_hostile(&s->hostile, request->peer_name,
			rbx_reason_sentence(reason), rbx_now_ns());
	rbx_wire_refusal_encode(reason, refusal);
	s->fabric.ops->reject(request, refusal, sizeof(refusal));
}

static bool receive_post(struct rbx_server *s, struct rbx_connection *c,
			 uint32_t slot)
{
	const struct rbx_sge buffer = rbx_connection_buffer(s, c, slot);
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = wr_id_of(s, c, RBX_WR_CONTROL_RECV, slot),
		.sges = &buffer,
		.sge_count = 1,
	};

	return s->fabric.ops->post_recv(c->qp, &wr, &bad) == 0;
}

void rbx_connection_accept(struct rbx_server *s,
			   struct rbx_conn_request *request,
			   uint64_t named_session_id, uint64_t now_ns)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	const struct rbx_qp_init init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.send_depth_count = RBX_CONTROL_SENDS_MAX,
		.recv_depth_count = RBX_CONTROL_RECEIVES_MAX,
		.max_sge = 1,
		.peer_reads_max_count = 1, /* it has no key */
	};
	struct rbx_connection *c = NULL;
	char peer_name[RBX_NAME_MAX];
	uint32_t slot;
	int err;

	if (rbx_half_open_admit(s, request->peer_name, named_session_id,
				now_ns))
		c = rbx_connection_take(s);
	if (!c) {
		rbx_request_refuse(s, request, RBX_REASON_TOO_MANY);
		return;
	}
	*c = (struct rbx_connection){
		.generation = c->generation + 1,
		.answering = -1,
		.arrived_ns = now_ns,
		.session_id = named_session_id,
	};
	/* The fabric has taken the request over. */
	strcpy(peer_name, request->peer_name);
	err = s->fabric.ops->accept(request, &init, NULL, 0, &c->qp, error);
	if (err) {
		/* The fabric's text has the port, so each line would be a new one. */
		rbx_log_hostile(&s->hostile, peer_name, strerror(-err), now_ns);
		rbx_connection_give(s, c);
		return;
	}
	rbx_connection_set_state(s, c, RBX_CONNECTION_NEW,
				 now_ns + RBX_HANDSHAKE_NS);
	for (slot = 0; slot < RBX_CONTROL_RECEIVES_MAX; slot++)
		if (!receive_post(s, c, slot)) {
			rbx_connection_end(s, c);
			return;
		}
}

/* The client has lost its connection. */
static void client_part(struct rbx_server *s, struct rbx_connection *c)
{
	if (!c->client)
		return;
	rbx_late_answers_forget(s, c);
	rbx_mailbox_rewind(&c->client->mailbox);
	c->client->connection = NULL;
	c->client = NULL;
	s->connected_count--;
}

void rbx_connection_end(struct rbx_server *s, struct rbx_connection *c)
{
	s->fabric.ops->destroy_qp(c->qp);
	c->qp = NULL;
	client_part(s, c);
	c->generation++;
	rbx_connection_set_state(s, c, RBX_CONNECTION_FREE, 0);
	rbx_connection_give(s, c);
}

/* ---- Sending ---------------------------------------------------------------*/

static void message_send(struct rbx_server *s, struct rbx_connection *c,
			 uint32_t number,
			 const struct rbx_wire_message *message)
{
	uint32_t slot = RBX_CONTROL_RECEIVES_MAX + number;
	struct rbx_sge sge = rbx_connection_buffer(s, c, slot);
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = wr_id_of(s, c, RBX_WR_CONTROL_SEND, slot),
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};

	RBX_ASSERT(number < RBX_CONTROL_SENDS_MAX);
	RBX_ASSERT(!(c->sends_busy & 1u << number));
	c->sends_busy |= 1u << number;
	if (number < RBX_CONTROL_RECEIVES_MAX)
		rbx_answer_note(s, c->asked_ns[number]);
	sge.length_bytes = (uint32_t)rbx_seal_encode(
		&c->seals.out, message, (uint8_t *)(uintptr_t)sge.addr);
	if (s->fabric.ops->post_send(c->qp, &wr, &bad))
		s->fabric.ops->disconnect(c->qp); /* the receives are flushed */
}

void rbx_connection_answer(struct rbx_server *s, struct rbx_connection *c,
			   const struct rbx_wire_message *message)
{
	RBX_ASSERT(c->answering >= 0);
	message_send(s, c, (uint32_t)c->answering, message);
	c->answering = -1;
}

uint32_t rbx_connection_answer_later(struct rbx_connection *c)
{
	uint32_t slot = (uint32_t)c->answering;

	RBX_ASSERT(c->answering >= 0);
	c->answering = -1;
	return slot;
}

void rbx_connection_send_late(struct rbx_server *s, struct rbx_connection *c,
			      uint32_t slot,
			      const struct rbx_wire_message *message)
{
	RBX_ASSERT(slot < RBX_CONTROL_RECEIVES_MAX);
	RBX_ASSERT(c->state == RBX_CONNECTION_OPEN);
	message_send(s, c, slot, message);
}

void rbx_connection_answer_error(struct rbx_server *s, struct rbx_connection *c,
				 uint64_t request_id, uint32_t reason)
{
	const struct rbx_wire_message message = {
		.type = RBX_WIRE_ERROR,
		.status = reason,
		.request_id = request_id,
	};

	rbx_refusal_note(s, reason);
	rbx_connection_answer(s, c, &message);
}

bool rbx_connection_tell(struct rbx_server *s, struct rbx_connection *c,
			 const struct rbx_wire_message *message)
{
	uint32_t number = RBX_CONTROL_RECEIVES_MAX;

	while (number < RBX_CONTROL_SENDS_MAX && c->sends_busy & 1u << number)
		number++;
	if (number == RBX_CONTROL_SENDS_MAX ||
	    c->state == RBX_CONNECTION_CLOSING)
		return false;
	message_send(s, c, number, message);
	return true;
}

static void refusal_count(struct rbx_server *s, uint32_t reason)
{
	switch (reason) {
	case RBX_REASON_WRONG_SECRET:
	case RBX_REASON_SECRET_REQUIRED:
	case RBX_REASON_SECRET_UNKNOWN:
		s->refused_auth++;
		break;
	case RBX_REASON_MALFORMED:
	case RBX_REASON_ALTERED:
	case RBX_REASON_VERSION:
	case RBX_REASON_OUT_OF_TURN:
	case RBX_REASON_REPLAYED:
		s->refused_malformed++;
		break;
	}
}

void rbx_connection_refuse(struct rbx_server *s, struct rbx_connection *c,
			   uint64_t request_id, uint32_t reason)
{
	uint64_t now_ns = rbx_now_ns();
	const struct rbx_wire_message message = {
		.type = RBX_WIRE_ERROR,
		.status = reason,
		.request_id = request_id,
	};

	rbx_refusal_note(s, reason);
	refusal_count(s, reason);
	rbx_log_hostile(&s->hostile, c->qp->peer_name,
			rbx_reason_sentence(reason), now_ns);
	client_part(s, c);
	if (c->answering >= 0)
		rbx_connection_answer(s, c, &message);
	else
		(void)rbx_connection_tell(s, c, &message);
	rbx_connection_set_state(s, c, RBX_CONNECTION_CLOSING,
				 now_ns + RBX_FAREWELL_NS);
}

/* ---- Completions ---------------------------------------------------------*/

static uint32_t reason_of(int err)
{
	switch (err) {
	case -EPROTONOSUPPORT:
		return RBX_REASON_VERSION;
	case -EACCES:
		return RBX_REASON_ALTERED;
	default:
		return RBX_REASON_MALFORMED;
	}
}

static void message_received(struct rbx_server *s, struct rbx_connection *c,
			     uint8_t *bytes, size_t length_bytes,
			     uint64_t now_ns)
{
	struct rbx_wire_message message;
	int err;

	if (c->state == RBX_CONNECTION_CLOSING)
		return;
	err = rbx_seal_decode(&c->seals.in, bytes, length_bytes, &message);
	if (err) {
		rbx_connection_refuse(s, c, message.request_id, reason_of(err));
		return;
	}
	if (message.request_id <= c->last_request_id) {
		rbx_connection_refuse(s, c, message.request_id,
				      RBX_REASON_REPLAYED);
		return;
	}
	c->last_request_id = message.request_id;
	if (c->state == RBX_CONNECTION_OPEN)
		rbx_request_message(s, c, &message, now_ns);
	else
		rbx_handshake_message(s, c, &message, now_ns);
}

static void receive_completed(struct rbx_server *s, struct rbx_connection *c,
			      uint32_t slot, uint32_t length_bytes,
			      uint64_t now_ns)
{
	const struct rbx_sge sge = rbx_connection_buffer(s, c, slot);
	uint32_t generation = c->generation;

	RBX_ASSERT(slot < RBX_CONTROL_RECEIVES_MAX);
	RBX_ASSERT(length_bytes <= RBX_CONTROL_BUFFER_BYTES);
	c->answering = (int)slot;
	c->asked_ns[slot] = now_ns;
	message_received(s, c, (uint8_t *)(uintptr_t)sge.addr,
			 length_bytes, now_ns);
	if (c->generation != generation)
		return; /* handling the message has ended the connection */
	if (c->answering >= 0 && c->state == RBX_CONNECTION_OPEN &&
	    !receive_post(s, c, slot))
		s->fabric.ops->disconnect(c->qp);
	c->answering = -1;
}

static void send_completed(struct rbx_server *s, struct rbx_connection *c,
			   uint32_t slot)
{
	uint32_t number = slot - RBX_CONTROL_RECEIVES_MAX;

	c->sends_busy &= ~(1u << number);
	if (c->state == RBX_CONNECTION_CLOSING) {
		if (!c->sends_busy)
			rbx_connection_end(s, c);
	} else if (number < RBX_CONTROL_RECEIVES_MAX) {
		if (!receive_post(s, c, number))
			rbx_connection_end(s, c);
	} else if (c->client) {
		/* A message may have found no free buffer before. */
		rbx_user_messages_send(s, c->client);
	}
}

void rbx_connection_completed(struct rbx_server *s, const struct rbx_wc *wc,
			      uint64_t now_ns)
{
	struct rbx_wr_name name = rbx_wr_name_unpack(wc->wr_id);
	struct rbx_connection *c = &s->connections[name.index];

	RBX_ASSERT(name.index < s->connections_used);
	if (c->state == RBX_CONNECTION_FREE || c->generation != name.generation)
		return; /* it has ended since */
	if (wc->status == -EMSGSIZE) {
		s->refused_malformed++;
		rbx_log_hostile(&s->hostile, c->qp->peer_name,
				"a message is far too long", now_ns);
	}
	if (wc->status && c->qp->cut_off) {
		s->refused_malformed++;
		rbx_log_hostile(&s->hostile, c->qp->peer_name, c->qp->cut_off,
				now_ns);
	}
	if (wc->status)
		rbx_connection_end(s, c);
	else if (name.kind == RBX_WR_CONTROL_RECV)
		receive_completed(s, c, name.slot, wc->length_bytes, now_ns);
	else
		send_completed(s, c, name.slot);
}
