/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.c - the thread that restores a peer's connection, or gives up.
 *
 * When a work request fails, a queue pair ends, or the control session is lost
 * (rbx_peer_note_broken), it
 *
 *   1. halts the channel and seizes the combiner's role: from here on nothing
 *      is posted;
 *   2. disconnects the queue pairs and waits until each work request has come
 *      back; what may be sent again is kept by the poller;
 *   3. resumes the session. The server ends the old queue pairs before it
 *      answers, so nothing of before can still be carried out;
 *   4. connects new queue pairs, puts what was kept into the merge queue,
 *      opens the channel and goes on as the combiner.
 *
 * Where 3 or 4 cannot be done in time the channel is declared dead: what waits,
 * and all that comes later, ends with -EHOSTUNREACH. The core's peer_state decides
 * when to do what; this file does it.
 *
 * With each heartbeat that a peer answers, which is RBX_STALL_LOOKS times within
 * half of the peer timeout, it is seen whether it also answers work requests
 * (core/stall.h). One that does not gets new queue pairs; one that does not answer
 * on these either is given up, as if it had gone. So the thread sleeps as long as
 * all is well.
 *
 * What is paged in may wait for this thread, so nothing that it allocates may
 * begin I/O.
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
	is_new = !peer->closing && peer->state.phase == RBX_PEER_UP;
	if (is_new) {
		rbx_peer_state_broken(&peer->state,
				      rbx_lease_heard_ns(&peer->session->lease),
				      ktime_get_ns());
		rbx_channel_set_state(&peer->channel, RBX_CHANNEL_HALTED);
	}
	peer->broken_meanwhile = true;
	spin_unlock_irqrestore(&peer->lock, flags);
	if (!is_new)
		return;
	trace_rdmabox_peer_state(peer, RBX_PEER_DRAINING);
	pr_notice("rdmabox: %s: %s\n", rbx_session_name(peer->session), reason);
	wake_up(&peer->changed);
}

/* Steps 1 and 2 of the file head. Afterwards the keeper is the combiner. */
static void drain(struct rbx_peer *peer)
{
	while (!rbx_channel_seize(&peer->channel))
		usleep_range(LOOK_AGAIN_US_MIN, LOOK_AGAIN_US_MAX);
	rbx_peer_destroy_lanes(peer);
	RBX_ASSERT(rbx_channel_idle(&peer->channel));
}

/*
 * Opens the channel in its new state with what was kept. The keeper is still
 * the combiner, so nothing is posted before it combines.
 */
static void reopen_locked(struct rbx_peer *peer, enum rbx_channel_state state)
{
	struct rbx_fragment *fragment;

	for (fragment = peer->again_first; fragment;
	     fragment = rbx_fragment_next(fragment))
		peer->retries_count++;
	rbx_channel_send_again(&peer->channel, peer->again_first);
	peer->again_first = NULL;
	peer->again_last = NULL;
	rbx_channel_set_state(&peer->channel, state);
}

static void give_up(struct rbx_peer *peer)
{
	trace_rdmabox_peer_state(peer, RBX_PEER_DOWN);
	pr_warn("rdmabox: %s is given up\n", rbx_session_name(peer->session));
	rbx_session_give_up(peer->session);
	if (peer->events.down)
		peer->events.down(peer, peer->events.user);
	spin_lock_irq(&peer->lock);
	reopen_locked(peer, RBX_CHANNEL_DEAD);
	spin_unlock_irq(&peer->lock);
	rbx_peer_combine(peer);
}

static void resume(struct rbx_peer *peer)
{
	bool broken_again;
	int err;

	spin_lock_irq(&peer->lock);
	peer->broken_meanwhile = false;
	spin_unlock_irq(&peer->lock);
	err = rbx_session_resume(peer->session,
				 peer->client->options.peer_timeout_ms / 4);
	/* Only resume() may say that all is gone: what refuses a queue pair is
	 * that the new connection has broken already. */
	if (!err && rbx_peer_connect_lanes(peer))
		err = -ENOTCONN;
	spin_lock_irq(&peer->lock);
	if (err) {
		rbx_peer_state_resume_failed(&peer->state, err,
					     ktime_get_ns());
		spin_unlock_irq(&peer->lock);
		return;
	}
	rbx_peer_state_resumed(&peer->state);
	reopen_locked(peer, RBX_CHANNEL_OPEN);
	broken_again = peer->broken_meanwhile;
	spin_unlock_irq(&peer->lock);
	trace_rdmabox_peer_state(peer, RBX_PEER_UP);
	pr_notice("rdmabox: %s: resumed\n", rbx_session_name(peer->session));
	rbx_peer_combine(peer);
	if (broken_again)
		rbx_peer_note_broken(peer, "it broke while it was resumed");
}

/* ---- Stalls -----------------------------------------------------------------*/

/* Of all lanes; it only matters whether it changes. */
static uint32_t answered_count(const struct rbx_peer *peer)
{
	uint32_t count = 0, i;

	for (i = 0; i < peer->lane_count; i++)
		count += RBX_LOAD_RELAXED(&peer->channel.rings[i].answered_count);
	return count;
}

static void note_stall(struct rbx_peer *peer)
{
	uint32_t count = answered_count(peer), i;

	spin_lock_irq(&peer->lock);
	if (count != peer->stalled_at_count)
		peer->stalls_count = 0;
	peer->stalled_at_count = count;
	peer->stalls_count++;
	spin_unlock_irq(&peer->lock);
	/* What comes after the repair is looked at anew. */
	for (i = 0; i < peer->lane_count; i++)
		peer->lanes[i].stall.looks_count = 0;
}

void rbx_peer_look_for_stall(struct rbx_peer *peer)
{
	bool stands_still = false;
	uint32_t i;

	for (i = 0; i < peer->lane_count; i++)
		stands_still |= rbx_stall_look(&peer->lanes[i].stall,
					       &peer->channel.rings[i]);
	if (!stands_still)
		return;
	note_stall(peer);
	rbx_peer_note_broken(peer, "it answers no work request");
}

/* ---- The thread ---------------------------------------------------------------*/

static bool is_wanted(struct rbx_peer *peer)
{
	return READ_ONCE(peer->state.phase) == RBX_PEER_DRAINING ||
	       kthread_should_stop();
}

static void sleep_until(struct rbx_peer *peer, uint64_t at_ns)
{
	uint64_t now_ns = ktime_get_ns();
	uint64_t left_ns = rbx_lease_since_ns(at_ns, now_ns);

	wait_event_idle_timeout(peer->changed, is_wanted(peer),
				(long)nsecs_to_jiffies64(min_t(uint64_t, left_ns,
							NSEC_PER_SEC * 3600)) + 1);
}

static void turn(struct rbx_peer *peer)
{
	enum rbx_peer_action action;
	enum rbx_peer_phase phase;
	uint64_t at_ns;

	spin_lock_irq(&peer->lock);
	action = rbx_peer_state_next(&peer->state, ktime_get_ns(), &at_ns);
	phase = peer->state.phase;
	spin_unlock_irq(&peer->lock);
	if (phase == RBX_PEER_DRAINING) {
		drain(peer);
		trace_rdmabox_peer_state(peer, RBX_PEER_RESUMING);
		spin_lock_irq(&peer->lock);
		rbx_peer_state_drained(&peer->state, ktime_get_ns());
		/* New queue pairs have been of no use to it. */
		if (peer->stalls_count > 1)
			rbx_peer_state_resume_failed(&peer->state, -ESTALE,
						     ktime_get_ns());
		spin_unlock_irq(&peer->lock);
	} else if (action == RBX_PEER_RESUME) {
		resume(peer);
	} else if (action == RBX_PEER_GIVE_UP) {
		give_up(peer);
	} else {
		sleep_until(peer, at_ns);
	}
}

int rbx_peer_keeper_main(void *argument)
{
	unsigned int noio = memalloc_noio_save();

	while (!kthread_should_stop())
		turn(argument);
	memalloc_noio_restore(noio);
	return 0;
}
