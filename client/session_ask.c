/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_ask.c - who has taken a session, and what it is asked: each question is put to
 * the borrower and waited for.
 */
#include "client/session_state.h"

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

uint32_t rbx_session_left_ms(const struct rbx_session *session)
{
	uint64_t now_ns = rbx_now_ns();

	if (!session->until_ns)
		return session->sessions->silence_ms;
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
			 "%s: a callback cannot wait, for the thread that it runs on has to go on",
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

/* ---- Questions ---------------------------------------------------------------------*/

void rbx_session_wait_call(struct rbx_session *session)
{
	while (!rbx_borrower_call_is_over(&session->borrower))
		rbx_monitor_wait(&session->monitor);
}

/* Nobody has taken the session, or there is nobody to ask. */
static void ask_send(struct rbx_session *session, struct rbx_ask *ask)
{
	rbx_borrower_ask(&session->borrower, ask,
			 session->sessions->silence_ms, rbx_now_ns());
	if (ask->state == RBX_ASK_OVER)
		return;
	session->is_taken = true;
	rbx_session_pump(session);
	rbx_clock_soon(session->clock); /* its deadline counts */
}

/* While it is being resumed there is nobody to ask; who looks after a volume has others
 * meanwhile. */
static void ask_begin(struct rbx_session *session, struct rbx_ask *ask)
{
	rbx_monitor_enter(&session->monitor);
	ask->state = RBX_ASK_WAITS;
	if (!session->is_taken || session->borrower.phase != RBX_BORROWER_UP)
		ask_send(session, ask);
	rbx_monitor_leave(&session->monitor);
}

static int ask_wait(struct rbx_session *session, struct rbx_ask *ask)
{
	int err = 0;

	rbx_monitor_enter(&session->monitor);
	while (ask->state != RBX_ASK_OVER) {
		if (ask->state == RBX_ASK_WAITS && !session->is_taken)
			ask_send(session, ask);
		else
			rbx_monitor_wait(&session->monitor);
	}
	if (ask->status)
		err = rbx_session_error(session, ask->status, ask->is_refused,
					ask->why);
	rbx_monitor_leave(&session->monitor);
	return err;
}

static int ask_and_wait(struct rbx_session *session, enum rbx_call_kind kind,
			const struct rbx_loan *loan)
{
	struct rbx_ask ask = { .kind = (uint8_t)kind, .loan = *loan };
	int err = rbx_session_guard(session);

	if (err)
		return err;
	ask_begin(session, &ask);
	return ask_wait(session, &ask);
}

void rbx_session_ask(struct rbx_session *session, struct rbx_ask *ask)
{
	*ask = (struct rbx_ask){ .kind = RBX_CALL_MAP };
	ask_begin(session, ask);
}

int rbx_session_answer(struct rbx_session *session, struct rbx_ask *ask,
		       struct rbx_loan *loan)
{
	int err = ask_wait(session, ask);

	if (!err)
		*loan = ask->loan;
	return err;
}

int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan)
{
	struct rbx_ask ask;
	int err = rbx_session_guard(session);

	if (err)
		return err;
	rbx_session_ask(session, &ask);
	return rbx_session_answer(session, &ask, loan);
}

int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan)
{
	return ask_and_wait(session, RBX_CALL_UNMAP, loan);
}

int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan)
{
	return ask_and_wait(session, RBX_CALL_CHECK, loan);
}

/* ---- Data queue pairs ----------------------------------------------------------------*/

int rbx_session_attach_begin(struct rbx_session *session, uint64_t until_ns,
			     struct rbx_wire_attach *attach)
{
	int err = rbx_session_guard(session);

	if (err)
		return err;
	rbx_monitor_enter(&session->monitor);
	rbx_session_take_entered(session);
	if (session->borrower.phase != RBX_BORROWER_UP) {
		err = rbx_session_error(session, -ENOTCONN, false, NULL);
		rbx_session_release_entered(session);
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
	rbx_session_release(session);
}
