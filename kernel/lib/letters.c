/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * letters.c - what the programs on both sides of a session say to each other.
 *
 * Which letter is sent, sent again, or was heard before, the mailbox of the session
 * knows (core/mailbox.h); here it meets the connection. A letter leaves from the send
 * buffer of its number, and waits where that is still under way. LETTER_TAKEN has a
 * buffer of its own; where that is under way the next one is owed, and then tells of
 * all that were heard meanwhile. It is also the first thing said on a new connection:
 * the server sends no letter before it.
 *
 * While the connection is lost letters stay, and more can be put in. They end where
 * the session is given up or closed. The handler and the ends are called without the
 * lock, one at a time: by the workqueue of the one connection there is, or by who
 * has closed it.
 */
#include "kernel/lib/session.h"

static enum rbx_session_send letter_slot(uint64_t sequence)
{
	return RBX_SESSION_SEND_LETTER +
	       (enum rbx_session_send)(sequence % RBX_WIRE_LETTERS_MAX);
}

void rbx_session_letters_send_locked(struct rbx_session *session)
{
	struct rbx_wire_message m;

	if (session->status != RBX_SESSION_UP || session->closing)
		return;
	if (session->receipt_owed &&
	    rbx_control_slot_is_free(session, RBX_SESSION_SEND_RECEIPT)) {
		session->receipt_owed = false;
		m = rbx_mailbox_receipt(&session->mailbox,
					!session->listener.message);
		rbx_control_send_locked(session, RBX_SESSION_SEND_RECEIPT, &m);
	}
	while (rbx_mailbox_next(&session->mailbox, &m) &&
	       rbx_control_slot_is_free(session,
					letter_slot(m.letter.sequence))) {
		enum rbx_session_send slot = letter_slot(m.letter.sequence);

		rbx_mailbox_sent(&session->mailbox);
		rbx_control_send_locked(session, slot, &m);
	}
}

/* ---- What the server says ---------------------------------------------------*/

static void letter_received(struct rbx_session *session,
			    const struct rbx_wire_letter *letter)
{
	struct rbx_session_listener to;
	enum rbx_letter_verdict verdict;

	spin_lock_irq(&session->lock);
	verdict = rbx_mailbox_judge(&session->mailbox, letter->sequence);
	to = session->listener;
	spin_unlock_irq(&session->lock);
	if (verdict == RBX_LETTER_AHEAD) {
		rbx_session_lose(session, "a message of the server is missing");
		return;
	}
	if (verdict == RBX_LETTER_NEW && to.message)
		to.message(to.peer, letter->bytes, letter->length_bytes,
			   to.user);
	spin_lock_irq(&session->lock);
	if (verdict == RBX_LETTER_NEW)
		rbx_mailbox_heard(&session->mailbox);
	session->receipt_owed = true;
	rbx_session_letters_send_locked(session);
	spin_unlock_irq(&session->lock);
}

static void letter_taken(struct rbx_session *session,
			 const struct rbx_wire_letter_taken *taken)
{
	struct rbx_letter_ends ends;
	int err;

	spin_lock_irq(&session->lock);
	err = rbx_mailbox_taken(&session->mailbox, taken, &ends);
	if (!err)
		rbx_session_letters_send_locked(session);
	spin_unlock_irq(&session->lock);
	if (err) {
		rbx_session_lose(session,
				 "the server has had a message that was never sent");
		return;
	}
	wake_up_all(&session->changed); /* there is room */
	rbx_letter_ends_tell(&ends);
}

void rbx_session_letter(struct rbx_session *session,
			const struct rbx_wire_message *message)
{
	if (message->type == RBX_WIRE_LETTER)
		letter_received(session, &message->letter);
	else
		letter_taken(session, &message->letter_taken);
}

void rbx_session_letters_end(struct rbx_session *session, int status)
{
	struct rbx_letter_ends ends;

	spin_lock_irq(&session->lock);
	session->letters_status = status;
	rbx_mailbox_end(&session->mailbox, status, &ends);
	spin_unlock_irq(&session->lock);
	wake_up_all(&session->changed);
	rbx_letter_ends_tell(&ends);
}

/* ---- The calls of session.h -----------------------------------------------*/

int rbx_session_letter_submit(struct rbx_session *session, const void *bytes,
			      size_t length_bytes,
			      void (*done)(int status, void *user), void *user)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&session->lock, flags);
	err = session->letters_status;
	if (!err)
		err = rbx_mailbox_put(&session->mailbox, bytes,
				      (uint32_t)length_bytes, done, user);
	if (!err)
		rbx_session_letters_send_locked(session);
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
	bool room;

	spin_lock_irq(&session->lock);
	room = session->letters_status ||
	       rbx_mailbox_outstanding(&session->mailbox) < RBX_LETTERS_MAX;
	spin_unlock_irq(&session->lock);
	return room;
}

int rbx_session_letter_send(struct rbx_session *session, const void *bytes,
			    size_t length_bytes)
{
	struct waiter waiter;
	int err;

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
	int err = 0;

	spin_lock_irq(&session->lock);
	if (session->listener.message || session->mailbox.heard_sequence)
		err = -EBUSY;
	else
		session->listener = *listener;
	spin_unlock_irq(&session->lock);
	return err;
}
