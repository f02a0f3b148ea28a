/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.c - the thread that restores a peer's connection, or gives up.
 *
 * When a work request fails, a queue pair ends, or
 * the control session is lost (rbx_peer_note_broken), it
 *
 *   1. halts the channel and seizes the combiner's role: from here on nothing
 *      is posted;
 *   2. disconnects the queue pairs and waits until each work request has come
 *      back flushed; what may be sent again is kept by the poller;
 *   3. resumes the session. The server ends the old queue pairs before it
 *      answers, so nothing of before can still be carried out;
 *   4. connects new queue pairs, puts what was kept into the merge queue,
 *      opens the channel and goes on as the combiner.
 *
 * Where 3 or 4 cannot be done in time the channel is declared dead: what waits,
 * and all that comes later, ends with -EHOSTUNREACH.
 *
 * While all is well it looks now and then whether a peer that is alive also
 * answers work requests (stall.c). One that does not gets new queue pairs; one
 * that does not answer on these either is given up, as if it had gone.
 *
 * The core's peer_state decides when to do what; this file does it.
 */
#include <stdio.h>
#include <time.h>

#include "lib/peer/internal.h"

/* How often the two short waits look again. Both wait for other threads that
 * are already at work, so a fraction of a millisecond costs nothing. */
#define LOOK_AGAIN_NS 100000

static void look_again_soon(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
}

static int connect_lane(struct rbx_peer *peer, struct rbx_lane *lane)
{
	struct rbx_recv_wr sentinel = {
		.wr_id = RBX_SENTINEL_WR_ID, /* of no bytes: nobody sends */
	};
	struct rbx_qp_init init = {
		.send_cq = lane->poller->cq,
		.recv_cq = lane->poller->cq,
		.send_depth_count = peer->send_depth_count,
		.recv_depth_count = 1,
		.max_sge = peer->ctx->planner.sge_max,
		.max_inline_bytes = peer->ctx->device->caps.max_inline_bytes,
		.user = lane,
	};
	struct rbx_recv_wr *bad;
	int err = rbx_session_connect_qp(peer->session, &init, &lane->qp);

	if (err)
		return err;
	err = lane->qp->device->ops->post_recv(lane->qp, &sentinel, &bad);
	if (err) {
		lane->qp->device->ops->destroy_qp(lane->qp);
		lane->qp = NULL;
	}
	return err;
}

int rbx_peer_connect_lanes(struct rbx_peer *peer)
{
	for (uint32_t i = 0; i < peer->lane_count; i++) {
		int err = connect_lane(peer, &peer->lanes[i]);

		if (err) {
			rbx_peer_destroy_lanes(peer);
			return err;
		}
	}
	return 0;
}

void rbx_peer_destroy_lanes(struct rbx_peer *peer)
{
	for (uint32_t i = 0; i < peer->lane_count; i++) {
		struct rbx_lane *lane = &peer->lanes[i];

		/* While we visit the poller it has no completion in hand that
		 * refers to the queue pair, and has kept what is to be sent
		 * again. */
		rbx_poller_visit(lane->poller);
		if (lane->qp != NULL)
			lane->qp->device->ops->destroy_qp(lane->qp);
		lane->qp = NULL;
		rbx_poller_leave(lane->poller);
	}
}

static void note_broken_locked(struct rbx_peer *peer, const char *reason)
{
	if (!peer->closing && peer->state.phase == RBX_PEER_UP) {
		rbx_peer_state_broken(&peer->state,
				      rbx_session_heard_ns(peer->session),
				      rbx_now_ns());
		snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
		rbx_channel_set_state(&peer->channel, RBX_CHANNEL_HALTED);
		pthread_cond_signal(&peer->changed);
	}
	peer->broken_meanwhile = true;
}

void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason)
{
	pthread_mutex_lock(&peer->lock);
	note_broken_locked(peer, reason);
	pthread_mutex_unlock(&peer->lock);
}

/*
 * What has completed without a signal is told of by nothing, once the queue pair
 * is in error: what is flushed is only what had not completed. So a marker goes
 * behind it, which is flushed as the last. There is room: the post that failed
 * left some.
 */
static void mark_the_end(struct rbx_lane *lane)
{
	struct rbx_wr marker = {
		.wr_id = RBX_MARKER_WR_ID,
		.opcode = RBX_OP_WRITE,
		.flags = RBX_WR_SIGNALED,
	};
	struct rbx_wr *bad;

	if (lane->tail_is_silent)
		(void)lane->qp->device->ops->post_send(lane->qp, &marker, &bad);
	lane->tail_is_silent = false;
}

/* Steps 1 and 2 of the file head. Afterwards the keeper is the combiner. */
static void drain(struct rbx_peer *peer)
{
	while (!rbx_channel_seize(&peer->channel))
		look_again_soon();
	for (uint32_t i = 0; i < peer->lane_count; i++) {
		struct rbx_qp *qp = peer->lanes[i].qp;

		qp->device->ops->disconnect(qp);
		mark_the_end(&peer->lanes[i]);
	}
	while (!rbx_channel_idle(&peer->channel))
		look_again_soon();
	rbx_peer_destroy_lanes(peer);
}

/*
 * Opens the channel in its new state with what was kept. The keeper is still
 * the combiner, so nothing is posted before it combines.
 */
static void reopen_locked(struct rbx_peer *peer, enum rbx_channel_state state)
{
	for (struct rbx_fragment *fragment = peer->again_first; fragment;
	     fragment = fragment->node.next ?
				rbx_fragment_of(fragment->node.next) :
				NULL)
		RBX_ADD_RELAXED(&peer->ctx->counters.retries, 1);
	rbx_channel_send_again(&peer->channel, peer->again_first);
	peer->again_first = NULL;
	peer->again_last = NULL;
	rbx_channel_set_state(&peer->channel, state);
}

static void give_up_locked(struct rbx_peer *peer)
{
	pthread_mutex_unlock(&peer->lock);
	rbx_session_give_up(peer->session);
	if (peer->events.down)
		peer->events.down(peer, peer->reason, peer->events.user);
	pthread_mutex_lock(&peer->lock);
	reopen_locked(peer, RBX_CHANNEL_DEAD);
	pthread_mutex_unlock(&peer->lock);
	rbx_peer_combine(peer);
	pthread_mutex_lock(&peer->lock);
}

static void resume_locked(struct rbx_peer *peer)
{
	bool broken_again;
	int err;

	peer->broken_meanwhile = false;
	pthread_mutex_unlock(&peer->lock);
	err = rbx_session_resume(peer->session,
				 peer->ctx->options.peer_timeout_ms / 4);
	/* Only resume() may say that all is gone: what refuses a queue pair is
	 * that the new connection has broken already. */
	if (!err && rbx_peer_connect_lanes(peer))
		err = -ENOTCONN;
	pthread_mutex_lock(&peer->lock);
	if (err) {
		rbx_peer_state_resume_failed(&peer->state, err, rbx_now_ns());
		return;
	}
	rbx_peer_state_resumed(&peer->state);
	reopen_locked(peer, RBX_CHANNEL_OPEN);
	broken_again = peer->broken_meanwhile;
	pthread_mutex_unlock(&peer->lock);
	rbx_peer_combine(peer);
	if (broken_again)
		rbx_peer_note_broken(peer, "it broke while it was resumed");
	pthread_mutex_lock(&peer->lock);
}

static void sleep_until_locked(struct rbx_peer *peer, uint64_t at_ns)
{
	struct timespec at = rbx_timespec_at(at_ns);

	pthread_cond_timedwait(&peer->changed, &peer->lock, &at);
}

void *rbx_peer_keeper_main(void *arg)
{
	struct rbx_peer *peer = arg;
	enum rbx_peer_action action;
	uint64_t at_ns;

	pthread_mutex_lock(&peer->lock);
	while (!peer->closing) {
		if (peer->state.phase == RBX_PEER_DRAINING) {
			pthread_mutex_unlock(&peer->lock);
			drain(peer);
			pthread_mutex_lock(&peer->lock);
			rbx_peer_state_drained(&peer->state, rbx_now_ns());
			/* New queue pairs have been of no use to it. */
			if (rbx_peer_stalls_again(peer))
				rbx_peer_state_resume_failed(
					&peer->state, -ESTALE, rbx_now_ns());
			continue;
		}
		action = rbx_peer_state_next(&peer->state, rbx_now_ns(),
					     &at_ns);
		if (action == RBX_PEER_WAIT) {
			sleep_until_locked(peer, RBX_MIN(at_ns, peer->look_at_ns));
			if (rbx_peer_stands_still(peer))
				note_broken_locked(
					peer, "it answers no work request");
		} else if (action == RBX_PEER_RESUME) {
			resume_locked(peer);
		} else {
			give_up_locked(peer);
		}
	}
	pthread_mutex_unlock(&peer->lock);
	return NULL;
}
