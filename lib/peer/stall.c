/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stall.c - whether a peer that is alive answers work requests, see core/stall.h.
 *
 * The keeper looks RBX_STALL_LOOKS times within half of the peer timeout, as long
 * as silence of the whole peer is suffered (open_sessions() of context.c). A look
 * says nothing of a lane whose poller has not looked either: a program that polls
 * itself may do something else for a while, and a callback may take its time.
 */
#include "lib/peer/internal.h"

static uint64_t look_interval_ns(const struct rbx_peer *peer)
{
	return (uint64_t)peer->ctx->options.peer_timeout_ms * 1000000 / 2 /
	       RBX_STALL_LOOKS;
}

static bool lane_stands_still(struct rbx_peer *peer, struct rbx_lane *lane)
{
	return rbx_poller_has_looked(lane->poller, &lane->polls_count) &&
	       rbx_stall_look(&lane->stall,
			      &peer->channel.rings[lane->ring_index]);
}

/* Of all lanes; it only matters whether it changes. */
static uint32_t answered_count(const struct rbx_peer *peer)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < peer->lane_count; i++)
		count += RBX_LOAD_RELAXED(&peer->channel.rings[i].answered_count);
	return count;
}

static void note_stall(struct rbx_peer *peer)
{
	uint32_t count = answered_count(peer);

	if (count != peer->stalled_at_count)
		peer->stalls_count = 0;
	peer->stalled_at_count = count;
	peer->stalls_count++;
	/* What comes after the repair is looked at anew. */
	for (uint32_t i = 0; i < peer->lane_count; i++)
		peer->lanes[i].stall.looks_count = 0;
}

bool rbx_peer_stands_still(struct rbx_peer *peer)
{
	uint64_t now_ns = rbx_now_ns();
	bool stands_still = false;

	if (now_ns < peer->look_at_ns)
		return false;
	peer->look_at_ns = now_ns + look_interval_ns(peer);
	if (peer->state.phase != RBX_PEER_UP)
		return false;
	for (uint32_t i = 0; i < peer->lane_count; i++)
		stands_still |= lane_stands_still(peer, &peer->lanes[i]);
	if (stands_still)
		note_stall(peer);
	return stands_still;
}

bool rbx_peer_stalls_again(const struct rbx_peer *peer)
{
	return peer->stalls_count > 1;
}
