/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.c - the calls of session.h, and its heartbeats.
 *
 * Each call is a message and its answer; what the server says is checked before
 * anybody computes with it.
 *
 * A tick that finds the server lost looks once more, a moment later: a machine
 * that stood still may have the answer in a queue that nobody has looked at.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "kernel/lib/context.h"
#include "kernel/lib/session.h"
#include "wire/attach.h"
#include "wire/terms.h"

/* How long close() waits for the server to take leave. */
#define BYE_MS 1000

/* Until what may be in a queue has been looked at. */
#define DOUBT_NS 20000000ull

/* Works while memory is short. */
static struct workqueue_struct *ticks;

int rbx_sessions_init(void)
{
	ticks = alloc_workqueue("rdmabox", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return ticks ? 0 : -ENOMEM;
}

void rbx_sessions_exit(void)
{
	destroy_workqueue(ticks);
}

/* ---- Heartbeats --------------------------------------------------------------*/

static void heartbeat_send_locked(struct rbx_session *session, uint64_t now_ns)
{
	struct rbx_wire_message heartbeat = { .type = RBX_WIRE_HEARTBEAT };

	if (!rbx_control_slot_is_free(session, RBX_SESSION_SEND_HEARTBEAT))
		return;
	session->lease.heartbeat_ns = now_ns;
	session->lease.heartbeat_is_out = true;
	session->heartbeat_id = session->last_request_id + 1;
	rbx_control_send_locked(session, RBX_SESSION_SEND_HEARTBEAT,
				&heartbeat);
}

/* Returns when it wants to be looked at again, UINT64_MAX: not any more. */
static uint64_t tick_locked(struct rbx_session *session, bool *is_lost)
{
	uint64_t now_ns = ktime_get_ns(), at_ns;
	enum rbx_lease_step step;

	if (session->status != RBX_SESSION_UP)
		return UINT64_MAX;
	step = rbx_lease_next(&session->lease, now_ns, &at_ns);
	if (step == RBX_LEASE_SILENT || step == RBX_LEASE_OVER) {
		*is_lost = session->doubted;
		session->doubted = true;
		return *is_lost ? UINT64_MAX : now_ns + DOUBT_NS;
	}
	session->doubted = false;
	if (step == RBX_LEASE_HEARTBEAT)
		heartbeat_send_locked(session, now_ns);
	return at_ns;
}

static void tick(struct work_struct *work)
{
	struct rbx_session *session =
		container_of(to_delayed_work(work), struct rbx_session, tick);
	bool is_lost = false;
	uint64_t at_ns;

	spin_lock_irq(&session->lock);
	at_ns = tick_locked(session, &is_lost);
	spin_unlock_irq(&session->lock);
	if (is_lost)
		rbx_session_lose(session, "it does not answer");
	else if (at_ns != UINT64_MAX)
		queue_delayed_work(ticks, &session->tick,
				   nsecs_to_jiffies(rbx_lease_since_ns(
					   at_ns, ktime_get_ns())) + 1);
}

void rbx_session_tick_soon(struct rbx_session *session)
{
	mod_delayed_work(ticks, &session->tick, 0);
}

/* ---- Open, close, resume ---------------------------------------------------*/

int rbx_session_open(const struct rbx_client *client,
		     struct sockaddr_storage *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **out)
{
	struct rbx_session *session = kzalloc(sizeof(*session), GFP_KERNEL);
	int err;

	if (!session)
		return -ENOMEM;
	session->client = client;
	session->ctx = client->ctx;
	session->address = *address;
	snprintf(session->name, sizeof(session->name), "%pISpc", address);
	session->events = *events;
	/* Half of it until silence is noticed, the rest is for resuming
	 * (core/peer_state.h). */
	session->answer_ms = max(client->options.peer_timeout_ms / 2, 1u);
	mutex_init(&session->call_lock);
	spin_lock_init(&session->lock);
	init_waitqueue_head(&session->changed);
	INIT_DELAYED_WORK(&session->tick, tick);
	mutex_lock(&session->call_lock);
	err = rbx_session_handshake(session, false);
	mutex_unlock(&session->call_lock);
	if (err)
		kfree_sensitive(session);
	else
		*out = session;
	return err;
}

/* The server answers BYE by ending the connection. */
static void say_bye(struct rbx_session *session)
{
	struct rbx_wire_message bye = { .type = RBX_WIRE_BYE };

	spin_lock_irq(&session->lock);
	session->closing = true;
	if (session->status == RBX_SESSION_UP)
		rbx_control_send_locked(session, RBX_SESSION_SEND_BYE, &bye);
	spin_unlock_irq(&session->lock);
	wait_event_timeout(session->changed,
			   READ_ONCE(session->status) == RBX_SESSION_DOWN,
			   msecs_to_jiffies(BYE_MS));
}

void rbx_session_close(struct rbx_session *session)
{
	mutex_lock(&session->call_lock);
	say_bye(session);
	rbx_control_close(session);
	mutex_unlock(&session->call_lock);
	rbx_session_letters_end(session, -ECANCELED);
	cancel_delayed_work_sync(&session->tick);
	kfree_sensitive(session); /* it holds keys */
}

int rbx_session_resume(struct rbx_session *session, uint32_t timeout_ms)
{
	uint32_t answer_ms;
	int err;

	mutex_lock(&session->call_lock);
	rbx_control_close(session);
	/* It waits three times: to connect, for CHALLENGE, for WELCOME. */
	answer_ms = session->answer_ms;
	session->answer_ms = max(timeout_ms / 3, 1u);
	err = rbx_session_handshake(session, true);
	session->answer_ms = answer_ms;
	mutex_unlock(&session->call_lock);
	return err;
}

void rbx_session_give_up(struct rbx_session *session)
{
	mutex_lock(&session->call_lock);
	/* Heartbeats would keep the lease, and what the server lent us, alive. */
	rbx_control_close(session);
	mutex_unlock(&session->call_lock);
	rbx_session_letters_end(session, -EHOSTUNREACH);
}

/* ---- Queue pairs -----------------------------------------------------------*/

int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn))
{
	struct rbx_wire_attach attach = { .kind = RBX_WIRE_ATTACH_DATA };
	int err = -ENOTCONN;

	mutex_lock(&session->call_lock);
	conn->id = NULL;
	if (READ_ONCE(session->status) != RBX_SESSION_UP)
		goto out_unlock;
	err = rbx_ib_conn_resolve(conn, &init_net, &session->address, ended,
				  session->answer_ms);
	if (!err && conn->id->device != session->ctx->device)
		err = -EXDEV;
	if (!err)
		err = rdma_create_qp(conn->id, session->ctx->pd, init);
	if (err)
		goto out_unlock;
	attach.session_id = session->welcome.session_id;
	attach.serial = ++session->attach_serial;
	rbx_proof_of_attach(&session->connection_key, &attach, attach.mac);
	err = rbx_session_attach(session, conn, &attach);
out_unlock:
	mutex_unlock(&session->call_lock);
	return err;
}

/* ---- Slabs -----------------------------------------------------------------*/

static int call(struct rbx_session *session, struct rbx_wire_message *message,
		uint16_t expected, struct rbx_wire_message *answer)
{
	int err = -ENOTCONN;

	mutex_lock(&session->call_lock);
	if (session->control)
		err = rbx_session_call(session, message, expected, answer);
	/* Noted before any resume, which says what we know to be lent. */
	if (!err && expected == RBX_WIRE_SLAB_GRANT)
		session->last_epoch = answer->epoch;
	mutex_unlock(&session->call_lock);
	return err;
}

int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan)
{
	struct rbx_wire_message message = { .type = RBX_WIRE_SLAB_MAP };
	struct rbx_wire_message answer;
	int err = call(session, &message, RBX_WIRE_SLAB_GRANT, &answer);

	if (err)
		return err;
	if (!rbx_wire_grant_makes_sense(&answer.grant,
					session->welcome.slab_bytes))
		return -EPROTO;
	*loan = (struct rbx_loan){
		.slab_id = answer.grant.slab_id,
		.epoch = answer.epoch,
		.remote_addr = answer.grant.remote_addr,
		.rkey = answer.grant.rkey,
	};
	return 0;
}

int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan)
{
	struct rbx_wire_message message = {
		.type = RBX_WIRE_SLAB_UNMAP,
		.epoch = loan->epoch,
		.slab_id = loan->slab_id,
	};
	struct rbx_wire_message answer;

	return call(session, &message, RBX_WIRE_SLAB_UNMAPPED, &answer);
}

int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan)
{
	struct rbx_wire_message message = {
		.type = RBX_WIRE_SLAB_QUERY,
		.epoch = loan->epoch,
		.slab_id = loan->slab_id,
	};
	struct rbx_wire_message answer;
	int err = call(session, &message, RBX_WIRE_SLAB_GRANT, &answer);

	if (err)
		return err;
	if (answer.grant.slab_id != loan->slab_id ||
	    answer.epoch != loan->epoch ||
	    answer.grant.remote_addr != loan->remote_addr ||
	    answer.grant.rkey != loan->rkey)
		return -ESTALE;
	return 0;
}

const char *rbx_session_name(const struct rbx_session *session)
{
	return session->name;
}
