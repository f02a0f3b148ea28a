/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.c - one control connection of a session.
 *
 * Receives are always posted, so that the end of the connection shows at once.
 * A message is either the answer to the call under way, or to the heartbeat, or
 * about letters (letters.c), or something the server says unasked: that
 * it wants a slab back, or why it ends the connection. Whatever else comes is
 * not of this protocol, and the connection is given up.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/session/state.h"
#include "wire/reason.h"

#define SLOTS_PER_SESSION (RBX_SESSION_RECEIVES + RBX_SESSION_SENDS)

/* Slots from 0 are receives, from RBX_SESSION_RECEIVES on sends. */
static uint8_t *buffer_of(const struct rbx_session *session, uint32_t slot)
{
	size_t number = session->index * SLOTS_PER_SESSION + slot;

	return session->set->buffers + number * RBX_WIRE_MESSAGE_BYTES_MAX;
}

/* wr_id: generation, index of the session, slot. */
static uint64_t wr_id_of(const struct rbx_session *session, uint32_t slot)
{
	return (uint64_t)session->generation << 32 |
	       (uint64_t)session->index << 16 | slot;
}

static int receive_post(struct rbx_session *session, uint32_t slot)
{
	struct rbx_session_set *set = session->set;
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = wr_id_of(session, slot),
		.sge = {
			.addr = (uintptr_t)buffer_of(session, slot),
			.length_bytes = RBX_WIRE_MESSAGE_BYTES_MAX,
			.lkey = set->buffers_mr->lkey,
		},
	};

	return set->ops->post_recv(session->qp, &wr, &bad);
}

int rbx_session_connection_start(struct rbx_session *session, struct rbx_qp *qp)
{
	uint32_t slot;
	int err;

	RBX_ASSERT(session->status == RBX_SESSION_DOWN && !session->qp);
	session->qp = qp;
	session->generation = ++session->set->last_generation;
	session->sends_busy = 0;
	session->last_request_id = 0;
	session->lease.heartbeat_is_out = false;
	for (slot = 0; slot < RBX_SESSION_RECEIVES; slot++) {
		err = receive_post(session, slot);
		if (err) {
			rbx_session_connection_end(session);
			return rbx_error(err, "cannot post a receive: %s",
					 strerror(-err));
		}
	}
	session->status = RBX_SESSION_HANDSHAKE;
	return 0;
}

void rbx_session_connection_end(struct rbx_session *session)
{
	if (session->qp)
		session->set->ops->destroy_qp(session->qp);
	session->qp = NULL;
	session->generation = ++session->set->last_generation;
	session->status = RBX_SESSION_DOWN;
	rbx_mailbox_rewind(&session->mailbox);
	pthread_cond_broadcast(&session->changed);
}

void rbx_session_lose(struct rbx_session *session, const char *format, ...)
{
	va_list args;

	if (session->status == RBX_SESSION_DOWN)
		return;
	session->lost_untold = session->status == RBX_SESSION_UP &&
			       !session->closing;
	va_start(args, format);
	vsnprintf(session->lost_reason, sizeof(session->lost_reason), format,
		  args);
	va_end(args);
	rbx_session_connection_end(session);
	rbx_session_set_wake(session->set);
}

/* ---- Sending ---------------------------------------------------------------*/

void rbx_session_send(struct rbx_session *session, enum rbx_session_send slot,
		      struct rbx_wire_message *message)
{
	struct rbx_session_set *set = session->set;
	uint8_t *buffer = buffer_of(session, RBX_SESSION_RECEIVES + slot);
	struct rbx_sge sge = {
		.addr = (uintptr_t)buffer,
		.lkey = set->buffers_mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = wr_id_of(session, RBX_SESSION_RECEIVES + slot),
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};
	int err;

	RBX_ASSERT(session->status != RBX_SESSION_DOWN);
	RBX_ASSERT(!(session->sends_busy & 1u << slot));
	message->request_id = ++session->last_request_id;
	sge.length_bytes = (uint32_t)rbx_wire_encode(message, buffer);
	session->sends_busy |= 1u << slot;
	err = set->ops->post_send(session->qp, &wr, &bad);
	if (err)
		rbx_session_lose(session, "cannot post a message: %s",
				 strerror(-err));
}

/* Waits until the send buffer of calls is free: its last message may have been
 * answered before its completion was seen. */
static int call_send(struct rbx_session *session,
		     struct rbx_wire_message *message,
		     const struct timespec *deadline)
{
	struct rbx_session_set *set = session->set;
	const uint32_t busy_bit = 1u << RBX_SESSION_SEND_CALL;
	int err = 0;

	while (session->status != RBX_SESSION_DOWN &&
	       session->sends_busy & busy_bit && !err)
		err = pthread_cond_timedwait(&session->changed, &set->lock,
					     deadline);
	if (session->status == RBX_SESSION_DOWN)
		return -ENOTCONN;
	if (session->sends_busy & busy_bit)
		return -ETIMEDOUT;
	session->call_answered = false;
	session->call_sent_ns = rbx_now_ns();
	session->call_id = session->last_request_id + 1;
	rbx_session_send(session, RBX_SESSION_SEND_CALL, message);
	return 0;
}

static int call_wait(struct rbx_session *session,
		     const struct timespec *deadline)
{
	int err = 0;

	while (!session->call_answered && session->status != RBX_SESSION_DOWN &&
	       !err)
		err = pthread_cond_timedwait(&session->changed,
					     &session->set->lock, deadline);
	session->call_id = 0;
	if (session->call_answered)
		return 0;
	return session->status == RBX_SESSION_DOWN ? -ENOTCONN : -ETIMEDOUT;
}

/* What the answer to a call means for its caller. */
static int answer_judge(struct rbx_session *session,
			const struct rbx_wire_message *answer,
			uint16_t expected)
{
	if (answer->type == expected)
		return 0;
	if (answer->type == RBX_WIRE_ERROR)
		return rbx_error(rbx_reason_errno(answer->status),
				 "%s refused: %s", session->address,
				 rbx_reason_sentence(answer->status));
	rbx_session_lose(session, "an answer of the wrong kind");
	return rbx_error(-EPROTO, "%s answered something else than was asked",
			 session->address);
}

int rbx_session_call(struct rbx_session *session,
		     struct rbx_wire_message *message, uint16_t expected,
		     struct rbx_wire_message *answer)
{
	uint32_t timeout_ms = session->answer_ms;
	struct timespec deadline =
		rbx_timespec_at(rbx_now_ns() + timeout_ms * 1000000ull);
	int err;

	pthread_mutex_lock(&session->set->lock);
	err = call_send(session, message, &deadline);
	if (!err)
		err = call_wait(session, &deadline);
	if (err == -ETIMEDOUT) {
		rbx_session_lose(session, "no answer for %u ms", timeout_ms);
		rbx_error(err, "%s did not answer for %u ms", session->address,
			  timeout_ms);
	} else if (err) {
		rbx_error(err, "%s is not connected: %s", session->address,
			  session->lost_reason);
	} else {
		*answer = session->answer;
		err = answer_judge(session, answer, expected);
	}
	pthread_mutex_unlock(&session->set->lock);
	return err;
}

/* ---- Receiving ------------------------------------------------------------*/

void rbx_session_callback_begin(struct rbx_session *session)
{
	session->callback_running = true;
	pthread_mutex_unlock(&session->set->lock);
}

void rbx_session_callback_end(struct rbx_session *session)
{
	pthread_mutex_lock(&session->set->lock);
	session->callback_running = false;
	pthread_cond_broadcast(&session->changed);
}

void rbx_session_tell_lost(struct rbx_session *session)
{
	char reason[RBX_ERROR_TEXT_MAX];

	session->lost_untold = false;
	if (session->closing)
		return;
	memcpy(reason, session->lost_reason, sizeof(reason));
	rbx_session_callback_begin(session);
	session->events.lost(session, reason, session->events.user);
	rbx_session_callback_end(session);
}

static void tell_evict(struct rbx_session *session,
		       const struct rbx_wire_evict *evict)
{
	if (session->closing)
		return;
	rbx_session_callback_begin(session);
	session->events.evict(session, evict->slab_id, evict->grace_ms,
			      session->events.user);
	rbx_session_callback_end(session);
}

static void note_free_bytes(struct rbx_session *session,
			    const struct rbx_wire_message *message)
{
	switch (message->type) {
	case RBX_WIRE_SLAB_GRANT:
		RBX_STORE_RELAXED(&session->free_bytes, message->grant.free_bytes);
		break;
	case RBX_WIRE_SLAB_UNMAPPED:
		RBX_STORE_RELAXED(&session->free_bytes, message->free_bytes);
		break;
	case RBX_WIRE_HEARTBEAT_REPLY:
		RBX_STORE_RELAXED(&session->free_bytes, message->heartbeat_reply.free_bytes);
		break;
	}
}

static void message_handle(struct rbx_session *session,
			   const struct rbx_wire_message *message)
{
	note_free_bytes(session, message);
	if (message->request_id && message->request_id == session->call_id &&
	    !session->call_answered) {
		session->answer = *message;
		session->call_answered = true;
		rbx_lease_answered(&session->lease, session->call_sent_ns);
		pthread_cond_broadcast(&session->changed);
	} else if (message->type == RBX_WIRE_HEARTBEAT_REPLY &&
		   session->lease.heartbeat_is_out &&
		   message->request_id == session->heartbeat_id) {
		session->lease.heartbeat_is_out = false;
		rbx_lease_answered(&session->lease,
				   session->lease.heartbeat_ns);
	} else if (message->type == RBX_WIRE_SLAB_EVICT &&
		   session->status == RBX_SESSION_UP) {
		tell_evict(session, &message->evict);
	} else if (message->type == RBX_WIRE_LETTER &&
		   session->status == RBX_SESSION_UP) {
		rbx_session_letter_received(session, &message->letter);
	} else if (message->type == RBX_WIRE_LETTER_TAKEN &&
		   session->status == RBX_SESSION_UP) {
		rbx_session_letter_taken(session, &message->letter_taken);
	} else if (message->type == RBX_WIRE_ERROR) {
		rbx_session_lose(session, "the server ended the session: %s",
				 rbx_reason_sentence(message->status));
	} else {
		rbx_session_lose(session, "a message that nobody asked for");
	}
}

static void receive_completed(struct rbx_session *session, uint32_t slot,
			      uint32_t length_bytes)
{
	uint32_t generation = session->generation;
	struct rbx_wire_message message;
	int err = -EBADMSG;

	if (length_bytes <= RBX_WIRE_MESSAGE_BYTES_MAX)
		err = rbx_wire_decode(buffer_of(session, slot), length_bytes,
				      &message);
	if (err) {
		rbx_session_lose(session, "a message that is no message");
		return;
	}
	/* The bytes were copied out: the buffer is free before a callback may
	 * give up the lock, after which the session may be gone. */
	if (receive_post(session, slot)) {
		rbx_session_lose(session, "cannot post a receive");
		return;
	}
	RBX_ASSERT(session->generation == generation);
	rbx_lease_heard(&session->lease, rbx_now_ns());
	message_handle(session, &message);
}

void rbx_session_completed(struct rbx_session_set *set, const struct rbx_wc *wc)
{
	uint32_t index = (uint32_t)(wc->wr_id >> 16) & 0xffff;
	uint32_t slot = (uint32_t)wc->wr_id & 0xffff;
	struct rbx_session *session = set->sessions[index];

	RBX_ASSERT(index < RBX_SESSIONS_MAX && slot < SLOTS_PER_SESSION);
	if (!session || session->generation != wc->wr_id >> 32)
		return; /* its connection has ended since */
	if (wc->status == -ECANCELED) {
		rbx_session_lose(session, "the connection was ended");
	} else if (wc->status) {
		rbx_session_lose(session, "the connection failed: %s",
				 strerror(-wc->status));
	} else if (slot < RBX_SESSION_RECEIVES) {
		receive_completed(session, slot, wc->length_bytes);
	} else {
		session->sends_busy &= ~(1u << (slot - RBX_SESSION_RECEIVES));
		rbx_session_letters_send(session);
		pthread_cond_broadcast(&session->changed);
	}
}
