/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recovery.c - the thread that does the steps of core/recovery.h: it restores a peer's
 * connection, or gives up.
 *
 * What is paged in or out may wait for this thread, so nothing that it allocates may
 * begin I/O, and where memory is short it goes to the reserves.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>

#include "core/lease.h"
#include "kernel/lib/peer.h"
#include "kernel/lib/trace.h"

/* For the moment in which another thread still combines. */
#define LOOK_AGAIN_US_MIN 50
#define LOOK_AGAIN_US_MAX 200

void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason)
{
	unsigned long flags;
	bool is_new;

	spin_lock_irqsave(&peer->lock, flags);
	is_new = rbx_recovery_broken(&peer->recovery);
	if (is_new) /* else there is perhaps no session yet */
		rbx_recovery_begin(
			&peer->recovery, rbx_session_heard_ns(peer->session),
			peer->events.hold ?
				rbx_session_lease_half_ns(peer->session) :
				0,
			ktime_get_ns());
	spin_unlock_irqrestore(&peer->lock, flags);
	if (!is_new)
		return;
	trace_rdmabox_peer_state(peer, RBX_PEER_DRAINING);
	pr_notice("rdmabox: %s: %s\n", rbx_session_name(peer->session), reason);
	wake_up(&peer->changed);
}

static void look_for_stall(struct rbx_peer *peer)
{
	bool stands_still;
	uint32_t rings_mask = 0, i;

	for (i = 0; i < peer->lane_count; i++)
		if (rbx_poller_has_looked(peer->lanes[i].poller,
					  &peer->lanes[i].polls_count))
			rings_mask |= 1u << i;
	spin_lock_irq(&peer->lock);
	stands_still = rbx_recovery_stands_still(&peer->recovery, rings_mask);
	spin_unlock_irq(&peer->lock);
	if (stands_still)
		rbx_peer_note_broken(peer, "it answers no work request");
}

/* ---- Steps ------------------------------------------------------------------*/

static void drain(struct rbx_peer *peer, uint64_t until_ns)
{
	while (!rbx_channel_seize(&peer->channel))
		usleep_range(LOOK_AGAIN_US_MIN, LOOK_AGAIN_US_MAX);
	rbx_peer_destroy_lanes(peer, until_ns);
	trace_rdmabox_peer_state(peer, RBX_PEER_RESUMING);
	spin_lock_irq(&peer->lock);
	rbx_recovery_drained(&peer->recovery, ktime_get_ns());
	spin_unlock_irq(&peer->lock);
}

static void end(struct rbx_peer *peer, struct rbx_fragment *ended)
{
	if (ended)
		rbx_poller_end(rbx_peer_poller(peer), ended);
}

static void ask_owner(struct rbx_peer *peer)
{
	bool holds = peer->events.hold(peer, peer->events.user);
	struct rbx_fragment *gone =
		rbx_recovery_withdraw(&peer->recovery, peer->events.wait);

	if (gone)
		rbx_drive_refuse(&rbx_peer_drive, &peer->channel, gone);
	spin_lock_irq(&peer->lock);
	rbx_recovery_asked(&peer->recovery, holds, ktime_get_ns());
	spin_unlock_irq(&peer->lock);
}

static void give_up(struct rbx_peer *peer)
{
	struct rbx_fragment *ended;

	trace_rdmabox_peer_state(peer, RBX_PEER_DOWN);
	pr_warn("rdmabox: %s is given up\n", rbx_session_name(peer->session));
	if (peer->events.down)
		peer->events.down(peer, peer->events.user);
	spin_lock_irq(&peer->lock);
	ended = rbx_recovery_given_up(&peer->recovery);
	spin_unlock_irq(&peer->lock);
	end(peer, ended);
	rbx_peer_combine(peer);
	/* Last, as it may wait for others: I/Os are on their way by now. */
	rbx_session_give_up(peer->session);
}

static int try_to_resume(struct rbx_peer *peer, uint64_t until_ns)
{
	int err = rbx_session_resume(peer->session, until_ns);

	/* Only resume() may say that all is gone: what refuses a queue pair is
	 * that the new connection has broken already. */
	if (!err && rbx_peer_connect_lanes(peer, until_ns))
		err = -ENOTCONN;
	return err;
}

static void resume(struct rbx_peer *peer, uint64_t until_ns)
{
	int err = try_to_resume(peer, until_ns);
	struct rbx_fragment *ended;
	bool is_up, again;

	spin_lock_irq(&peer->lock);
	is_up = rbx_recovery_resumed(&peer->recovery, err, ktime_get_ns(),
				     &ended, &again);
	spin_unlock_irq(&peer->lock);
	if (!is_up)
		return;
	end(peer, ended);
	trace_rdmabox_peer_state(peer, RBX_PEER_UP);
	pr_notice("rdmabox: %s: resumed\n", rbx_session_name(peer->session));
	rbx_peer_combine(peer);
	if (again)
		rbx_peer_note_broken(peer, "it broke while it was resumed");
}

/* ---- The thread ---------------------------------------------------------------*/

static bool is_wanted(struct rbx_peer *peer)
{
	return READ_ONCE(peer->recovery.state.phase) == RBX_PEER_DRAINING ||
	       kthread_should_stop();
}

static void wait(struct rbx_peer *peer, uint64_t at_ns)
{
	uint64_t left_ns = rbx_lease_since_ns(at_ns, ktime_get_ns());

	wait_event_idle_timeout(peer->changed, is_wanted(peer),
				(long)nsecs_to_jiffies64(min_t(uint64_t, left_ns,
							NSEC_PER_SEC * 3600)) + 1);
}

static void turn(struct rbx_peer *peer)
{
	enum rbx_recovery_step step;
	uint64_t at_ns;

	spin_lock_irq(&peer->lock);
	step = rbx_recovery_next(&peer->recovery, ktime_get_ns(), &at_ns);
	spin_unlock_irq(&peer->lock);
	switch (step) {
	case RBX_RECOVERY_WAIT:
		wait(peer, at_ns);
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

int rbx_peer_recovery_main(void *argument)
{
	unsigned int noio = memalloc_noio_save();
	unsigned int noreclaim = memalloc_noreclaim_save();

	while (!kthread_should_stop())
		turn(argument);
	memalloc_noreclaim_restore(noreclaim);
	memalloc_noio_restore(noio);
	return 0;
}
