/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_ask.c - takes and releases a session, and queues asks until each is given to the
 * borrower.
 */
#include "client/session_state.h"

/* How often a slab is asked for if the session is resumed again and again. */
#define ASK_TRIES 8u

/* ---- Taking ----------------------------------------------------------------------*/

void rbx_session_take_entered(struct rbx_session *session)
{
	while (session->is_taken)
		rbx_monitor_wait(&session->monitor);
	session->is_taken = true;
}

void rbx_session_release_entered(struct rbx_session *session)
{
	session->is_taken = false;
	rbx_session_ask_next(session);
	rbx_monitor_wake(&session->monitor);
}

void rbx_session_take(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	rbx_session_take_entered(session);
	rbx_monitor_leave(&session->monitor);
}

void rbx_session_release(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	rbx_session_release_entered(session);
	rbx_monitor_leave(&session->monitor);
}

void rbx_session_caller_leaves(struct rbx_session *session)
{
	if (!--session->callers_count)
		rbx_monitor_wake(&session->monitor); /* it may be being closed */
}

uint32_t rbx_session_left_ms(const struct rbx_session *session)
{
	uint64_t now_ns = rbx_now_ns();

	if (!session->until_ns)
		return rbx_session_silence_ms(session);
	if (session->until_ns < now_ns + RBX_NS_PER_MS)
		return 1;
	return (uint32_t)((session->until_ns - now_ns) / RBX_NS_PER_MS);
}

/* ---- Failing ---------------------------------------------------------------------*/

int rbx_session_guard(const struct rbx_session *session)
{
	if (RBX_LOAD_RELAXED(&session->teller) != rbx_thread_self())
		return 0;
	return rbx_error(-EDEADLK,
			 "%s: a callback cannot wait, because its thread has to go on",
			 session->address.name);
}

int rbx_session_error(struct rbx_session *session, int err, bool is_refused,
		      const char *why)
{
	if (err == -ENOTCONN)
		return rbx_error(err, "%s is not connected: %s",
				 session->address.name, session->away);
	return rbx_error(err, "%s%s: %s", session->address.name,
			 is_refused ? " refused" : "", why);
}

int rbx_session_call_error(struct rbx_session *session, int err)
{
	const struct rbx_call *call = &session->borrower.call;

	return rbx_session_error(session, err,
				 call->message.type == RBX_WIRE_ERROR,
				 call->why);
}

/* ---- Asks -------------------------------------------------------------------------- */

void rbx_session_wait_call(struct rbx_session *session)
{
	while (!rbx_borrower_call_is_over(&session->borrower))
		rbx_monitor_wait(&session->monitor);
}

static void ask_over(struct rbx_session *session, struct rbx_ask *ask)
{
	rbx_monitor_wake(&session->monitor);
	if (ask->over)
		ask->over(ask);
}

/* No thread or ask has taken the session, or there is no server to ask. */
static void ask_send(struct rbx_session *session, struct rbx_ask *ask)
{
	rbx_borrower_ask(&session->borrower, ask,
			 rbx_session_silence_ms(session), rbx_now_ns());
	if (ask->state == RBX_ASK_OVER)
		return;
	session->is_taken = true;
	rbx_session_pump(session);
	rbx_clock_soon(session->clock); /* its deadline counts */
}

/* While the session is being resumed there is no server to ask. A volume uses its other
 * servers meanwhile. */
static bool may_ask(const struct rbx_session *session)
{
	return (!session->is_taken && !session->asks_are_held) ||
	       session->borrower.phase != RBX_BORROWER_UP;
}

void rbx_session_ask_next(struct rbx_session *session)
{
	/* Bounded: each pass takes one off the list. */
	while (session->asks_first && may_ask(session)) {
		struct rbx_ask *ask = session->asks_first;

		session->asks_first = ask->next;
		ask_send(session, ask);
		if (ask->state == RBX_ASK_OVER)
			ask_over(session, ask);
	}
}

void rbx_session_ask_end(struct rbx_session *session)
{
	struct rbx_ask *ask = session->borrower.asked;

	if (!rbx_borrower_ask_end(&session->borrower))
		return;
	session->is_taken = false;
	ask_over(session, ask);
}

void rbx_session_asks_cancel(struct rbx_session *session)
{
	static const char why[] = "it is being closed";
	struct rbx_ask *ask;

	while ((ask = session->asks_first)) {
		session->asks_first = ask->next;
		ask->state = RBX_ASK_OVER;
		ask->status = -ECANCELED;
		ask->is_refused = false;
		ask->why = why;
		ask_over(session, ask);
	}
	if (session->borrower.asked &&
	    !rbx_borrower_call_is_over(&session->borrower))
		rbx_borrower_call_leave(&session->borrower, -ECANCELED, why);
	rbx_session_pump(session);
}

static void ask_begin(struct rbx_session *session, struct rbx_ask *ask)
{
	struct rbx_ask **end = &session->asks_first;

	ask->next = NULL;
	if (!*end && may_ask(session)) {
		ask_send(session, ask);
		return;
	}
	ask->state = RBX_ASK_WAITS;
	while (*end) /* bounded by the callers, and one of a volume */
		end = &(*end)->next;
	*end = ask;
}

static int ask_status(struct rbx_session *session, const struct rbx_ask *ask)
{
	if (!ask->status)
		return 0;
	return rbx_session_error(session, ask->status, ask->is_refused,
				 ask->why);
}

/* Whether a resume has ended the ask, and so has taken back what may have been lent. Waits
 * until the resume is over. */
static bool is_to_be_asked_anew(struct rbx_session *session,
				const struct rbx_ask *ask)
{
	if (ask->kind != RBX_CALL_MAP || ask->status != -ENOTCONN)
		return false;
	while (session->asks_are_held)
		rbx_monitor_wait(&session->monitor);
	return session->borrower.phase == RBX_BORROWER_UP &&
	       !session->borrower.closing;
}

static int ask_and_wait(struct rbx_session *session, struct rbx_ask *ask)
{
	int err = rbx_session_guard(session);
	uint32_t tries = 0;
	bool could_be_asked;

	if (err)
		return err;
	rbx_monitor_enter(&session->monitor);
	session->callers_count++;
	do {
		ask_begin(session, ask);
		could_be_asked = ask->state != RBX_ASK_OVER;
		while (ask->state != RBX_ASK_OVER)
			rbx_monitor_wait(&session->monitor);
	} while (could_be_asked && ++tries < ASK_TRIES &&
		 is_to_be_asked_anew(session, ask));
	err = ask_status(session, ask);
	rbx_session_caller_leaves(session);
	rbx_monitor_leave(&session->monitor);
	return err;
}

void rbx_session_ask(struct rbx_session *session, struct rbx_ask *ask)
{
	rbx_monitor_enter(&session->monitor);
	ask_begin(session, ask);
	rbx_monitor_leave(&session->monitor);
}

int rbx_session_answer(struct rbx_session *session, struct rbx_ask *ask,
		       struct rbx_loan *loan)
{
	int err = -EAGAIN;

	rbx_monitor_enter(&session->monitor);
	if (ask->state == RBX_ASK_OVER) {
		err = ask_status(session, ask);
		*loan = ask->loan;
	}
	rbx_monitor_leave(&session->monitor);
	return err;
}

int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan)
{
	return rbx_session_map_for(session, &(struct rbx_wire_map){ 0 }, loan);
}

int rbx_session_map_for(struct rbx_session *session, const struct rbx_wire_map *map,
			struct rbx_loan *loan)
{
	struct rbx_ask ask = { .kind = RBX_CALL_MAP, .map = *map };
	int err = ask_and_wait(session, &ask);

	if (!err)
		*loan = ask.loan;
	return err;
}

int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan)
{
	struct rbx_ask ask = { .kind = RBX_CALL_UNMAP, .loan = *loan };

	return ask_and_wait(session, &ask);
}

int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan)
{
	struct rbx_ask ask = { .kind = RBX_CALL_CHECK, .loan = *loan };

	return ask_and_wait(session, &ask);
}

int rbx_session_talk(struct rbx_session *session, struct rbx_wire_message *message)
{
	struct rbx_ask ask = { .kind = RBX_CALL_TALK, .message = message };

	return ask_and_wait(session, &ask);
}

/* ---- Data queue pairs ----------------------------------------------------------------*/

int rbx_session_attach_begin(struct rbx_session *session, uint64_t until_ns,
			     struct rbx_wire_attach *attach)
{
	int err = rbx_session_guard(session);

	if (err)
		return err;
	rbx_monitor_enter(&session->monitor);
	session->callers_count++;
	rbx_session_take_entered(session);
	if (session->borrower.phase != RBX_BORROWER_UP) {
		err = rbx_session_error(session, -ENOTCONN, false, NULL);
		rbx_session_release_entered(session);
		rbx_session_caller_leaves(session);
	}
	rbx_monitor_leave(&session->monitor);
	if (err)
		return err;
	session->until_ns = until_ns;
	rbx_borrower_attach(&session->borrower, attach);
	return 0;
}

void rbx_session_attach_end(struct rbx_session *session)
{
	session->until_ns = 0;
	rbx_monitor_enter(&session->monitor);
	rbx_session_release_entered(session);
	rbx_session_caller_leaves(session);
	rbx_monitor_leave(&session->monitor);
}
