/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* standstill.c - see standstill.h. */
#include "tests/lib/standstill.h"

#include <inttypes.h>
#include <stdio.h>

#include "fabric/soft/queue_pair.h"
#include "lib/peer/internal.h"

static void tell_poller(const struct rbx_poller *poller)
{
	const struct rbx_poll_round *round = &poller->round;
	const struct rbx_poll_counters *counters = &round->counters;

	fprintf(stderr,
		"poller: %" PRIu64 " polls, %" PRIu64 " empty, %" PRIu64
		" completions, %" PRIu64 " arms, %" PRIu64 " wakeups; armed %d"
		", unpark %d, ended %d\n",
		counters->polls, counters->empty_polls, counters->completions,
		counters->arms, counters->wakeups, round->policy.armed,
		round->unpark, round->ended != NULL);
}

static void tell_soft(const struct soft_qp *qp)
{
	fprintf(stderr,
		"    soft: state %d, requests posted %u, started %u, done %u"
		" (%u by memcpy), reads under way %u; of the peer expected %u"
		", acknowledged %u, wanted %u; output blocked %d, cut frame %d"
		"\n",
		qp->state, qp->send_posted, qp->send_started, qp->send_done,
		qp->mapped_count, qp->reads_outstanding, qp->expected,
		qp->acked, qp->ack_wanted, qp->output_blocked,
		qp->partial_kind);
}

static void tell_pair(const struct rbx_peer *peer,
		      const struct rbx_peer_qp *pair)
{
	const struct rbx_send_ring *ring =
		&peer->channel.rings[pair->ring_index];

	fprintf(stderr, "  queue pair %u: work requests posted %u, completed "
			"%u\n",
		pair->ring_index, ring->posted_count, ring->completed_count);
	if (peer->ctx->fabric.ops == &rbx_fabric_soft && pair->qp)
		tell_soft(soft_qp_of(pair->qp));
}

static const char *combiner(const struct rbx_submit_queue *queue)
{
	if (!queue->newest)
		return "none";
	return queue->newest == &queue->busy ? "one" :
					       "one, and more was pushed";
}

static void tell_peer(const struct rbx_peer *peer)
{
	const struct rbx_user_peer *user = rbx_user_peer(peer);
	const struct rbx_channel *channel = &peer->channel;

	fprintf(stderr,
		"peer: channel state %u, parked %u, combiner %s; lines waiting "
		"%#x, fence waiting %d, connection phase %d\n",
		channel->state, channel->parked,
		combiner(&channel->submit_queue),
		channel->merge_queue.waiting_mask,
		channel->merge_queue.fenced_first != NULL, peer->recovery.state.phase);
	for (uint32_t i = 0; i < user->qps_count; i++)
		tell_pair(peer, &user->qps[i]);
}

void standstill_tell(const struct rbx_context *ctx)
{
	const struct rbx_turns *turns = &ctx->window.turns;

	fprintf(stderr,
		"window: %" PRIu64 " bytes, %u work requests in flight, %" PRIu64
		" bytes at most; parked %u, waiting %u, rounds wanted %u\n",
		rbx_window_in_flight_bytes(&ctx->window),
		rbx_window_in_flight_work_requests(&ctx->window),
		ctx->window.bytes_max, turns->parked_count,
		turns->waiting_count, turns->wanted_count);
	for (uint32_t i = 0; i < ctx->poller_count; i++)
		tell_poller(ctx->pollers[i]);
	for (uint32_t i = 0; i < ctx->channels.peers_used; i++)
		if (ctx->channels.peers[i])
			tell_peer(rbx_peer_of_channel(ctx->channels.peers[i]));
}
