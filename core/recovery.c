/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recovery.c - what the steps of a recovery mean for the fragments, see recovery.h.
 */
#include "core/recovery.h"

void rbx_recovery_init(struct rbx_recovery *recovery,
		       struct rbx_channel *channel, uint64_t timeout_ns)
{
	recovery->channel = channel;
	rbx_peer_state_init(&recovery->state, timeout_ns);
}

bool rbx_recovery_opened(struct rbx_recovery *recovery, uint64_t lease_ns,
			 uint64_t now_ns)
{
	rbx_peer_state_opened(&recovery->state, lease_ns, now_ns);
	return recovery->broken_meanwhile;
}

void rbx_recovery_close(struct rbx_recovery *recovery)
{
	recovery->closing = true;
}

bool rbx_recovery_broken(struct rbx_recovery *recovery)
{
	recovery->broken_meanwhile = true;
	return !recovery->closing && recovery->state.phase == RBX_PEER_UP;
}

/* Of all rings. It only matters whether it changes. */
static uint32_t answered_count(const struct rbx_channel *channel)
{
	uint32_t count = 0, i;

	for (i = 0; i < channel->ring_count; i++)
		count += RBX_LOAD_RELAXED(&channel->rings[i].answered_count);
	return count;
}

/* New queue pairs did not help it. */
static bool stalls_again(const struct rbx_recovery *recovery)
{
	return recovery->stalls_count > 1 &&
	       recovery->stalled_at_count == answered_count(recovery->channel);
}

void rbx_recovery_begin(struct rbx_recovery *recovery, uint64_t heard_ns,
			uint64_t lease_half_ns, bool asks, uint64_t now_ns)
{
	uint32_t i;

	/* Progress after the repair is counted anew. */
	for (i = 0; i < recovery->channel->ring_count; i++)
		recovery->stalls[i].looks_count = 0;
	/* Its session lives, so its lease would be renewed for ever. */
	if (stalls_again(recovery))
		lease_half_ns = RBX_MIN(lease_half_ns, recovery->held_until_ns);
	recovery->held_until_ns = lease_half_ns;
	rbx_peer_state_broken(&recovery->state, heard_ns, lease_half_ns, asks,
			      now_ns);
	rbx_channel_set_state(recovery->channel, RBX_CHANNEL_HALTED);
}

void rbx_recovery_keep(struct rbx_recovery *recovery,
		       struct rbx_harvest *harvest)
{
	if (!harvest->again_first)
		return;
	rbx_fragment_append(&recovery->again_first, &recovery->again_last,
			    harvest->again_first, harvest->again_last);
	harvest->again_first = NULL;
	harvest->again_last = NULL;
}

/* ---- Stalls -----------------------------------------------------------------*/

static void stall_note(struct rbx_recovery *recovery)
{
	uint32_t count = answered_count(recovery->channel);

	if (count != recovery->stalled_at_count)
		recovery->stalls_count = 0;
	recovery->stalled_at_count = count;
	recovery->stalls_count++;
}

bool rbx_recovery_stands_still(struct rbx_recovery *recovery,
			       uint32_t rings_mask)
{
	const struct rbx_channel *channel = recovery->channel;
	bool stands_still = false;
	uint32_t i;

	if (recovery->state.phase != RBX_PEER_UP)
		return false; /* it broke since next() */
	for (i = 0; i < channel->ring_count; i++)
		if (rings_mask >> i & 1)
			stands_still |= rbx_stall_look(&recovery->stalls[i],
						       &channel->rings[i]);
	if (stands_still)
		stall_note(recovery);
	return stands_still;
}

/* ---- Steps ------------------------------------------------------------------*/

/* While the connection works. A late look counts as one look. */
static enum rbx_recovery_step look_or_wait(struct rbx_recovery *recovery,
					   uint64_t now_ns, uint64_t *at_ns)
{
	if (recovery->state.phase != RBX_PEER_UP || recovery->closing)
		return RBX_RECOVERY_WAIT;
	if (now_ns >= recovery->look_at_ns) {
		recovery->look_at_ns = now_ns + recovery->state.timeout_ns / 2 /
							RBX_STALL_LOOKS;
		return RBX_RECOVERY_LOOK;
	}
	*at_ns = RBX_MIN(*at_ns, recovery->look_at_ns);
	return RBX_RECOVERY_WAIT;
}

enum rbx_recovery_step rbx_recovery_next(struct rbx_recovery *recovery,
					 uint64_t now_ns, uint64_t *at_ns)
{
	struct rbx_peer_state *state = &recovery->state;

	RBX_ASSERT(state->phase != RBX_PEER_OPENING);
	switch (rbx_peer_state_next(state, now_ns, at_ns)) {
	case RBX_PEER_DRAIN:
		return RBX_RECOVERY_DRAIN;
	case RBX_PEER_RESUME:
		recovery->broken_meanwhile = false;
		*at_ns = rbx_peer_state_try_ends_ns(state, now_ns);
		return RBX_RECOVERY_RESUME;
	case RBX_PEER_ASK:
		return RBX_RECOVERY_ASK;
	case RBX_PEER_GIVE_UP:
		return RBX_RECOVERY_GIVE_UP;
	case RBX_PEER_WAIT:
		break;
	}
	return look_or_wait(recovery, now_ns, at_ns);
}

void rbx_recovery_missed(struct rbx_recovery *recovery, uint64_t now_ns)
{
	rbx_peer_state_resume_failed(&recovery->state, -ETIMEDOUT, now_ns);
}

void rbx_recovery_drained(struct rbx_recovery *recovery, uint64_t now_ns)
{
	RBX_ASSERT(rbx_channel_idle(recovery->channel));
	rbx_peer_state_drained(&recovery->state);
	if (stalls_again(recovery))
		rbx_peer_state_in_vain(&recovery->state, now_ns);
}

/* The recovery is still the combiner, so nothing is posted before it combines. */
static struct rbx_fragment *reopen(struct rbx_recovery *recovery,
				   enum rbx_channel_state state)
{
	struct rbx_channel_counters *counters = &recovery->channel->counters;
	struct rbx_fragment *fragment, *ended;
	uint64_t count = 0;

	for (fragment = recovery->again_first; fragment;
	     fragment = rbx_fragment_next(fragment))
		count++;
	RBX_STORE_RELAXED(&counters->retries, counters->retries + count);
	ended = rbx_channel_send_again(recovery->channel,
				       recovery->again_first);
	recovery->again_first = NULL;
	recovery->again_last = NULL;
	rbx_channel_set_state(recovery->channel, state);
	return ended;
}

bool rbx_recovery_resumed(struct rbx_recovery *recovery, int err,
			  uint64_t now_ns, struct rbx_fragment **ended,
			  bool *again)
{
	if (err) {
		rbx_peer_state_resume_failed(&recovery->state, err, now_ns);
		return false;
	}
	rbx_peer_state_resumed(&recovery->state, now_ns);
	*ended = reopen(recovery, RBX_CHANNEL_OPEN);
	*again = recovery->broken_meanwhile;
	return true;
}

struct rbx_fragment *
rbx_recovery_withdraw(struct rbx_recovery *recovery,
		      bool (*waits)(const struct rbx_fragment *fragment))
{
	struct rbx_fragment *again = recovery->again_first, *gone;

	/* Nothing is posted, so no thread adds to what is kept. */
	gone = rbx_channel_withdraw(recovery->channel, &again, waits);
	recovery->again_first = again;
	for (; again; again = rbx_fragment_next(again))
		recovery->again_last = again;
	return gone;
}

void rbx_recovery_asked(struct rbx_recovery *recovery, bool holds,
			uint64_t now_ns)
{
	rbx_peer_state_asked(&recovery->state, holds, now_ns);
}

struct rbx_fragment *rbx_recovery_given_up(struct rbx_recovery *recovery)
{
	rbx_peer_state_given_up(&recovery->state);
	return reopen(recovery, RBX_CHANNEL_DEAD);
}
