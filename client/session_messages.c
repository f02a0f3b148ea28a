/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_messages.c - user messages between the programs on both sides.
 *
 * The borrower and its mailbox know which message is sent, sent again, or was received
 * before. While the connection is lost, messages stay, and more can be submitted. They end
 * when the session is given up or closed. The handler and the ends are called without the
 * monitor, one at a time and in order (session_news.c).
 */
#include "client/session_state.h"

static int put(struct rbx_session *session, const void *bytes,
	       size_t length_bytes, void (*done)(int status, void *user),
	       void *user)
{
	int err = rbx_borrower_user_message_put(
		&session->borrower, bytes, (uint32_t)length_bytes, done, user);

	if (!err)
		rbx_session_pump(session);
	else if (err != -EAGAIN)
		rbx_error(err, "%s is down: %s", session->address.name,
			  session->away);
	return err;
}

int rbx_session_message_submit(struct rbx_session *session, const void *bytes,
			       size_t length_bytes,
			       void (*done)(int status, void *user), void *user)
{
	int err;

	rbx_monitor_enter(&session->monitor);
	err = put(session, bytes, length_bytes, done, user);
	rbx_monitor_leave(&session->monitor);
	if (err == -EAGAIN)
		rbx_error(err, "%u messages to %s wait already: send again "
			       "when one of them has ended",
			  RBX_USER_MESSAGES_MAX, session->address.name);
	return err;
}

/* A thread that waits for the end of a message. */
struct waiter {
	int status;
	bool done; /* atomic: released after status, by the teller */
};

static void waiter_done(int status, void *user)
{
	struct waiter *waiter = user;

	waiter->status = status;
	/* The last access to it: the waiting thread acquires this and returns. */
	RBX_STORE_RELEASE(&waiter->done, true);
}

static const char *end_sentence(int status)
{
	switch (status) {
	case -EOPNOTSUPP:
		return "the program there takes no messages";
	case -ECANCELED:
		return "the peer was closed";
	default:
		return "it is down, and may or may not have received the message";
	}
}

int rbx_session_message_send(struct rbx_session *session, const void *bytes,
			     size_t length_bytes)
{
	struct waiter waiter = { 0 };
	int err = rbx_session_guard(session);

	if (err)
		return err;
	rbx_monitor_enter(&session->monitor);
	session->callers_count++;
	while ((err = put(session, bytes, length_bytes, waiter_done,
			  &waiter)) == -EAGAIN)
		rbx_monitor_wait(&session->monitor);
	while (!err && !RBX_LOAD_ACQUIRE(&waiter.done))
		rbx_monitor_wait(&session->monitor);
	if (!err && waiter.status)
		err = rbx_error(waiter.status, "%s: %s", session->address.name,
				end_sentence(waiter.status));
	rbx_session_caller_leaves(session);
	rbx_monitor_leave(&session->monitor);
	return err;
}

int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener)
{
	int err;

	rbx_monitor_enter(&session->monitor);
	err = rbx_borrower_listen(&session->borrower);
	if (!err)
		session->listener = *listener;
	rbx_monitor_leave(&session->monitor);
	if (err)
		rbx_error(err, "%s: there is a message handler, or a message has "
			       "come that nobody heard",
			  session->address.name);
	return err;
}
