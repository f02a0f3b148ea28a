/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.c - the calls of session.h: each is put to the borrower and waited for.
 */
#include "kernel/lib/session/session.h"

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "core/reject.h"
#include "kernel/lib/session/state.h"

/* How long close() waits for the server to take leave. */
#define BYE_MS 1000

/* ---- Open, close, resume ---------------------------------------------------*/

/* Half of it until silence is noticed, the rest is for resuming
 * (core/peer_state.h). */
static uint32_t silence_ms(const struct rbx_session *session)
{
	return max(session->client->options.peer_timeout_ms / 2, 1u);
}

static struct rbx_session *session_make(struct rbx_client *client,
					struct sockaddr_storage *address,
					const struct rbx_session_events *events)
{
	struct rbx_session *session = kzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return NULL;
	session->client = client;
	session->ctx = client->ctx;
	session->address = *address;
	snprintf(session->name, sizeof(session->name), "%pISpc", address);
	session->events = *events;
	sema_init(&session->turn, 1);
	mutex_init(&session->news_lock);
	spin_lock_init(&session->lock);
	init_waitqueue_head(&session->changed);
	INIT_DELAYED_WORK(&session->tick, rbx_session_tick);
	rbx_borrower_init(
		&session->borrower,
		&(struct rbx_borrower_config){
			.secret = client->options.secret,
			.silence_ns = silence_ms(session) *
				      (uint64_t)NSEC_PER_MSEC,
		});
	return session;
}

/* There is no connection any more. What is left of its letters ends. */
static void session_free(struct rbx_session *session)
{
	cancel_delayed_work_sync(&session->tick);
	mutex_lock(&session->news_lock);
	rbx_session_tell_news(session);
	mutex_unlock(&session->news_lock);
	kfree_sensitive(session); /* it holds keys */
}

/* A server that has no place for one more handshake has one soon. */
static int handshake_patiently(struct rbx_session *session)
{
	uint64_t end_ns = ktime_get_ns() +
			  session->client->options.peer_timeout_ms *
				  (uint64_t)NSEC_PER_MSEC;
	uint32_t try;
	int err;

	for (try = 0;; try++) {
		uint64_t pause_ns = rbx_reject_pause_ns(try);

		session->until_ns = end_ns;
		err = rbx_session_handshake(session);
		session->until_ns = 0;
		if (err != -EBUSY || ktime_get_ns() + pause_ns >= end_ns)
			return err;
		if (rbx_client_pause(session->client, pause_ns))
			return -EINTR;
	}
}

int rbx_session_open(struct rbx_client *client,
		     struct sockaddr_storage *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **out)
{
	struct rbx_session *session = session_make(client, address, events);
	int err;

	if (!session)
		return -ENOMEM;
	down(&session->turn);
	err = handshake_patiently(session);
	up(&session->turn);
	if (err)
		session_free(session);
	else
		*out = session;
	return err;
}

/* The server answers BYE by ending the connection. */
static void say_bye(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;

	spin_lock_irq(&session->lock);
	rbx_borrower_bye(borrower);
	rbx_session_pump_locked(session);
	wait_event_lock_irq_timeout(session->changed,
				    borrower->phase == RBX_BORROWER_AWAY,
				    session->lock, msecs_to_jiffies(BYE_MS));
	spin_unlock_irq(&session->lock);
}

static void letters_stop(struct rbx_session *session, int status)
{
	spin_lock_irq(&session->lock);
	rbx_borrower_letters_stop(&session->borrower, status);
	spin_unlock_irq(&session->lock);
}

void rbx_session_close(struct rbx_session *session)
{
	down(&session->turn);
	say_bye(session);
	rbx_session_disconnect(session);
	up(&session->turn);
	letters_stop(session, -ECANCELED);
	session_free(session);
}

int rbx_session_resume(struct rbx_session *session, uint64_t until_ns)
{
	int err;

	down(&session->turn);
	session->until_ns = until_ns;
	rbx_session_disconnect(session);
	err = rbx_session_handshake(session);
	session->until_ns = 0;
	up(&session->turn);
	return err;
}

void rbx_session_give_up(struct rbx_session *session)
{
	down(&session->turn);
	/* Heartbeats would keep the lease, and what the server lent us, alive. */
	rbx_session_disconnect(session);
	up(&session->turn);
	letters_stop(session, -EHOSTUNREACH);
	rbx_session_tick_soon(session); /* tells them */
}

/* ---- Queue pairs -----------------------------------------------------------*/

uint32_t rbx_session_left_ms(const struct rbx_session *session)
{
	uint64_t now_ns = ktime_get_ns();

	if (!session->until_ns)
		return silence_ms(session);
	if (session->until_ns < now_ns + NSEC_PER_MSEC)
		return 1;
	return (uint32_t)div_u64(session->until_ns - now_ns, NSEC_PER_MSEC);
}

static bool is_connected(const struct rbx_session *session)
{
	return READ_ONCE(session->borrower.phase) == RBX_BORROWER_UP;
}

static int qp_connect(struct rbx_session *session, struct rbx_ib_conn *conn,
		      struct ib_qp_init_attr *init,
		      void (*ended)(struct rbx_ib_conn *conn))
{
	struct rbx_wire_attach attach;
	int err;

	if (!is_connected(session))
		return -ENOTCONN;
	err = rbx_ib_conn_resolve(conn, &init_net, &session->address, ended,
				  rbx_session_left_ms(session));
	if (!err && conn->id->device != session->ctx->device)
		err = -EXDEV;
	if (!err)
		err = rdma_create_qp(conn->id, session->ctx->pd, init);
	if (err)
		return err;
	rbx_borrower_attach(&session->borrower, &attach);
	return rbx_session_attach(session, conn, &attach);
}

int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn),
			   uint64_t until_ns)
{
	int err;

	conn->id = NULL;
	if (rbx_session_is_telling(session))
		return -EDEADLK;
	down(&session->turn);
	session->until_ns = until_ns;
	err = qp_connect(session, conn, init, ended);
	session->until_ns = 0;
	up(&session->turn);
	return err;
}

/* ---- Calls -----------------------------------------------------------------*/

void rbx_session_wait_call_locked(struct rbx_session *session)
{
	lockdep_assert_held(&session->lock);
	wait_event_lock_irq(session->changed,
			    rbx_borrower_call_is_over(&session->borrower),
			    session->lock);
}

void rbx_session_log(const struct rbx_session *session, int err)
{
	const struct rbx_call *call = &session->borrower.call;

	if (call->message.type == RBX_WIRE_ERROR)
		pr_notice_ratelimited("rdmabox: %s refused: %s\n",
				      session->name, call->why);
	else if (err != -ENOTCONN && call->why)
		pr_notice_ratelimited("rdmabox: %s: %s (%d)\n", session->name,
				      call->why, err);
}

/* With the turn and the lock. */
static void ask_send_locked(struct rbx_session *session, struct rbx_ask *ask)
{
	lockdep_assert_held(&session->lock);
	rbx_borrower_ask(&session->borrower, ask, silence_ms(session),
			 ktime_get_ns());
	if (ask->state == RBX_ASK_OVER) {
		up(&session->turn);
		return;
	}
	rbx_session_pump_locked(session);
	rbx_session_tick_soon(session); /* its deadline counts */
}

/* While it is being resumed there is nobody to ask; who looks after a volume has others
 * meanwhile. */
static void ask_begin(struct rbx_session *session, struct rbx_ask *ask)
{
	spin_lock_irq(&session->lock);
	ask->state = RBX_ASK_WAITS;
	if (session->borrower.phase != RBX_BORROWER_UP)
		rbx_borrower_ask(&session->borrower, ask, 0, 0);
	else if (!down_trylock(&session->turn))
		ask_send_locked(session, ask);
	spin_unlock_irq(&session->lock);
}

static void ask_log(const struct rbx_session *session,
		    const struct rbx_ask *ask)
{
	if (ask->is_refused)
		pr_notice_ratelimited("rdmabox: %s refused: %s\n",
				      session->name, ask->why);
	else if (ask->status != -ENOTCONN && ask->why)
		pr_notice_ratelimited("rdmabox: %s: %s (%d)\n", session->name,
				      ask->why, ask->status);
}

static int ask_wait(struct rbx_session *session, struct rbx_ask *ask)
{
	bool waits = ask->state == RBX_ASK_WAITS; /* only we change that */

	if (waits)
		down(&session->turn);
	spin_lock_irq(&session->lock);
	if (waits)
		ask_send_locked(session, ask);
	wait_event_lock_irq(session->changed, ask->state == RBX_ASK_OVER,
			    session->lock);
	spin_unlock_irq(&session->lock);
	if (ask->status)
		ask_log(session, ask);
	return ask->status;
}

static int ask_and_wait(struct rbx_session *session, enum rbx_call_kind kind,
			const struct rbx_loan *loan)
{
	struct rbx_ask ask = { .kind = (u8)kind, .loan = *loan };

	if (rbx_session_is_telling(session))
		return -EDEADLK;
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

	if (rbx_session_is_telling(session))
		return -EDEADLK;
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

/* ---- What is known of the server ---------------------------------------------*/

uint64_t rbx_session_slab_bytes(const struct rbx_session *session)
{
	return session->borrower.welcome.slab_bytes;
}

uint64_t rbx_session_incarnation(const struct rbx_session *session)
{
	return session->borrower.welcome.incarnation;
}

uint64_t rbx_session_free_bytes(const struct rbx_session *session)
{
	return RBX_LOAD_RELAXED(&session->borrower.free_bytes);
}

uint64_t rbx_session_heard_ns(const struct rbx_session *session)
{
	return rbx_lease_heard_ns(&session->borrower.lease);
}

uint64_t rbx_session_lease_half_ns(const struct rbx_session *session)
{
	return rbx_lease_half_ns(&session->borrower.lease);
}

const char *rbx_session_name(const struct rbx_session *session)
{
	return session->name;
}

const struct sockaddr_storage *
rbx_session_address(const struct rbx_session *session)
{
	return &session->address;
}
