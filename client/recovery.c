/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recovery.c - the steps of core/recovery.h, which restore a peer's connection, or give it
 * up. repairs.c decides which thread does them and when.
 *
 * A look for stalls says nothing of a queue pair whose poller has not looked either. A
 * program that polls itself may be busy, a callback may take its time, and so may other
 * threads on the processor.
 */
#include "client/queue_pairs.h"
#include "client/notice.h"
#include "core/status.h"

/* For the moment in which another thread is still the combiner. */
#define LOOK_AGAIN_NS 100000u

/* Whether it was not known yet. */
static bool begin(struct rbx_peer *peer, const char *reason)
{
	struct rbx_session *session = peer->session;
	bool is_new;

	rbx_monitor_enter(&peer->repairs->monitor);
	is_new = rbx_recovery_broken(&peer->recovery);
	if (is_new) { /* otherwise there may be no session yet */
		rbx_recovery_begin(&peer->recovery,
				   rbx_session_heard_ns(session),
				   rbx_session_lease_half_ns(session),
				   peer->events.hold != NULL, rbx_now_ns());
		rbx_text_copy(peer->reason, sizeof(peer->reason), reason);
		rbx_monitor_wake(&peer->repairs->monitor);
	}
	rbx_monitor_leave(&peer->repairs->monitor);
	return is_new;
}

void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason)
{
	if (begin(peer, reason))
		rbx_notice_phase(peer, RBX_PEER_DRAINING, reason);
}

/* A try to resume that is being made may still succeed. Then this is noted as the next break. */
void rbx_peer_renounce(struct rbx_peer *peer, const char *reason)
{
	RBX_STORE_RELEASE(&peer->is_renounced, true);
	rbx_peer_note_broken(peer, reason);
}

/* ---- Steps ------------------------------------------------------------------*/

static void look_for_stall(struct rbx_peer *peer)
{
	uint32_t rings_mask = rbx_peer_rings_looked(peer);
	bool stands_still;

	rbx_monitor_enter(&peer->repairs->monitor);
	stands_still = rbx_recovery_stands_still(&peer->recovery, rings_mask);
	rbx_monitor_leave(&peer->repairs->monitor);
	if (stands_still)
		rbx_peer_note_broken(peer, "it does not answer work requests");
}

static void drain(struct rbx_peer *peer, uint64_t until_ns)
{
	while (!rbx_channel_seize(&peer->channel))
		rbx_pause_ns(LOOK_AGAIN_NS);
	rbx_peer_drain_qps(peer, until_ns);
	rbx_notice_phase(peer, RBX_PEER_RESUMING, "");
	rbx_monitor_enter(&peer->repairs->monitor);
	rbx_recovery_drained(&peer->recovery, rbx_now_ns());
	rbx_monitor_leave(&peer->repairs->monitor);
}

static void end(struct rbx_peer *peer, struct rbx_fragment *ended)
{
	if (ended)
		rbx_poller_end(peer->poller, ended);
}

static void ask_owner(struct rbx_peer *peer)
{
	bool holds = peer->events.hold(peer, peer->events.user);
	struct rbx_fragment *gone =
		rbx_recovery_withdraw(&peer->recovery, peer->events.wait);

	if (gone)
		rbx_drive_refuse(&rbx_peer_drive, &peer->channel, gone);
	rbx_monitor_enter(&peer->repairs->monitor);
	rbx_recovery_asked(&peer->recovery, holds, rbx_now_ns());
	rbx_monitor_leave(&peer->repairs->monitor);
}

static void give_up(struct rbx_peer *peer)
{
	struct rbx_fragment *ended;

	rbx_notice_phase(peer, RBX_PEER_DOWN, peer->reason);
	if (peer->events.down)
		peer->events.down(peer, peer->events.user);
	rbx_monitor_enter(&peer->repairs->monitor);
	ended = rbx_recovery_given_up(&peer->recovery);
	rbx_monitor_leave(&peer->repairs->monitor);
	end(peer, ended);
	rbx_peer_combine(peer);
}

static int try_to_resume(struct rbx_peer *peer, uint64_t until_ns)
{
	int err;

	if (RBX_LOAD_ACQUIRE(&peer->is_renounced))
		return -ESTALE;
	rbx_session_hold_asks(peer->session);
	err = rbx_session_resume(peer->session, until_ns);
	if (!err && RBX_LOAD_ACQUIRE(&peer->is_renounced))
		err = -ESTALE;
	if (!err) {
		err = rbx_peer_connect_qps(peer, until_ns);
		/* Only resume() may decide that all is lost. A refused queue pair means that
		 * the new connection has broken already, or that this machine lacks
		 * something. */
		if (err && !rbx_status_is_shortage(err))
			err = -ENOTCONN;
	}
	rbx_session_let_asks_go(peer->session);
	return err;
}

static void resume(struct rbx_peer *peer, uint64_t until_ns)
{
	int err = try_to_resume(peer, until_ns);
	struct rbx_fragment *ended;
	bool is_up, again;

	rbx_monitor_enter(&peer->repairs->monitor);
	/* The server knows why, better than whoever has found the connection broken. */
	if (err == -ESTALE && !RBX_LOAD_ACQUIRE(&peer->is_renounced))
		rbx_text_copy(peer->reason, sizeof(peer->reason), rbx_error_text());
	is_up = rbx_recovery_resumed(&peer->recovery, err, rbx_now_ns(),
				     &ended, &again);
	rbx_monitor_leave(&peer->repairs->monitor);
	if (!is_up)
		return;
	end(peer, ended);
	rbx_notice_phase(peer, RBX_PEER_UP, "");
	if (peer->events.back)
		peer->events.back(peer, peer->events.user);
	rbx_peer_combine(peer);
	if (again)
		rbx_peer_note_broken(peer, "it broke while it was resumed");
}

/* ---- All of them ------------------------------------------------------------------*/

void rbx_peer_do_step(struct rbx_peer *peer, enum rbx_recovery_step step,
		      uint64_t at_ns)
{
	switch (step) {
	case RBX_RECOVERY_WAIT:
		break;
	case RBX_RECOVERY_LOOK:
		look_for_stall(peer);
		break;
	case RBX_RECOVERY_DRAIN:
		drain(peer, at_ns);
		break;
	case RBX_RECOVERY_RESUME:
		resume(peer, at_ns);
		break;
	case RBX_RECOVERY_ASK:
		ask_owner(peer);
		break;
	case RBX_RECOVERY_GIVE_UP:
		give_up(peer);
		break;
	}
}
