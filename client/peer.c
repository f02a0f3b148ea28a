/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - opens and closes a connection to one memory server.
 *
 * The session comes first, then the data queue pairs, then the threads that maintain both
 * (repairs.h). Closing goes backwards: nothing is outstanding then, so nothing has to be
 * restored.
 */
#include "client/queue_pairs.h"
#include "client/notice.h"

static void session_lost(void *user, const char *reason)
{
	rbx_peer_note_broken(user, reason);
}

static void session_evict(void *user, const struct rbx_eviction *eviction)
{
	struct rbx_peer *peer = user;

	rbx_notice_eviction(peer, eviction);
	if (peer->events.evict)
		peer->events.evict(peer, eviction, peer->events.user);
}

static void session_drains(void *user)
{
	struct rbx_peer *peer = user;

	if (peer->events.drains)
		peer->events.drains(peer, peer->events.user);
}

/* ---- Open and close -------------------------------------------------------------*/

void rbx_peer_prepare(struct rbx_peer *peer, struct rbx_context *ctx,
		      struct rbx_repairs *repairs,
		      const struct rbx_planner *planner,
		      struct rbx_window *window, uint32_t peer_timeout_ms,
		      const struct rbx_peer_events *events)
{
	peer->ctx = ctx;
	peer->repairs = repairs;
	if (events)
		peer->events = *events;
	rbx_recovery_init(&peer->recovery, &peer->channel,
			  (uint64_t)peer_timeout_ms * 1000000);
	rbx_channel_init(&peer->channel, planner, window);
}

static int open_session(struct rbx_peer *peer, const void *address)
{
	const struct rbx_session_events events = {
		.lost = session_lost,
		.evict = session_evict,
		.drains = session_drains,
		.user = peer,
	};

	return rbx_peer_open_session(peer, address, &events);
}

static int look_after(struct rbx_peer *peer)
{
	bool broken;
	int err;

	rbx_monitor_enter(&peer->repairs->monitor);
	broken = rbx_recovery_opened(&peer->recovery,
				     rbx_session_lease_ns(peer->session),
				     rbx_now_ns());
	rbx_monitor_leave(&peer->repairs->monitor);
	err = rbx_repairs_add(peer->repairs, peer);
	if (err)
		return rbx_error(err, "cannot start a thread that repairs the connection to %s",
				 rbx_peer_name(peer));
	rbx_notice_phase(peer, RBX_PEER_UP, "");
	if (broken)
		rbx_peer_note_broken(peer, "it broke while it was opened");
	return 0;
}

int rbx_peer_connect_to(struct rbx_peer *peer, const void *address)
{
	int err = rbx_context_add_peer(peer->ctx, peer);

	if (err)
		return err;
	err = open_session(peer, address);
	if (err)
		goto out_remove;
	if (peer->events.welcomed)
		err = peer->events.welcomed(peer, peer->events.user);
	if (!err)
		err = rbx_peer_connect_qps(peer, 0);
	if (err)
		goto out_remove;
	err = look_after(peer);
	if (!err)
		return 0;
	rbx_peer_stop_soon(peer);
	rbx_peer_destroy_qps(peer);
out_remove:
	/* A thread that finds the peer in the context may use its session. */
	rbx_context_remove_peer(peer->ctx, peer);
	if (peer->session)
		rbx_session_close(peer->session);
	return err;
}

void rbx_peer_stop_soon(struct rbx_peer *peer)
{
	rbx_monitor_enter(&peer->repairs->monitor);
	rbx_recovery_close(&peer->recovery);
	rbx_monitor_leave(&peer->repairs->monitor);
}

void rbx_peer_stop(struct rbx_peer *peer)
{
	if (peer->is_stopped)
		return;
	rbx_repairs_remove(peer->repairs, peer);
	peer->is_stopped = true;
}

void rbx_peer_leave(struct rbx_peer *peer)
{
	rbx_peer_stop(peer);
	RBX_ASSERT(rbx_channel_idle(&peer->channel));
	rbx_peer_destroy_qps(peer);
	rbx_context_remove_peer(peer->ctx, peer); /* before its session, as above */
	rbx_session_close(peer->session);
	rbx_peer_free(peer);
}

/* ---- For the channel's table ----------------------------------------------------- */

void rbx_peer_note_failed(struct rbx_channel *channel)
{
	rbx_peer_note_broken(rbx_peer_of_channel(channel),
			     "a work request failed");
}

void rbx_peer_keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	struct rbx_peer *peer = rbx_peer_of_channel(channel);

	rbx_monitor_enter(&peer->repairs->monitor);
	rbx_recovery_keep(&peer->recovery, harvest);
	rbx_monitor_leave(&peer->repairs->monitor);
}

void rbx_peer_end_later(struct rbx_channel *channel, struct rbx_fragment *list)
{
	rbx_poller_end(rbx_peer_of_channel(channel)->poller, list);
}

void rbx_peer_unpark(struct rbx_channel *channel)
{
	rbx_poller_unpark(rbx_peer_of_channel(channel)->poller);
}

/* ---- For the users of the peer ----------------------------------------------------- */

void rbx_peer_set_timeout(struct rbx_peer *peer, uint32_t peer_timeout_ms)
{
	rbx_monitor_enter(&peer->repairs->monitor);
	rbx_peer_state_set_timeout(&peer->recovery.state, (uint64_t)peer_timeout_ms * 1000000);
	peer->recovery.look_at_ns = 0; /* the next look for a stall, too */
	rbx_monitor_wake(&peer->repairs->monitor);
	rbx_monitor_leave(&peer->repairs->monitor);
	rbx_session_set_silence(peer->session, peer_timeout_ms / 2);
}

bool rbx_peer_is_broken(const struct rbx_peer *peer)
{
	return RBX_LOAD_RELAXED(&peer->recovery.state.up_since_ns) == UINT64_MAX;
}

bool rbx_peer_is_up(struct rbx_peer *peer)
{
	return rbx_peer_state_is_stable(&peer->recovery.state, rbx_now_ns());
}

const char *rbx_peer_reason(const struct rbx_peer *peer)
{
	return peer->reason;
}

const char *rbx_peer_name(const struct rbx_peer *peer)
{
	return rbx_session_name(peer->session);
}

uint64_t rbx_peer_incarnation(const struct rbx_peer *peer)
{
	return rbx_session_incarnation(peer->session);
}

const char *rbx_peer_labels(const struct rbx_peer *peer)
{
	return rbx_session_labels(peer->session);
}

uint64_t rbx_peer_slab_bytes(const struct rbx_peer *peer)
{
	return rbx_session_slab_bytes(peer->session);
}

uint64_t rbx_peer_free_bytes(const struct rbx_peer *peer)
{
	return rbx_session_free_bytes(peer->session);
}

int rbx_peer_map(struct rbx_peer *peer, struct rbx_loan *loan)
{
	return rbx_session_map(peer->session, loan);
}

void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask)
{
	rbx_session_ask(peer->session, ask);
}

int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask,
		    struct rbx_loan *loan)
{
	return rbx_session_answer(peer->session, ask, loan);
}

struct rbx_session *rbx_peer_session(struct rbx_peer *peer)
{
	return peer->session;
}

int rbx_peer_unmap(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	return rbx_session_unmap(peer->session, loan);
}

int rbx_peer_check(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	return rbx_session_check(peer->session, loan);
}
