/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * letters.c - what the programs on both sides say to each other.
 *
 * Which letter is sent, sent again, or was heard before, the mailbox of the
 * session knows (core/mailbox.h); here it meets the connection and the program.
 * A letter leaves from the send buffer of its number; it waits where the buffer
 * is still under way, and goes when the completion of that is seen.
 *
 * LETTER_TAKEN has one send buffer. Where it is under way the next one is owed,
 * and then tells of all letters that were heard meanwhile. It is also the first
 * thing said on a new connection: the server sends no letter before it.
 *
 * While the connection is lost letters stay, and more can be submitted. They
 * end where the owner gives up (rbx_session_give_up()) or closes the session:
 * both leave that to the control thread, so that each end is told by it, in
 * order. The handler and the ends are called without the lock; the session
 * cannot go meanwhile (rbx_session_callback_begin()), but its connection can.
 */
#include <errno.h>

#include "lib/error.h"
#include "lib/session/state.h"

static uint32_t letter_slot(uint64_t sequence)
{
	return RBX_SESSION_SEND_LETTER +
	       (uint32_t)(sequence % RBX_WIRE_LETTERS_MAX);
}

static bool slot_is_free(const struct rbx_session *session, uint32_t slot)
{
	return !(session->sends_busy & 1u << slot);
}

void rbx_session_letters_send(struct rbx_session *session)
{
	struct rbx_wire_message m;

	if (session->status == RBX_SESSION_UP && session->receipt_owed &&
	    slot_is_free(session, RBX_SESSION_SEND_RECEIPT)) {
		session->receipt_owed = false;
		m = rbx_mailbox_receipt(&session->mailbox,
					!session->listener.message);
		rbx_session_send(session, RBX_SESSION_SEND_RECEIPT, &m);
	}
	/* Sending may find that the connection is lost. */
	while (session->status == RBX_SESSION_UP && !session->closing &&
	       rbx_mailbox_next(&session->mailbox, &m)) {
		uint32_t slot = letter_slot(m.letter.sequence);

		if (!slot_is_free(session, slot))
			break;
		rbx_mailbox_sent(&session->mailbox);
		rbx_session_send(session, slot, &m);
	}
}

/* ---- What the server says ---------------------------------------------------*/

static void letter_hand_over(struct rbx_session *session,
			     const struct rbx_wire_letter *letter)
{
	struct rbx_session_listener to = session->listener;

	if (to.message) {
		rbx_session_callback_begin(session);
		to.message(to.peer, letter->bytes, letter->length_bytes,
			   to.user);
		rbx_session_callback_end(session);
		RBX_ADD_RELAXED(to.heard_count, 1);
	}
	rbx_mailbox_heard(&session->mailbox);
}

void rbx_session_letter_received(struct rbx_session *session,
				 const struct rbx_wire_letter *letter)
{
	if (session->closing)
		return; /* it hears that we are gone */
	switch (rbx_mailbox_judge(&session->mailbox, letter->sequence)) {
	case RBX_LETTER_NEW:
		letter_hand_over(session, letter);
		break;
	case RBX_LETTER_AGAIN:
		break;
	case RBX_LETTER_AHEAD:
		rbx_session_lose(session, "a message of the server is missing");
		return;
	}
	session->receipt_owed = true;
	rbx_session_letters_send(session);
}

static void ends_tell(struct rbx_session *session,
		      const struct rbx_letter_ends *ends)
{
	if (!ends->count)
		return;
	rbx_session_callback_begin(session);
	rbx_letter_ends_tell(ends);
	rbx_session_callback_end(session); /* and wakes who waits for room */
}

void rbx_session_letter_taken(struct rbx_session *session,
			      const struct rbx_wire_letter_taken *taken)
{
	struct rbx_letter_ends ends;

	if (rbx_mailbox_taken(&session->mailbox, taken, &ends)) {
		rbx_session_lose(session, "the server has had a message that "
					  "was never sent");
		return;
	}
	rbx_session_letters_send(session);
	ends_tell(session, &ends);
}

void rbx_session_letters_stop(struct rbx_session *session, int status)
{
	if (!session->letters_status)
		session->letters_status = status;
	rbx_session_set_wake(session->set);
}

void rbx_session_letters_end(struct rbx_session *session)
{
	struct rbx_letter_ends ends;

	rbx_mailbox_end(&session->mailbox, session->letters_status, &ends);
	ends_tell(session, &ends);
}

/* ---- The calls of session.h ----------------------------------------------*/

static int put_locked(struct rbx_session *session, const void *bytes,
		      size_t length_bytes,
		      void (*done)(int status, void *user), void *user)
{
	int err = session->letters_status;

	if (err)
		return rbx_error(err, "%s is down: %s", session->address,
				 session->lost_reason);
	err = rbx_mailbox_put(&session->mailbox, bytes, (uint32_t)length_bytes,
			      done, user);
	if (!err)
		rbx_session_letters_send(session);
	return err;
}

int rbx_session_letter_submit(struct rbx_session *session, const void *bytes,
			      size_t length_bytes,
			      void (*done)(int status, void *user), void *user)
{
	int err;

	pthread_mutex_lock(&session->set->lock);
	err = put_locked(session, bytes, length_bytes, done, user);
	pthread_mutex_unlock(&session->set->lock);
	if (err == -EAGAIN)
		rbx_error(err, "%u messages to %s wait already: send again "
			       "when one of them has ended",
			  RBX_LETTERS_MAX, session->address);
	return err;
}

/* Who waits for the end of a letter. */
struct waiter {
	int status;
	bool done; /* atomic: released after status, by the control thread */
};

static void waiter_done(int status, void *user)
{
	struct waiter *waiter = user;

	waiter->status = status;
	/* The last access to it: who waits acquires this and returns. */
	RBX_STORE_RELEASE(&waiter->done, true);
}

static const char *end_sentence(int status)
{
	switch (status) {
	case -EOPNOTSUPP:
		return "nobody listens to messages there";
	case -ECANCELED:
		return "the peer was closed";
	default:
		return "it is down, and may have had the message or not";
	}
}

int rbx_session_letter_send(struct rbx_session *session, const void *bytes,
			    size_t length_bytes)
{
	struct rbx_session_set *set = session->set;
	struct waiter waiter = { 0 };
	int err;

	if (pthread_equal(pthread_self(), set->thread))
		return rbx_error(-EDEADLK, "a message handler cannot wait; "
					   "submit the message instead");
	pthread_mutex_lock(&set->lock);
	while ((err = put_locked(session, bytes, length_bytes, waiter_done,
				 &waiter)) == -EAGAIN)
		pthread_cond_wait(&session->changed, &set->lock);
	while (!err && !RBX_LOAD_ACQUIRE(&waiter.done))
		pthread_cond_wait(&session->changed, &set->lock);
	pthread_mutex_unlock(&set->lock);
	if (!err && waiter.status)
		err = rbx_error(waiter.status, "%s: %s", session->address,
				end_sentence(waiter.status));
	return err;
}

int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener)
{
	int err = 0;

	pthread_mutex_lock(&session->set->lock);
	if (session->listener.message || session->mailbox.heard_sequence)
		err = rbx_error(-EBUSY, "%s: there is a message handler, or a "
					"message has come that nobody heard",
				session->address);
	else
		session->listener = *listener;
	pthread_mutex_unlock(&session->set->lock);
	return err;
}

void rbx_session_give_up(struct rbx_session *session)
{
	pthread_mutex_lock(&session->set->lock);
	rbx_session_letters_stop(session, -EHOSTUNREACH);
	/* Heartbeats would keep the lease, and what the server lent us, alive. */
	rbx_session_connection_end(session);
	pthread_mutex_unlock(&session->set->lock);
}
