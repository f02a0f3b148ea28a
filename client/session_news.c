/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_news.c - the clock of a session, and the news for its owner.
 *
 * Messages and the clock come in one thread or in several, depending on the host. The thread
 * that finds news tells it; until all of it is told the others wait.
 */
#include "client/session_state.h"

void rbx_session_tell_begin(struct rbx_session *session)
{
	while (session->teller)
		rbx_monitor_wait(&session->monitor);
	RBX_STORE_RELAXED(&session->teller, rbx_thread_self());
}

static void tell_user_message(const struct rbx_session *session)
{
	const struct rbx_session_listener *to = &session->listener;
	const struct rbx_wire_user_message *user_message =
		&session->borrower.user_message;

	to->message(to->peer, user_message->bytes, user_message->length_bytes,
		    to->user);
	if (to->heard_count)
		RBX_ADD_RELAXED(to->heard_count, 1);
}

/* The data of a piece of news stays valid until the next is asked for. */
static void tell(const struct rbx_session *session, enum rbx_borrower_news news,
		 const char *away)
{
	const struct rbx_session_events *events = &session->events;

	switch (news) {
	case RBX_BORROWER_NO_NEWS:
		break;
	case RBX_BORROWER_LOST:
		events->lost(events->user, away);
		break;
	case RBX_BORROWER_EVICT:
		events->evict(events->user, &session->borrower.eviction);
		break;
	case RBX_BORROWER_DRAINS:
		if (events->drains)
			events->drains(events->user);
		break;
	case RBX_BORROWER_HEAR:
		tell_user_message(session);
		break;
	case RBX_BORROWER_ENDS:
		rbx_user_message_ends_tell(&session->borrower.ends);
		break;
	}
}

void rbx_session_tell_end(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	char away[RBX_SESSION_WHY_BYTES];
	enum rbx_borrower_news news;

	while ((news = rbx_borrower_news(borrower)) != RBX_BORROWER_NO_NEWS) {
		rbx_port_copy(away, session->away, sizeof(away));
		rbx_monitor_leave(&session->monitor);
		tell(session, news, away);
		rbx_monitor_enter(&session->monitor);
		if (news == RBX_BORROWER_HEAR)
			rbx_borrower_user_message_heard(borrower);
		rbx_session_pump(session); /* also wakes threads that wait for room */
	}
	RBX_STORE_RELAXED(&session->teller, 0);
	rbx_monitor_wake(&session->monitor);
}

uint64_t rbx_session_tick(struct rbx_session *session, uint64_t now_ns)
{
	uint64_t due_ns;

	rbx_monitor_enter(&session->monitor);
	rbx_session_tell_begin(session);
	due_ns = rbx_borrower_tick(&session->borrower, now_ns);
	rbx_session_pump(session);
	rbx_session_tell_end(session);
	rbx_monitor_leave(&session->monitor);
	return due_ns;
}
