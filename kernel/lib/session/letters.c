/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * letters.c - what the programs on both sides say to each other.
 *
 * Which letter is sent, sent again, or was heard before, the borrower and its mailbox
 * know. While the connection is lost letters stay, and more can be submitted. They end
 * when the session is given up or closed. The handler and the ends are told without the
 * lock, one at a time (news.c).
 */
#include <linux/completion.h>

#include "kernel/lib/session/state.h"

int rbx_session_letter_submit(struct rbx_session *session, const void *bytes,
			      size_t length_bytes,
			      void (*done)(int status, void *user), void *user)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&session->lock, flags);
	err = rbx_borrower_letter_put(&session->borrower, bytes,
				      (uint32_t)length_bytes, done, user);
	if (!err)
		rbx_session_pump_locked(session);
	spin_unlock_irqrestore(&session->lock, flags);
	return err;
}

struct waiter {
	struct completion done;
	int status;
};

static void waiter_done(int status, void *user)
{
	struct waiter *waiter = user;

	waiter->status = status;
	complete(&waiter->done); /* the last access to it */
}

static bool has_room(struct rbx_session *session)
{
	const struct rbx_borrower *borrower = &session->borrower;
	bool room;

	spin_lock_irq(&session->lock);
	room = borrower->letters_status ||
	       rbx_mailbox_outstanding(&borrower->mailbox) < RBX_LETTERS_MAX;
	spin_unlock_irq(&session->lock);
	return room;
}

int rbx_session_letter_send(struct rbx_session *session, const void *bytes,
			    size_t length_bytes)
{
	struct waiter waiter;
	int err;

	if (rbx_session_is_telling(session))
		return -EDEADLK;
	init_completion(&waiter.done);
	while ((err = rbx_session_letter_submit(session, bytes, length_bytes,
						waiter_done, &waiter)) ==
	       -EAGAIN)
		wait_event_idle(session->changed, has_room(session));
	if (err)
		return err;
	wait_for_completion(&waiter.done);
	return waiter.status;
}

int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener)
{
	int err;

	spin_lock_irq(&session->lock);
	err = rbx_borrower_listen(&session->borrower);
	if (!err)
		session->listener = *listener;
	spin_unlock_irq(&session->lock);
	return err;
}
