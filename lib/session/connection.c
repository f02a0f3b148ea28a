/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.c - one control connection of a session: what the borrower says goes out,
 * what comes goes to the borrower.
 *
 * Receives are always posted, so that the end of the connection shows at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/session/state.h"

/* Slots from 0 are receives, from RBX_CLIENT_RECEIVES on sends. */
static uint8_t *buffer_of(const struct rbx_session *session, uint32_t slot)
{
	size_t number = session->index * RBX_SESSION_SLOTS + slot;

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
	const struct rbx_sge buffer = {
		.addr = (uintptr_t)buffer_of(session, slot),
		.length_bytes = RBX_WIRE_MESSAGE_BYTES_MAX,
		.lkey = set->buffers_mr->lkey,
	};
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = wr_id_of(session, slot),
		.sges = &buffer,
		.sge_count = 1,
	};

	return set->ops->post_recv(session->qp, &wr, &bad);
}

/* The borrower's sentence, with what belongs to it. */
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

static void connection_end(struct rbx_session *session)
{
	session->set->ops->destroy_qp(session->qp);
	session->qp = NULL;
	session->generation = ++session->set->last_generation;
}

int rbx_session_connection_start(struct rbx_session *session, struct rbx_qp *qp)
{
	uint32_t slot;
	int err;

	RBX_ASSERT(!session->qp);
	session->qp = qp;
	session->generation = ++session->set->last_generation;
	for (slot = 0; slot < RBX_CLIENT_RECEIVES; slot++) {
		err = receive_post(session, slot);
		if (err) {
			connection_end(session);
			return rbx_error(err, "cannot post a receive: %s",
					 strerror(-err));
		}
	}
	return 0;
}

static int message_post(struct rbx_session *session, uint32_t slot,
			const struct rbx_wire_message *message)
{
	struct rbx_session_set *set = session->set;
	uint8_t *buffer = buffer_of(session, RBX_CLIENT_RECEIVES + slot);
	struct rbx_sge sge = {
		.addr = (uintptr_t)buffer,
		.length_bytes = (uint32_t)rbx_wire_encode(message, buffer),
		.lkey = set->buffers_mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = wr_id_of(session, RBX_CLIENT_RECEIVES + slot),
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};

	return set->ops->post_send(session->qp, &wr, &bad);
}

void rbx_session_pump(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	struct rbx_wire_message message;
	int slot, err;

	/* Bounded: each takes a send buffer, and only completions free them. */
	while ((slot = rbx_borrower_next(borrower, rbx_now_ns(), &message)) >=
	       0) {
		err = message_post(session, (uint32_t)slot, &message);
		if (err)
			rbx_borrower_lost(borrower, "cannot post a message",
					  err);
	}
	if (session->qp && borrower->phase == RBX_BORROWER_AWAY) {
		away_note(session);
		connection_end(session);
	}
	rbx_session_ask_end(session);
	pthread_cond_broadcast(&session->changed);
	if (!pthread_equal(pthread_self(), session->set->thread))
		rbx_session_set_wake(session->set);
}

/* The bytes have been copied out when the buffer is posted again, and it is before
 * anything is said or told. */
static void receive_completed(struct rbx_session *session, uint32_t slot,
			      uint32_t length_bytes)
{
	struct rbx_borrower *borrower = &session->borrower;

	rbx_borrower_message(borrower, buffer_of(session, slot), length_bytes,
			     rbx_now_ns());
	if (borrower->phase != RBX_BORROWER_AWAY && receive_post(session, slot))
		rbx_borrower_lost(borrower, "cannot post a receive", 0);
}

void rbx_session_completed(struct rbx_session_set *set, const struct rbx_wc *wc)
{
	uint32_t index = (uint32_t)(wc->wr_id >> 16) & 0xffff;
	uint32_t slot = (uint32_t)wc->wr_id & 0xffff;
	struct rbx_session *session = set->sessions[index];

	RBX_ASSERT(index < RBX_SESSIONS_MAX && slot < RBX_SESSION_SLOTS);
	if (!session || session->generation != wc->wr_id >> 32)
		return; /* its connection has ended since */
	if (wc->status && session->qp->cut_off)
		rbx_borrower_lost(&session->borrower, session->qp->cut_off, 0);
	else if (wc->status == -ECANCELED)
		rbx_borrower_lost(&session->borrower,
				  "the connection was ended", 0);
	else if (wc->status)
		rbx_borrower_lost(&session->borrower, "the connection failed",
				  wc->status);
	else if (slot < RBX_CLIENT_RECEIVES)
		receive_completed(session, slot, wc->length_bytes);
	else
		rbx_borrower_sent(&session->borrower,
				  slot - RBX_CLIENT_RECEIVES);
	rbx_session_pump(session);
	rbx_session_tell_news(session);
}
