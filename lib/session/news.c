/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * news.c - what the owner of a session is told, by the control thread and without the
 * lock.
 */
#include <string.h>

#include "lib/guard.h"
#include "lib/session/state.h"

static void callback_begin(struct rbx_session *session)
{
	session->callback_running = true;
	pthread_mutex_unlock(&session->set->lock);
}

static void callback_end(struct rbx_session *session)
{
	pthread_mutex_lock(&session->set->lock);
	session->callback_running = false;
	pthread_cond_broadcast(&session->changed);
}

static void tell_lost(struct rbx_session *session)
{
	char reason[RBX_ERROR_TEXT_MAX];

	memcpy(reason, session->away, sizeof(reason));
	callback_begin(session);
	session->events.lost(session->events.user, reason);
	callback_end(session);
}

static void tell_evict(struct rbx_session *session)
{
	const struct rbx_eviction eviction = session->borrower.eviction;

	callback_begin(session);
	session->events.evict(session->events.user, &eviction);
	callback_end(session);
}

static void tell_letter(struct rbx_session *session)
{
	const struct rbx_session_listener *to = &session->listener;
	const struct rbx_wire_letter *letter = &session->borrower.letter;
	const char *before;

	callback_begin(session);
	before = rbx_callback_enter("message handler");
	to->message(to->peer, letter->bytes, letter->length_bytes, to->user);
	rbx_callback_leave(before);
	callback_end(session);
	RBX_ADD_RELAXED(to->heard_count, 1);
	rbx_borrower_letter_heard(&session->borrower);
	rbx_session_pump(session);
}

static void tell_ends(struct rbx_session *session)
{
	const char *before;

	callback_begin(session);
	before = rbx_callback_enter("callback of a message");
	rbx_letter_ends_tell(&session->borrower.ends);
	rbx_callback_leave(before);
	callback_end(session); /* and wakes who waits for room */
}

void rbx_session_tell_news(struct rbx_session *session)
{
	for (;;) {
		switch (rbx_borrower_news(&session->borrower)) {
		case RBX_BORROWER_NO_NEWS:
			return;
		case RBX_BORROWER_LOST:
			tell_lost(session);
			break;
		case RBX_BORROWER_EVICT:
			tell_evict(session);
			break;
		case RBX_BORROWER_HEAR:
			tell_letter(session);
			break;
		case RBX_BORROWER_ENDS:
			tell_ends(session);
			break;
		}
	}
}
