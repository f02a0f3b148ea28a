/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.c - the calls of session.h: each is put to the borrower and waited for.
 */
#include "lib/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/reject.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/loopback.h"
#include "lib/session/state.h"
#include "lib/sized.h"

/* How long close() waits for the server to take leave. */
#define BYE_MS 1000

#define NS_PER_MS 1000000ull

/* ---- Open, close, resume ---------------------------------------------------*/

static int address_check(const struct rbx_session_set *set, const char *address)
{
	bool is_loopback;
	int err;

	if (strlen(address) >= RBX_NAME_MAX)
		return rbx_error(-EINVAL, "the address is too long");
	if (set->options.secret || set->options.insecure)
		return 0;
	err = rbx_address_is_loopback(address, &is_loopback);
	if (err)
		return rbx_error(-EINVAL, "cannot use %s: %s", address,
				 rbx_last_error());
	if (!is_loopback)
		return rbx_error(-EPERM,
				 "%s is another machine and there is no secret: "
				 "give a secret file, or say insecure",
				 address);
	return 0;
}

static struct rbx_session *session_make(struct rbx_session_set *set,
					const char *address,
					const struct rbx_session_events *events)
{
	struct rbx_session *session = calloc(1, sizeof(*session));
	pthread_condattr_t attr;

	if (!session)
		return NULL;
	session->set = set;
	session->events = *events;
	strcpy(session->address, address);
	rbx_borrower_init(
		&session->borrower,
		&(struct rbx_borrower_config){
			.secret = rbx_root_of_secret(set->options.secret),
			.silence_ns = set->options.peer_timeout_ms * 1000000ull,
		});
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&session->changed, &attr);
	pthread_condattr_destroy(&attr);
	return session;
}

static void session_free(struct rbx_session *session)
{
	pthread_cond_destroy(&session->changed);
	explicit_bzero(session, sizeof(*session)); /* it holds keys */
	free(session);
}

static int session_add(struct rbx_session_set *set, struct rbx_session *session)
{
	int err = rbx_error(-ENOMEM, "more than %u sessions", RBX_SESSIONS_MAX);
	uint32_t i;

	pthread_mutex_lock(&set->lock);
	for (i = 0; err && i < RBX_SESSIONS_MAX; i++) {
		if (set->sessions[i])
			continue;
		session->index = i;
		set->sessions[i] = session;
		err = 0;
	}
	pthread_mutex_unlock(&set->lock);
	return err;
}

static void take_locked(struct rbx_session *session)
{
	while (session->is_taken)
		pthread_cond_wait(&session->changed, &session->set->lock);
	session->is_taken = true;
}

static void release_locked(struct rbx_session *session)
{
	session->is_taken = false;
	pthread_cond_broadcast(&session->changed);
}

static void take(struct rbx_session *session)
{
	pthread_mutex_lock(&session->set->lock);
	take_locked(session);
	pthread_mutex_unlock(&session->set->lock);
}

static void release(struct rbx_session *session)
{
	pthread_mutex_lock(&session->set->lock);
	release_locked(session);
	pthread_mutex_unlock(&session->set->lock);
}

/* When it returns no callback of the session runs or will run. */
static void session_remove(struct rbx_session *session)
{
	struct rbx_session_set *set = session->set;

	pthread_mutex_lock(&set->lock);
	rbx_borrower_letters_stop(&session->borrower, -ECANCELED);
	rbx_borrower_drop(&session->borrower);
	rbx_session_pump(session);
	while (session->callback_running ||
	       rbx_mailbox_outstanding(&session->borrower.mailbox))
		pthread_cond_wait(&session->changed, &set->lock);
	set->sessions[session->index] = NULL;
	pthread_mutex_unlock(&set->lock);
}

/* A server that has no place for one more handshake has one soon. */
static int handshake_patiently(struct rbx_session *session)
{
	uint32_t timeout_ms = 2 * session->set->options.peer_timeout_ms;
	uint64_t until_ns = rbx_now_ns() + timeout_ms * 500000ull;
	int err;

	for (uint32_t try = 0;; try++) {
		uint64_t pause_ns = rbx_reject_pause_ns(try);

		err = rbx_session_handshake(session, rbx_after_ms(timeout_ms));
		if (err != -EBUSY || rbx_now_ns() + pause_ns >= until_ns)
			return err;
		usleep((useconds_t)(pause_ns / 1000));
	}
}

int rbx_session_open(struct rbx_session_set *set, const char *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **out)
{
	struct rbx_session *session;
	int err;

	err = address_check(set, address);
	if (err)
		return err;
	session = session_make(set, address, events);
	if (!session)
		return rbx_error(-ENOMEM, "no memory for a session");
	err = session_add(set, session);
	if (err)
		goto out_free;
	take(session);
	err = handshake_patiently(session);
	release(session);
	if (err)
		goto out_remove;
	*out = session;
	return 0;

out_remove:
	session_remove(session);
out_free:
	session_free(session);
	return err;
}

/* The server answers BYE by ending the connection. */
static void say_bye(struct rbx_session *session)
{
	struct timespec deadline =
		rbx_timespec_at(rbx_now_ns() + BYE_MS * 1000000ull);
	int err = 0;

	pthread_mutex_lock(&session->set->lock);
	rbx_borrower_bye(&session->borrower);
	rbx_session_pump(session);
	while (session->borrower.phase != RBX_BORROWER_AWAY && !err)
		err = pthread_cond_timedwait(&session->changed,
					     &session->set->lock, &deadline);
	pthread_mutex_unlock(&session->set->lock);
}

void rbx_session_close(struct rbx_session *session)
{
	take(session);
	say_bye(session);
	release(session);
	session_remove(session);
	session_free(session);
}

int rbx_session_resume(struct rbx_session *session, uint64_t until_ns)
{
	int err;

	pthread_mutex_lock(&session->set->lock);
	take_locked(session);
	rbx_borrower_drop(&session->borrower); /* the owner knows already */
	rbx_session_pump(session);
	strcpy(session->away, "it is being connected anew");
	pthread_mutex_unlock(&session->set->lock);
	err = rbx_session_handshake(session, until_ns);
	if (err) {
		pthread_mutex_lock(&session->set->lock);
		snprintf(session->away, sizeof(session->away), "%s",
			 rbx_last_error());
		pthread_mutex_unlock(&session->set->lock);
	}
	release(session);
	return err;
}

/* ---- Queue pairs -----------------------------------------------------------*/

uint32_t rbx_session_left_ms(const struct rbx_session *session, uint64_t until_ns)
{
	uint64_t now_ns = rbx_now_ns();

	if (!until_ns)
		return session->set->options.peer_timeout_ms;
	return until_ns > now_ns + NS_PER_MS ?
		       (uint32_t)((until_ns - now_ns) / NS_PER_MS) :
		       1;
}

/* 0 or -ENOTCONN. */
static int connection_check(struct rbx_session *session)
{
	int err = 0;

	pthread_mutex_lock(&session->set->lock);
	if (session->borrower.phase != RBX_BORROWER_UP)
		err = rbx_session_error(session, -ENOTCONN);
	pthread_mutex_unlock(&session->set->lock);
	return err;
}

int rbx_session_connect_qp_until(struct rbx_session *session,
				 const struct rbx_qp_init *init,
				 uint64_t until_ns, struct rbx_qp **qp)
{
	struct rbx_wire_attach attach;
	int err;

	take(session);
	err = connection_check(session);
	if (!err) {
		rbx_borrower_attach(&session->borrower, &attach);
		err = rbx_session_connect(session, init, &attach,
					  rbx_session_left_ms(session, until_ns),
					  qp);
	}
	release(session);
	return err;
}

int rbx_session_connect_qp(struct rbx_session *session,
			   const struct rbx_qp_init *init, struct rbx_qp **qp)
{
	return rbx_session_connect_qp_until(session, init, 0, qp);
}

/* ---- Calls -----------------------------------------------------------------*/

void rbx_session_wait_call(struct rbx_session *session)
{
	while (!rbx_borrower_call_is_over(&session->borrower))
		pthread_cond_wait(&session->changed, &session->set->lock);
}

static int call_error(struct rbx_session *session, int err, bool is_refused,
		      const char *why)
{
	if (err == -ENOTCONN)
		return rbx_error(err, "%s is not connected: %s",
				 session->address, session->away);
	return rbx_error(err, is_refused ? "%s refused: %s" : "%s: %s",
			 session->address, why);
}

int rbx_session_error(struct rbx_session *session, int err)
{
	const struct rbx_call *call = &session->borrower.call;

	return call_error(session, err, call->message.type == RBX_WIRE_ERROR,
			  call->why);
}

void rbx_session_ask_end(struct rbx_session *session)
{
	if (rbx_borrower_ask_end(&session->borrower))
		release_locked(session);
}

static void ask_send(struct rbx_session *session, struct rbx_ask *ask)
{
	rbx_borrower_ask(&session->borrower, ask,
			 session->set->options.peer_timeout_ms, rbx_now_ns());
	if (ask->state == RBX_ASK_OVER)
		return;
	session->is_taken = true;
	rbx_session_pump(session);
}

/* While it is being resumed there is nobody to ask; who looks after a volume has others
 * meanwhile. */
static void ask_begin(struct rbx_session *session, struct rbx_ask *ask)
{
	pthread_mutex_lock(&session->set->lock);
	ask->state = RBX_ASK_WAITS;
	if (!session->is_taken || session->borrower.phase != RBX_BORROWER_UP)
		ask_send(session, ask);
	pthread_mutex_unlock(&session->set->lock);
}

static int ask_wait(struct rbx_session *session, struct rbx_ask *ask)
{
	int err = 0;

	pthread_mutex_lock(&session->set->lock);
	while (ask->state != RBX_ASK_OVER) {
		if (ask->state == RBX_ASK_WAITS && !session->is_taken)
			ask_send(session, ask);
		else
			pthread_cond_wait(&session->changed,
					  &session->set->lock);
	}
	if (ask->status)
		err = call_error(session, ask->status, ask->is_refused,
				 ask->why);
	pthread_mutex_unlock(&session->set->lock);
	return err;
}

static int ask_and_wait(struct rbx_session *session, enum rbx_call_kind kind,
			const struct rbx_loan *loan)
{
	struct rbx_ask ask = { .kind = (uint8_t)kind, .loan = *loan };

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

/* ---- Numbers ----------------------------------------------------------------*/

/* The answer stays until the next call, so the session stays taken until it was read. */
static int stats_locked(struct rbx_session *session,
			struct rbx_server_stats *all)
{
	const uint64_t *values = session->borrower.call.message.counters.values;
	int err = rbx_borrower_call(&session->borrower, RBX_CALL_STATS, NULL,
				    session->set->options.peer_timeout_ms,
				    rbx_now_ns());
	uint32_t next = 0;

	if (!err) {
		rbx_session_pump(session);
		rbx_session_wait_call(session);
		err = rbx_borrower_call_end(&session->borrower, NULL);
	}
	if (err)
		return rbx_session_error(session, err);
	/* Zero from counters.count on: what an older server does not know. */
#define RBX_COUNTER(name, what) all->name = values[next++];
	RBX_SERVER_STATS(RBX_COUNTER)
#undef RBX_COUNTER
	return 0;
}

int rbx_session_stats(struct rbx_session *session,
		      struct rbx_server_stats *stats)
{
	struct rbx_server_stats all = { 0 };
	int err;

	pthread_mutex_lock(&session->set->lock);
	take_locked(session);
	err = stats_locked(session, &all);
	release_locked(session);
	pthread_mutex_unlock(&session->set->lock);
	if (!err)
		rbx_sized_give(stats, &all, sizeof(all));
	return err;
}

uint64_t rbx_session_slab_bytes(const struct rbx_session *session)
{
	return session->borrower.welcome.slab_bytes;
}

uint64_t rbx_session_incarnation(const struct rbx_session *session)
{
	return session->borrower.welcome.incarnation;
}

uint64_t rbx_session_lease_half_ns(const struct rbx_session *session)
{
	return rbx_lease_half_ns(&session->borrower.lease);
}

uint32_t rbx_session_lease_ms(const struct rbx_session *session)
{
	return session->borrower.welcome.lease_ms;
}

uint64_t rbx_session_heard_ns(const struct rbx_session *session)
{
	return rbx_lease_heard_ns(&session->borrower.lease);
}

uint64_t rbx_session_free_bytes(const struct rbx_session *session)
{
	return RBX_LOAD_RELAXED(&session->borrower.free_bytes);
}

const char *rbx_session_address(const struct rbx_session *session)
{
	return session->address;
}
