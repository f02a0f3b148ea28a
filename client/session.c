/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.c - opens, resumes, gives up and closes a session.
 */
#include "client/session.h"

#include "client/host.h"
#include "client/session_state.h"
#include "core/reject.h"

#define BYE_MS_MIN 1000u
#define BYE_MS_MAX 5000u

static struct rbx_session *session_make(struct rbx_sessions *sessions,
					const struct rbx_address *address,
					const struct rbx_session_events *events)
{
	struct rbx_session *session = rbx_memory_make(sizeof(*session));
	struct rbx_borrower_config config;

	if (!session)
		return NULL;
	session->sessions = sessions;
	session->address = *address;
	session->events = *events;
	rbx_monitor_init(&session->monitor);
	config.secret = sessions->secret;
	config.silence_ns = RBX_LOAD_RELAXED(&sessions->silence_ms) * RBX_NS_PER_MS;
	memcpy(config.credential, sessions->credential, sizeof(config.credential));
	rbx_borrower_init(&session->borrower, &config);
	return session;
}

static void session_free(struct rbx_session *session)
{
	rbx_monitor_destroy(&session->monitor);
	rbx_memory_wipe(session, sizeof(*session)); /* it holds keys */
	rbx_memory_free(session);
}

/* The clock thread ends what is left of the messages. There is no connection, so nothing
 * happens after that: threads that were still in a call have left it. */
static void clock_stop(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	rbx_borrower_user_messages_stop(&session->borrower, -ECANCELED);
	rbx_clock_soon(session->clock);
	while (session->teller || session->callers_count ||
	       rbx_mailbox_outstanding(&session->borrower.mailbox))
		rbx_monitor_wait(&session->monitor);
	rbx_monitor_leave(&session->monitor);
	rbx_clock_free(session->clock);
}

/* A server that has no room for one more handshake will have some soon. */
static int handshake_patiently(struct rbx_session *session)
{
	uint64_t end_ns = rbx_now_ns() + 2 * rbx_session_silence_ms(session) *
						 RBX_NS_PER_MS;
	char refusal[RBX_ERROR_BYTES];
	uint32_t try;
	int err;

	for (try = 0;; try++) {
		uint64_t pause_ns = rbx_reject_pause_ns(try);

		session->until_ns = end_ns;
		err = rbx_session_handshake(session);
		session->until_ns = 0;
		/* The last try may have had little time. What the others met with is why. */
		if (err == -ETIMEDOUT && try)
			return rbx_error_again(-EBUSY, refusal);
		if (err != -EBUSY || rbx_now_ns() + pause_ns >= end_ns)
			return err;
		rbx_text_copy(refusal, sizeof(refusal), rbx_error_text());
		if (rbx_sessions_pause(session->sessions, pause_ns))
			return -EINTR;
	}
}

int rbx_session_open(struct rbx_sessions *sessions,
		     const struct rbx_address *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **out)
{
	struct rbx_session *session = session_make(sessions, address, events);
	int err;

	if (!session)
		return rbx_error(-ENOMEM, "no memory for a session");
	err = rbx_clock_make(session, &session->clock);
	if (err)
		goto out_free;
	rbx_session_take(session);
	err = handshake_patiently(session);
	rbx_session_release(session);
	if (err)
		goto out_stop;
	*out = session;
	return 0;

out_stop:
	clock_stop(session);
out_free:
	session_free(session);
	return err;
}

/* The server answers BYE by ending the connection. If the connection is ended here before a
 * slow server has read BYE, the server does not lend the returned slabs again until the lease
 * ends. So it is waited for as long as a silent server is, within bounds, because the caller
 * of close waits. */
static void say_bye(struct rbx_session *session)
{
	uint32_t wait_ms = RBX_MIN(RBX_MAX(rbx_session_silence_ms(session), BYE_MS_MIN),
				   BYE_MS_MAX);
	uint64_t until_ns = rbx_now_ns() + wait_ms * RBX_NS_PER_MS;

	rbx_monitor_enter(&session->monitor);
	rbx_borrower_bye(&session->borrower);
	rbx_session_pump(session);
	while (session->borrower.phase != RBX_BORROWER_AWAY &&
	       rbx_now_ns() < until_ns)
		rbx_monitor_wait_until(&session->monitor, until_ns);
	rbx_monitor_leave(&session->monitor);
}

void rbx_session_close(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	rbx_session_asks_cancel(session); /* an answer may take long */
	rbx_session_take_entered(session);
	rbx_monitor_leave(&session->monitor);
	say_bye(session);
	rbx_session_disconnect(session);
	rbx_session_release(session);
	clock_stop(session);
	session_free(session);
}

void rbx_session_set_silence(struct rbx_session *session, uint32_t silence_ms)
{
	struct rbx_borrower *borrower = &session->borrower;

	rbx_monitor_enter(&session->monitor);
	borrower->config.silence_ns = silence_ms * RBX_NS_PER_MS;
	borrower->lease.timeout_ns = borrower->config.silence_ns;
	rbx_clock_soon(session->clock); /* heartbeats may be due earlier */
	rbx_monitor_leave(&session->monitor);
}

void rbx_session_hold_asks(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	session->callers_count++;
	session->asks_are_held = true;
	rbx_monitor_leave(&session->monitor);
}

void rbx_session_let_asks_go(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	session->asks_are_held = false;
	rbx_session_ask_next(session);
	rbx_monitor_wake(&session->monitor);
	rbx_session_caller_leaves(session);
	rbx_monitor_leave(&session->monitor);
}

/* Requests to the server that are under way end first: an answer may take longer than all the
 * time there is for a resume. */
int rbx_session_resume(struct rbx_session *session, uint64_t until_ns)
{
	int err = -ECANCELED; /* it was closed before its turn came */

	rbx_monitor_enter(&session->monitor);
	session->callers_count++;
	if (!session->borrower.closing) {
		rbx_borrower_drop(&session->borrower); /* the owner was told already */
		rbx_session_pump(session);
	}
	rbx_session_take_entered(session);
	if (!session->borrower.closing) {
		snprintf(session->away, sizeof(session->away),
			 "it is being reconnected");
		rbx_monitor_leave(&session->monitor);
		session->until_ns = until_ns;
		rbx_session_disconnect(session);
		err = rbx_session_handshake(session);
		session->until_ns = 0;
		rbx_monitor_enter(&session->monitor);
	}
	rbx_session_release_entered(session);
	rbx_session_caller_leaves(session);
	rbx_monitor_leave(&session->monitor);
	return err;
}

/* Requests that are under way end first, so this does not wait long. */
void rbx_session_give_up(struct rbx_session *session)
{
	rbx_monitor_enter(&session->monitor);
	session->callers_count++;
	rbx_borrower_user_messages_stop(&session->borrower, -EHOSTUNREACH);
	/* Heartbeats would keep the lease alive, and the loans with it. */
	rbx_borrower_drop(&session->borrower);
	rbx_session_pump(session);
	rbx_clock_soon(session->clock); /* to end the messages */
	rbx_session_take_entered(session);
	rbx_monitor_leave(&session->monitor);
	rbx_session_disconnect(session);
	rbx_monitor_enter(&session->monitor);
	rbx_session_release_entered(session);
	rbx_session_caller_leaves(session);
	rbx_monitor_leave(&session->monitor);
}

/* ---- What the server has reported -------------------------------------------------- */

uint64_t rbx_session_slab_bytes(const struct rbx_session *session)
{
	return session->borrower.welcome.slab_bytes;
}

uint64_t rbx_session_memory_bytes(const struct rbx_session *session)
{
	return session->borrower.welcome.memory_bytes;
}

uint64_t rbx_session_incarnation(const struct rbx_session *session)
{
	return session->borrower.welcome.incarnation;
}

const char *rbx_session_labels(const struct rbx_session *session)
{
	return session->borrower.welcome.labels;
}

uint64_t rbx_session_lease_ns(const struct rbx_session *session)
{
	return session->borrower.lease.lease_ns;
}

uint64_t rbx_session_lease_half_ns(const struct rbx_session *session)
{
	return rbx_lease_half_ns(&session->borrower.lease);
}

bool rbx_session_drains(const struct rbx_session *session)
{
	return RBX_LOAD_RELAXED(&session->borrower.drains);
}

uint64_t rbx_session_free_bytes(const struct rbx_session *session)
{
	return RBX_LOAD_RELAXED(&session->borrower.free_bytes);
}

uint64_t rbx_session_heard_ns(const struct rbx_session *session)
{
	return rbx_lease_heard_ns(&session->borrower.lease);
}

const char *rbx_session_name(const struct rbx_session *session)
{
	return session->address.name;
}
