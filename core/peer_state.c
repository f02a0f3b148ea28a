/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_state.c - the moves between the phases of a peer, and their times.
 *
 * The pause between two tries doubles from 10 ms to 500 ms: a cut cable or a
 * switch that restarts comes back in seconds, and nobody is helped by a flood
 * of connects. A server that refuses the connection, or does not know the
 * session, has lost our memory; waiting cannot bring it back, so that is final
 * at once and the replicas take over without delay.
 */
#include "core/peer_state.h"

#define PAUSE_MIN_NS 10000000ull
#define PAUSE_MAX_NS 500000000ull

/* The one place where the phase changes. */
static void enter(struct rbx_peer_state *state, enum rbx_peer_phase phase)
{
	static const uint8_t legal_from[] = {
		[RBX_PEER_OPENING] = 0,
		[RBX_PEER_UP] = 1 << RBX_PEER_OPENING | 1 << RBX_PEER_RESUMING,
		[RBX_PEER_DRAINING] = 1 << RBX_PEER_UP,
		[RBX_PEER_RESUMING] = 1 << RBX_PEER_DRAINING,
		[RBX_PEER_DOWN] = 1 << RBX_PEER_RESUMING |
				  1 << RBX_PEER_OPENING,
	};

	RBX_ASSERT(legal_from[phase] & 1 << state->phase);
	state->phase = phase;
}

void rbx_peer_state_init(struct rbx_peer_state *state, uint64_t timeout_ns)
{
	rbx_port_fill(state, 0, sizeof(*state));
	state->phase = RBX_PEER_OPENING;
	state->timeout_ns = timeout_ns;
}

void rbx_peer_state_opened(struct rbx_peer_state *state)
{
	enter(state, RBX_PEER_UP);
}

void rbx_peer_state_broken(struct rbx_peer_state *state, uint64_t heard_ns,
			   uint64_t now_ns)
{
	uint64_t quarter_ns = state->timeout_ns / 4;

	enter(state, RBX_PEER_DRAINING);
	state->deadline_ns = RBX_MAX(now_ns + quarter_ns,
				     heard_ns + 3 * quarter_ns);
	state->breaks_count++;
}

void rbx_peer_state_drained(struct rbx_peer_state *state, uint64_t now_ns)
{
	enter(state, RBX_PEER_RESUMING);
	state->next_try_ns = now_ns;
	state->pause_ns = PAUSE_MIN_NS;
}

void rbx_peer_state_resumed(struct rbx_peer_state *state)
{
	enter(state, RBX_PEER_UP);
}

void rbx_peer_state_resume_failed(struct rbx_peer_state *state, int err,
				  uint64_t now_ns)
{
	RBX_ASSERT(state->phase == RBX_PEER_RESUMING);
	if (err == -ESTALE || err == -ECONNREFUSED || err == -EACCES)
		state->deadline_ns = now_ns;
	state->next_try_ns = now_ns + state->pause_ns;
	state->pause_ns = RBX_MIN(2 * state->pause_ns, PAUSE_MAX_NS);
}

enum rbx_peer_action rbx_peer_state_next(struct rbx_peer_state *state,
					 uint64_t now_ns, uint64_t *at_ns)
{
	*at_ns = UINT64_MAX;
	if (state->phase != RBX_PEER_RESUMING)
		return RBX_PEER_WAIT;
	if (now_ns >= state->deadline_ns) {
		enter(state, RBX_PEER_DOWN);
		return RBX_PEER_GIVE_UP;
	}
	if (now_ns >= state->next_try_ns)
		return RBX_PEER_RESUME;
	*at_ns = RBX_MIN(state->next_try_ns, state->deadline_ns);
	return RBX_PEER_WAIT;
}
