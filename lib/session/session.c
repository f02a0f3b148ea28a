/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.c - the calls of session.h.
 *
 * Each is a message and its answer; what the server says is checked before
 * anybody computes with it.
 */
#include "lib/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/loopback.h"
#include "lib/session/state.h"
#include "wire/attach.h"
#include "wire/terms.h"

/* How long close() waits for the server to take leave. */
#define BYE_MS 1000

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
	session->answer_ms = set->options.peer_timeout_ms;
	session->events = *events;
	strcpy(session->address, address);
	pthread_mutex_init(&session->call_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&session->changed, &attr);
	pthread_condattr_destroy(&attr);
	return session;
}

static void session_free(struct rbx_session *session)
{
	pthread_cond_destroy(&session->changed);
	pthread_mutex_destroy(&session->call_lock);
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

/* When it returns no callback of the session runs or will run. */
static void session_remove(struct rbx_session *session)
{
	struct rbx_session_set *set = session->set;

	pthread_mutex_lock(&set->lock);
	session->closing = true;
	rbx_session_letters_stop(session, -ECANCELED);
	while (session->callback_running ||
	       rbx_mailbox_outstanding(&session->mailbox))
		pthread_cond_wait(&session->changed, &set->lock);
	rbx_session_connection_end(session);
	set->sessions[session->index] = NULL;
	pthread_mutex_unlock(&set->lock);
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
	pthread_mutex_lock(&session->call_lock);
	err = rbx_session_handshake(session, false);
	pthread_mutex_unlock(&session->call_lock);
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
	struct rbx_wire_message bye = { .type = RBX_WIRE_BYE };
	struct timespec deadline =
		rbx_timespec_at(rbx_now_ns() + BYE_MS * 1000000ull);
	int err = 0;

	pthread_mutex_lock(&session->set->lock);
	session->closing = true;
	if (session->status == RBX_SESSION_UP)
		rbx_session_send(session, RBX_SESSION_SEND_BYE, &bye);
	while (session->status != RBX_SESSION_DOWN && !err)
		err = pthread_cond_timedwait(&session->changed,
					     &session->set->lock, &deadline);
	pthread_mutex_unlock(&session->set->lock);
}

void rbx_session_close(struct rbx_session *session)
{
	pthread_mutex_lock(&session->call_lock);
	say_bye(session);
	pthread_mutex_unlock(&session->call_lock);
	session_remove(session);
	session_free(session);
}

int rbx_session_resume(struct rbx_session *session, uint32_t timeout_ms)
{
	uint32_t answer_ms = session->answer_ms;
	int err;

	pthread_mutex_lock(&session->call_lock);
	pthread_mutex_lock(&session->set->lock);
	rbx_session_connection_end(session);
	session->lost_untold = false; /* the owner knows already */
	pthread_mutex_unlock(&session->set->lock);
	/* It waits three times: to connect, for CHALLENGE, for WELCOME. */
	session->answer_ms = RBX_MAX(timeout_ms / 3, 1u);
	err = rbx_session_handshake(session, true);
	session->answer_ms = answer_ms;
	pthread_mutex_unlock(&session->call_lock);
	return err;
}

/* ---- Queue pairs -----------------------------------------------------------*/

int rbx_session_connect_qp(struct rbx_session *session,
			   const struct rbx_qp_init *init, struct rbx_qp **qp)
{
	struct rbx_wire_attach attach = { .kind = RBX_WIRE_ATTACH_DATA };
	bool is_up;
	int err;

	pthread_mutex_lock(&session->call_lock);
	pthread_mutex_lock(&session->set->lock);
	is_up = session->status == RBX_SESSION_UP;
	pthread_mutex_unlock(&session->set->lock);
	if (!is_up) {
		err = rbx_error(-ENOTCONN, "%s is not connected",
				session->address);
		goto out_unlock;
	}
	attach.session_id = session->welcome.session_id;
	attach.serial = ++session->attach_serial;
	rbx_proof_of_attach(&session->connection_key, &attach, attach.mac);
	err = rbx_session_connect(session, init, &attach, qp);
out_unlock:
	pthread_mutex_unlock(&session->call_lock);
	return err;
}

/* ---- Slabs -----------------------------------------------------------------*/

static int call(struct rbx_session *session, struct rbx_wire_message *message,
		uint16_t expected, struct rbx_wire_message *answer)
{
	int err;

	pthread_mutex_lock(&session->call_lock);
	err = rbx_session_call(session, message, expected, answer);
	pthread_mutex_unlock(&session->call_lock);
	return err;
}

/* With the grant is noted, before any resume, that it has come. */
static int map_call(struct rbx_session *session,
		    struct rbx_wire_message *answer)
{
	struct rbx_wire_message message = { .type = RBX_WIRE_SLAB_MAP };
	int err;

	pthread_mutex_lock(&session->call_lock);
	err = rbx_session_call(session, &message, RBX_WIRE_SLAB_GRANT, answer);
	if (!err && !rbx_wire_grant_makes_sense(&answer->grant,
					        session->welcome.slab_bytes))
		err = rbx_error(-EPROTO, "%s lends a slab that cannot be",
				session->address);
	if (!err)
		session->last_epoch = answer->epoch;
	pthread_mutex_unlock(&session->call_lock);
	return err;
}

int rbx_session_map(struct rbx_session *session, struct rbx_grant *grant)
{
	struct rbx_wire_message answer;
	int err = map_call(session, &answer);

	if (err)
		return err;
	*grant = (struct rbx_grant){
		.slab_id = answer.grant.slab_id,
		.epoch = answer.epoch,
		.remote_addr = answer.grant.remote_addr,
		.length_bytes = answer.grant.length_bytes,
		.rkey = answer.grant.rkey,
	};
	return 0;
}

int rbx_session_unmap(struct rbx_session *session, const struct rbx_grant *grant)
{
	struct rbx_wire_message message = {
		.type = RBX_WIRE_SLAB_UNMAP,
		.epoch = grant->epoch,
		.slab_id = grant->slab_id,
	};
	struct rbx_wire_message answer;

	return call(session, &message, RBX_WIRE_SLAB_UNMAPPED, &answer);
}

int rbx_session_check(struct rbx_session *session, const struct rbx_grant *grant)
{
	struct rbx_wire_message message = {
		.type = RBX_WIRE_SLAB_QUERY,
		.epoch = grant->epoch,
		.slab_id = grant->slab_id,
	};
	struct rbx_wire_message answer;
	int err;

	err = call(session, &message, RBX_WIRE_SLAB_GRANT, &answer);
	if (err)
		return err;
	if (answer.grant.slab_id != grant->slab_id ||
	    answer.epoch != grant->epoch ||
	    answer.grant.remote_addr != grant->remote_addr ||
	    answer.grant.rkey != grant->rkey)
		return rbx_error(-ESTALE, "%s has moved the slab",
				 session->address);
	return 0;
}

/* ---- Numbers ----------------------------------------------------------------*/

int rbx_session_stats(struct rbx_session *session,
		      struct rbx_server_stats *stats)
{
	struct rbx_wire_message message = { .type = RBX_WIRE_STATS };
	struct rbx_wire_message answer;
	struct rbx_server_stats all = { 0 };
	uint32_t next = 0;
	int err;

	err = call(session, &message, RBX_WIRE_STATS_REPLY, &answer);
	if (err)
		return err;
	/* Zero from counters.count on: what an older server does not know. */
#define RBX_COUNTER(name, what) all.name = answer.counters.values[next++];
	RBX_SERVER_STATS(RBX_COUNTER)
#undef RBX_COUNTER
	all.size_bytes = RBX_MIN(stats->size_bytes, sizeof(all));
	memcpy(stats, &all, all.size_bytes);
	return 0;
}

uint64_t rbx_session_slab_bytes(const struct rbx_session *session)
{
	return session->welcome.slab_bytes;
}

uint32_t rbx_session_lease_ms(const struct rbx_session *session)
{
	return session->welcome.lease_ms;
}

uint64_t rbx_session_heard_ns(const struct rbx_session *session)
{
	return rbx_lease_heard_ns(&session->lease);
}

uint64_t rbx_session_free_bytes(const struct rbx_session *session)
{
	return RBX_LOAD_RELAXED(&session->free_bytes);
}

const char *rbx_session_address(const struct rbx_session *session)
{
	return session->address;
}
