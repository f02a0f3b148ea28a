/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recovery.c - the thread that does the steps of core/recovery.h: it restores a peer's
 * connection, or gives up.
 *
 * A look for stalls says nothing of a lane whose poller has not looked either: a program
 * that polls itself may do something else for a while, and a callback may take its time.
 */
#include <stdio.h>
#include <time.h>

#include "lib/peer/internal.h"

/* For the moment in which another thread still combines. */
#define LOOK_AGAIN_NS 100000

static void note_broken_locked(struct rbx_peer *peer, const char *reason)
{
	struct rbx_session *session = peer->session;

	if (!rbx_recovery_broken(&peer->recovery))
		return; /* perhaps there is no session yet */
	rbx_recovery_begin(&peer->recovery, rbx_session_heard_ns(session),
			   peer->events.hold ?
				   rbx_session_lease_half_ns(session) :
				   0,
			   rbx_now_ns());
	snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
	pthread_cond_signal(&peer->changed);
}

void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason)
{
	pthread_mutex_lock(&peer->lock);
	note_broken_locked(peer, reason);
	pthread_mutex_unlock(&peer->lock);
}

/* ---- Steps; the lock is held, but while they wait ------------------------------*/

static void drain_locked(struct rbx_peer *peer, uint64_t until_ns)
{
	pthread_mutex_unlock(&peer->lock);
	while (!rbx_channel_seize(&peer->channel))
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
	rbx_peer_drain_lanes(peer, until_ns);
	pthread_mutex_lock(&peer->lock);
	rbx_recovery_drained(&peer->recovery, rbx_now_ns());
}

static void end(struct rbx_peer *peer, struct rbx_fragment *ended)
{
	if (ended)
		rbx_poller_end(peer->lanes[0].poller, ended);
}

static void ask_owner_locked(struct rbx_peer *peer)
{
	struct rbx_fragment *gone;
	bool holds;

	pthread_mutex_unlock(&peer->lock);
	holds = peer->events.hold(peer, peer->events.user);
	gone = rbx_recovery_withdraw(&peer->recovery, peer->events.wait);
	if (gone)
		rbx_drive_refuse(&rbx_peer_drive, &peer->channel, gone);
	pthread_mutex_lock(&peer->lock);
	rbx_recovery_asked(&peer->recovery, holds, rbx_now_ns());
}

static void give_up_locked(struct rbx_peer *peer)
{
	pthread_mutex_unlock(&peer->lock);
	if (peer->events.down)
		peer->events.down(peer, peer->reason, peer->events.user);
	pthread_mutex_lock(&peer->lock);
	end(peer, rbx_recovery_given_up(&peer->recovery));
	pthread_mutex_unlock(&peer->lock);
	rbx_peer_combine(peer);
	/* Last, as it may wait for others: requests are on their way by now. */
	rbx_session_give_up(peer->session);
	pthread_mutex_lock(&peer->lock);
}

static int resume(struct rbx_peer *peer, uint64_t until_ns)
{
	int err = rbx_session_resume(peer->session, until_ns);

	/* Only resume() may say that all is gone: what refuses a queue pair is
	 * that the new connection has broken already. */
	if (!err && rbx_peer_connect_lanes(peer, until_ns))
		err = -ENOTCONN;
	return err;
}

static void resume_locked(struct rbx_peer *peer, uint64_t until_ns)
{
	struct rbx_fragment *ended;
	bool again;
	int err;

	pthread_mutex_unlock(&peer->lock);
	err = resume(peer, until_ns);
	pthread_mutex_lock(&peer->lock);
	if (!rbx_recovery_resumed(&peer->recovery, err, rbx_now_ns(), &ended,
				  &again))
		return;
	end(peer, ended);
	pthread_mutex_unlock(&peer->lock);
	rbx_peer_combine(peer);
	if (again)
		rbx_peer_note_broken(peer, "it broke while it was resumed");
	pthread_mutex_lock(&peer->lock);
}

/* ---- Stalls -----------------------------------------------------------------*/

static void look_for_stall_locked(struct rbx_peer *peer)
{
	uint32_t rings_mask = 0;

	for (uint32_t i = 0; i < peer->lane_count; i++) {
		struct rbx_lane *lane = &peer->lanes[i];

		if (rbx_poller_has_looked(lane->poller, &lane->polls_count))
			rings_mask |= 1u << lane->ring_index;
	}
	if (rbx_recovery_stands_still(&peer->recovery, rings_mask))
		note_broken_locked(peer, "it answers no work request");
}

/* ---- The thread ---------------------------------------------------------------*/

static void wait_locked(struct rbx_peer *peer, uint64_t at_ns)
{
	struct timespec at = rbx_timespec_at(at_ns);

	pthread_cond_timedwait(&peer->changed, &peer->lock, &at);
}

void *rbx_peer_recovery_main(void *arg)
{
	struct rbx_peer *peer = arg;
	uint64_t at_ns;

	pthread_mutex_lock(&peer->lock);
	while (!peer->recovery.closing) {
		switch (rbx_recovery_next(&peer->recovery, rbx_now_ns(),
					  &at_ns)) {
		case RBX_RECOVERY_WAIT:
			wait_locked(peer, at_ns);
			break;
		case RBX_RECOVERY_LOOK:
			look_for_stall_locked(peer);
			break;
		case RBX_RECOVERY_DRAIN:
			drain_locked(peer, at_ns);
			break;
		case RBX_RECOVERY_RESUME:
			resume_locked(peer, at_ns);
			break;
		case RBX_RECOVERY_ASK:
			ask_owner_locked(peer);
			break;
		case RBX_RECOVERY_GIVE_UP:
			give_up_locked(peer);
			break;
		}
	}
	pthread_mutex_unlock(&peer->lock);
	return NULL;
}
