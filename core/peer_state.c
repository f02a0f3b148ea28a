/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_state.c - the transitions between the phases of a peer, and their times.
 *
 * The pause between two tries doubles from 10 ms up to 500 ms, or to an eighth of T or of the
 * lease if that is less: a cut cable or a restarting switch comes back in seconds, and a
 * flood of connects helps nobody. If nothing listens any more (reject.h), or the server does
 * not know the session, our memory is lost. Waiting cannot bring it back, so that is final at
 * once and the replicas take over without delay. Nothing else is final: a server that is too
 * busy, that does not answer, or whose proof is wrong, may not be ours, or may be well a
 * moment later.
 */
#include "core/peer_state.h"

#include "core/status.h"

#define PAUSE_MIN_NS 10000000ull
#define PAUSE_MAX_NS 500000000ull

/* The first try, if T is long enough: several times what a server needs. */
#define TRY_MIN_NS 100000000ull

/* The only function that changes the phase. */
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
	state->up_since_ns = UINT64_MAX;
}

void rbx_peer_state_set_timeout(struct rbx_peer_state *state, uint64_t timeout_ns)
{
	RBX_STORE_RELAXED(&state->timeout_ns, timeout_ns);
	state->eighth_ns = RBX_MIN(timeout_ns, state->lease_ns) / 8;
}

void rbx_peer_state_opened(struct rbx_peer_state *state, uint64_t lease_ns,
			   uint64_t now_ns)
{
	enter(state, RBX_PEER_UP);
	state->lease_ns = lease_ns;
	state->eighth_ns = RBX_MIN(state->timeout_ns, lease_ns) / 8;
	RBX_STORE_RELAXED(&state->up_since_ns, now_ns);
}

void rbx_peer_state_broken(struct rbx_peer_state *state, uint64_t heard_ns,
			   uint64_t lease_half_ns, bool asks, uint64_t now_ns)
{
	uint64_t quarter_ns = state->timeout_ns / 4;

	enter(state, RBX_PEER_DRAINING);
	state->drained_by_ns = now_ns + state->eighth_ns;
	state->next_try_ns = now_ns;
	state->pause_ns = PAUSE_MIN_NS;
	state->try_ns = RBX_MIN(quarter_ns,
				RBX_MAX(state->eighth_ns / 2, TRY_MIN_NS));
	state->deadline_ns = RBX_MAX(now_ns + quarter_ns,
				     heard_ns + 3 * quarter_ns);
	state->lease_half_ns = lease_half_ns;
	state->held_until_ns = asks ? lease_half_ns : 0;
	/* Until it is up again. */
	RBX_STORE_RELAXED(&state->up_since_ns, UINT64_MAX);
	state->breaks_count++;
}

void rbx_peer_state_drained(struct rbx_peer_state *state)
{
	enter(state, RBX_PEER_RESUMING);
}

void rbx_peer_state_resumed(struct rbx_peer_state *state, uint64_t now_ns)
{
	enter(state, RBX_PEER_UP);
	RBX_STORE_RELAXED(&state->up_since_ns, now_ns);
}

void rbx_peer_state_in_vain(struct rbx_peer_state *state, uint64_t now_ns)
{
	RBX_ASSERT(state->phase == RBX_PEER_RESUMING);
	state->deadline_ns = now_ns;
	state->next_try_ns = now_ns + state->pause_ns;
}

void rbx_peer_state_resume_failed(struct rbx_peer_state *state, int err,
				  uint64_t now_ns)
{
	RBX_ASSERT(state->phase == RBX_PEER_RESUMING);
	if (err == -ESTALE || err == -ECONNREFUSED) {
		state->deadline_ns = now_ns;
		state->held_until_ns = 0; /* the server keeps nothing for us */
	} else if (rbx_status_is_shortage(err) && !state->held_until_ns) {
		state->deadline_ns = RBX_MAX(
			state->deadline_ns,
			RBX_MIN(now_ns + state->timeout_ns / 4,
				state->lease_half_ns));
	}
	state->next_try_ns = now_ns + state->pause_ns;
	state->pause_ns = RBX_MIN(2 * state->pause_ns,
				  RBX_MIN(PAUSE_MAX_NS, state->eighth_ns));
	state->try_ns = RBX_MIN(2 * state->try_ns, state->timeout_ns / 4);
}

void rbx_peer_state_asked(struct rbx_peer_state *state, bool holds,
			  uint64_t now_ns)
{
	RBX_ASSERT(state->phase == RBX_PEER_RESUMING);
	if (holds)
		state->deadline_ns = RBX_MIN(now_ns + state->timeout_ns / 4,
					     state->held_until_ns);
	else
		state->held_until_ns = 0;
}

enum rbx_peer_action rbx_peer_state_next(const struct rbx_peer_state *state,
					 uint64_t now_ns, uint64_t *at_ns)
{
	*at_ns = UINT64_MAX;
	if (state->phase == RBX_PEER_DRAINING) {
		*at_ns = state->drained_by_ns;
		return RBX_PEER_DRAIN;
	}
	if (state->phase != RBX_PEER_RESUMING)
		return RBX_PEER_WAIT;
	/* A try that is due before the end is made, however late it is. */
	if (now_ns >= state->next_try_ns &&
	    state->next_try_ns < state->deadline_ns)
		return RBX_PEER_RESUME;
	if (now_ns < state->deadline_ns) {
		*at_ns = RBX_MIN(state->next_try_ns, state->deadline_ns);
		return RBX_PEER_WAIT;
	}
	if (now_ns < state->held_until_ns)
		return RBX_PEER_ASK;
	return RBX_PEER_GIVE_UP;
}

void rbx_peer_state_given_up(struct rbx_peer_state *state)
{
	enter(state, RBX_PEER_DOWN);
}
