/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pairs.c - the data queue pairs of a peer: connected, drained, destroyed.
 */
#include "lib/peer/internal.h"

/* How often a drain looks again. It waits for the device and for the poller, so a
 * fraction of a millisecond costs nothing. */
#define LOOK_AGAIN_NS 100000u

static int connect_pair(struct rbx_user_peer *user, struct rbx_peer_qp *pair,
			uint64_t until_ns)
{
	struct rbx_peer *peer = &user->peer;
	struct rbx_recv_wr sentinel = {
		.wr_id = RBX_SENTINEL_WR_ID, /* zero bytes: nobody sends to it */
	};
	struct rbx_qp_init init = {
		.send_cq = pair->poller->cqs[pair->cq_index],
		.recv_cq = pair->poller->cqs[pair->cq_index],
		.send_depth_count = user->send_depth_count,
		.recv_depth_count = 1,
		.max_sge = peer->ctx->planner.sge_max,
		.max_inline_bytes = peer->ctx->device->caps.max_inline_bytes,
		.user = pair,
	};
	struct rbx_recv_wr *bad;
	int err = rbx_session_connect_qp_until(peer->session, &init, until_ns,
					       &pair->qp);

	if (err)
		return err;
	rbx_channel_set_depth(&peer->channel, pair->ring_index,
			      RBX_MIN(user->send_depth_count,
				      pair->qp->send_depth_count));
	err = pair->qp->device->ops->post_recv(pair->qp, &sentinel, &bad);
	if (err) {
		pair->qp->device->ops->destroy_qp(pair->qp);
		pair->qp = NULL;
		return rbx_error(err, "cannot post a receive: %s",
				 strerror(-err));
	}
	return 0;
}

int rbx_peer_connect_qps(struct rbx_peer *peer, uint64_t until_ns)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);

	for (uint32_t i = 0; i < user->qps_count; i++) {
		int err = connect_pair(user, &user->qps[i], until_ns);

		if (err) {
			rbx_peer_destroy_qps(peer);
			return err;
		}
	}
	return 0;
}

void rbx_peer_destroy_qps(struct rbx_peer *peer)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);

	for (uint32_t i = 0; i < user->qps_count; i++) {
		struct rbx_peer_qp *pair = &user->qps[i];
		struct rbx_harvest harvest = { 0 };

		/* Between visit and leave the poller holds no completion of this queue
		 * pair, and what has to be sent again is kept. Later it finds no
		 * completion of it. */
		rbx_poller_visit(pair->poller);
		if (pair->qp)
			pair->qp->device->ops->destroy_qp(pair->qp);
		pair->qp = NULL;
		rbx_channel_abandon(&peer->channel, i, &harvest);
		rbx_poller_leave(pair->poller);
		/* What a drain that was given up has left. */
		rbx_drive_settle_rest(&rbx_peer_drive, &peer->channel,
				      &harvest);
	}
}

/*
 * Once a queue pair is in error, only work requests that had not completed are flushed.
 * If the last ones had completed without a signal, nothing would report it. So a marker
 * is posted behind them, which is flushed as the last. There is room for it: the post
 * that failed left some.
 */
static void mark_the_end(struct rbx_peer_qp *pair)
{
	struct rbx_wr marker = {
		.wr_id = RBX_MARKER_WR_ID,
		.opcode = RBX_OP_WRITE,
		.flags = RBX_WR_SIGNALED,
	};
	struct rbx_wr *bad;

	if (pair->tail_is_silent)
		(void)pair->qp->device->ops->post_send(pair->qp, &marker, &bad);
	pair->tail_is_silent = false;
}

void rbx_peer_drain_qps(struct rbx_peer *peer, uint64_t until_ns)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);

	for (uint32_t i = 0; i < user->qps_count; i++) {
		struct rbx_qp *qp = user->qps[i].qp;

		qp->device->ops->disconnect(qp);
		mark_the_end(&user->qps[i]);
	}
	while (!rbx_channel_idle(&peer->channel) && rbx_now_ns() < until_ns)
		rbx_pause_ns(LOOK_AGAIN_NS);
	rbx_peer_destroy_qps(peer);
}

uint32_t rbx_peer_rings_looked(struct rbx_peer *peer)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);
	uint32_t rings_mask = 0;

	for (uint32_t i = 0; i < user->qps_count; i++) {
		struct rbx_peer_qp *pair = &user->qps[i];

		if (rbx_poller_has_looked(pair->poller, &pair->polls_count))
			rings_mask |= 1u << i;
	}
	return rings_mask;
}
