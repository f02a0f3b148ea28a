/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pairs.c - the data queue pairs of a peer: connected, drained, destroyed.
 */
#include "kernel/lib/drain.h"
#include "kernel/lib/peer/peer.h"

static void pair_ended(struct rbx_ib_conn *conn)
{
	struct rbx_peer_qp *pair = container_of(conn, struct rbx_peer_qp, conn);

	rbx_peer_note_broken(pair->peer, "the connection has ended");
}

static int connect_pair(struct rbx_kernel_peer *made, struct rbx_peer_qp *pair,
			uint64_t until_ns)
{
	struct ib_qp_init_attr init = {
		.send_cq = pair->poller->cqs[pair->cq_index],
		.recv_cq = pair->poller->cqs[pair->cq_index],
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			/* One more on either side, for rbx_ib_conn_drain(). */
			.max_send_wr = RBX_SEND_DEPTH + 1,
			.max_recv_wr = 1,
			.max_send_sge = made->client->planner.sge_max,
			.max_recv_sge = 1,
		},
	};

	return rbx_session_connect_qp(made->peer.session, &pair->conn, &init,
				      pair_ended, until_ns);
}

/* The limit of a wait for a device, if nothing else sets one. */
static uint64_t patience_ns(void)
{
	return rbx_now_ns() + RBX_IB_DRAIN_MS * (uint64_t)NSEC_PER_MSEC;
}

int rbx_peer_connect_qps(struct rbx_peer *peer, uint64_t until_ns)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);
	uint32_t i;

	for (i = 0; i < made->qps_count; i++) {
		struct rbx_peer_qp *pair = &made->qps[i];
		int err;

		pair->is_over = false;
		rbx_posts_init(&pair->posts, rbx_peer_work_done);
		err = connect_pair(made, pair, until_ns);
		/* A queue pair that was made in part may need a drain, as any other. */
		if (err) {
			rbx_peer_drain_qps(peer, until_ns ?: patience_ns());
			return err;
		}
	}
	return 0;
}

/*
 * Gives back work requests that were posted and got no completion. If the drain has
 * ended, all of them have completed without a signal: queues complete in order, and a
 * failed one would have been reported. If it has not, nobody knows. They are given back
 * only now, when the queue pair is destroyed and the device does not use their memory any
 * more. What the device has still put into the completion queue was swept out of it, so
 * it cannot be taken for a later use of the slots.
 */
static void settle_rest(struct rbx_peer *peer, struct rbx_peer_qp *pair,
			bool all_is_back)
{
	struct rbx_harvest harvest = { 0 };

	rbx_poller_lock(pair->poller);
	rbx_late_unmap_rest(pair);
	if (all_is_back)
		rbx_channel_complete_rest(&peer->channel, pair->ring_index,
					  ktime_get_ns(), &harvest);
	else
		rbx_channel_abandon(&peer->channel, pair->ring_index, &harvest);
	rbx_poller_unlock(pair->poller);
	rbx_drive_settle_rest(&rbx_peer_drive, &peer->channel, &harvest);
}

static uint32_t left_ms(uint64_t until_ns)
{
	uint64_t now_ns = ktime_get_ns();

	return until_ns > now_ns ?
		       (uint32_t)div_u64(until_ns - now_ns, NSEC_PER_MSEC) :
		       0;
}

static void destroy_pair(struct rbx_peer *peer, struct rbx_peer_qp *pair,
			 uint64_t until_ns)
{
	bool all_is_back = rbx_drain_and_destroy(
		&pair->conn, pair->poller, left_ms(until_ns), &pair->is_over,
		rbx_session_name(peer->session));

	settle_rest(peer, pair, all_is_back);
}

void rbx_peer_drain_qps(struct rbx_peer *peer, uint64_t until_ns)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);
	uint32_t i;

	/* All of them first, so that they end at the same time. */
	for (i = 0; i < made->qps_count; i++)
		if (made->qps[i].conn.id && made->qps[i].conn.id->qp)
			rbx_ib_conn_disconnect(&made->qps[i].conn);
	for (i = 0; i < made->qps_count; i++)
		destroy_pair(peer, &made->qps[i], until_ns);
}

void rbx_peer_destroy_qps(struct rbx_peer *peer)
{
	rbx_peer_drain_qps(peer, patience_ns());
}

uint32_t rbx_peer_rings_looked(struct rbx_peer *peer)
{
	struct rbx_kernel_peer *made = rbx_kernel_peer(peer);
	uint32_t rings_mask = 0, i;

	for (i = 0; i < made->qps_count; i++)
		if (rbx_poller_has_looked(made->qps[i].poller,
					  &made->qps[i].polls_count))
			rings_mask |= 1u << i;
	return rings_mask;
}
