/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * letters.c - what the programs on both sides say to each other.
 *
 * Which letter is sent, sent again, or was heard before, the borrower and its mailbox
 * know. While the connection is lost letters stay, and more can be submitted. They
 * end when the owner gives up (rbx_session_give_up()) or closes the session: the
 * control thread tells each end, in order and without the lock.
 */
#include <errno.h>

#include "lib/error.h"
#include "lib/guard.h"
#include "lib/session/state.h"

static int put_locked(struct rbx_session *session, const void *bytes,
		      size_t length_bytes,
		      void (*done)(int status, void *user), void *user)
{
	int err = rbx_borrower_letter_put(&session->borrower, bytes,
					  (uint32_t)length_bytes, done, user);

	if (!err)
		rbx_session_pump(session);
	else if (err != -EAGAIN)
		rbx_error(err, "%s is down: %s", session->address,
			  session->away);
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
	int err;

	pthread_mutex_lock(&session->set->lock);
	err = rbx_borrower_listen(&session->borrower);
	if (!err)
		session->listener = *listener;
	pthread_mutex_unlock(&session->set->lock);
	if (err)
		rbx_error(err, "%s: there is a message handler, or a message has "
			       "come that nobody heard",
			  session->address);
	return err;
}

void rbx_session_give_up(struct rbx_session *session)
{
	pthread_mutex_lock(&session->set->lock);
	rbx_borrower_letters_stop(&session->borrower, -EHOSTUNREACH);
	/* Heartbeats would keep the lease, and what the server lent us, alive. */
	rbx_borrower_drop(&session->borrower);
	rbx_session_pump(session);
	pthread_mutex_unlock(&session->set->lock);
}
