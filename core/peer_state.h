/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_state.h - is the peer there, and what is to be done about it.
 *
 *            opened                broken
 *   OPENING ------> UP ------------------------> DRAINING
 *      |             ^                              | drained,
 *      | failed      |  resumed                     v abandoned
 *      +----> DOWN <-+--------------------------- RESUMING <-+
 *                ^        gone, or timeout          |  |     | failed: after
 *                +----------------------------------+  +-----+ a pause, again
 *
 * A broken connection is first drained: every work request posted on it comes
 * back, flushed. A device that was removed, or has failed, may flush nothing. So
 * after T/8 the drain is abandoned: the queue pairs are destroyed all the same, which
 * ends whatever the device did for them, and what has not come back by then counts
 * as flushed (rbx_channel_abandon), never as done. Until its queue pair is destroyed
 * the memory of a work request is the device's.
 *
 * Then it is resumed, until the server answers that it does not know us any more, or
 * is not there, or the time is over. What waits meanwhile is sent again after a
 * resume and refused after DOWN.
 *
 * The peer timeout T counts from the last sign of life of the server to the end
 * of the last request. Silence is noticed within the first half of it (lease.h),
 * the drain takes an eighth at most, and a try a quarter. The first try is shorter, and
 * each that fails makes the next one twice as long: what it has sent may have been lost,
 * in a moment that is over long before the try is. Tries begin until 3/4 T
 * after the last sign of life, however early the break was noticed; and for T/4 at
 * least, if it was noticed late (a process that was stopped has not heard of
 * anybody). So a peer is given up within T of its last sign of life:
 *
 *	silent T/2 + drained T/8 < 3/4 T + the last try T/4 = T
 *
 * and within T/2 of the break if that was noticed late. To this comes what nobody can
 * bound. How long a driver takes to destroy a queue pair: until it has done so the
 * memory of a request is the device's, so no other replica may end the request. And
 * how long this process was stopped after the break: a try that was due before the
 * end, as the first one is at the break, is made however late it is. It was we who
 * were away, so no peer is given up that has not been asked.
 *
 * But what is held by this peer and by nobody else who is up is lost if it is given
 * up, and perhaps it is this machine whose cable is out, and not the server. So at the
 * end of T the owner is asked (RBX_PEER_ASK): it lets go what is elsewhere, whose
 * requests go on there, and says whether something is left. For that the tries go on
 * until half of the lease is over, counted from when we sent what the server answered
 * last: as long we may believe that it keeps all. The owner is asked again each T/4.
 *
 * And if this machine lacks what a connection takes, descriptors or memory, no try says
 * anything of the server. Without an owner to ask, the tries go on for as long.
 *
 * A lease may be shorter than T. What is left of it after a silence has to do for several
 * tries, as one has to succeed: so it bounds the drain, the first try and the pauses, to
 * an eighth and a sixteenth. It does not bound a try for good: how long a handshake
 * and all queue pairs take is the network's, and the handshake renews the lease.
 *
 * When the cable is back the peers come back one after another, and the first must not
 * cost the others their copies. So one that is back counts as up for others when it
 * has been up for T/2: longer than a try that began before, a pause, and a try.
 */
#ifndef RBX_PEER_STATE_H
#define RBX_PEER_STATE_H

#include "core/port.h"

enum rbx_peer_phase {
	RBX_PEER_OPENING, /* the first connection is being made */
	RBX_PEER_UP, /* requests are posted */
	RBX_PEER_DRAINING, /* broken; what was posted comes back */
	RBX_PEER_RESUMING, /* trying to connect to the same session */
	RBX_PEER_DOWN, /* given up, for good */
};

/* What the host is to do now. */
enum rbx_peer_action {
	RBX_PEER_WAIT, /* nothing until the next event or `at_ns` */
	RBX_PEER_DRAIN, /* wait for what was posted, until `at_ns` at most */
	RBX_PEER_RESUME, /* try to resume the session, for try_ns at most */
	RBX_PEER_ASK, /* ask the owner what it can do without, and tell it */
	RBX_PEER_GIVE_UP, /* refuse all requests, tell who uses the peer */
};

struct rbx_peer_state {
	enum rbx_peer_phase phase;
	uint64_t timeout_ns; /* T */
	uint64_t eighth_ns; /* of T, or of the lease if that is shorter */
	uint64_t drained_by_ns; /* while draining: it is abandoned then */
	uint64_t deadline_ns; /* while broken: no try begins later */
	uint64_t held_until_ns; /* if the owner cannot do without; else 0 */
	uint64_t lease_half_ns; /* until then the server keeps what it has lent */
	uint64_t next_try_ns; /* while resuming */
	uint64_t pause_ns; /* before the next try */
	uint64_t try_ns; /* how long that may take */
	uint64_t up_since_ns; /* when it was opened or resumed; atomic */
	uint32_t breaks_count; /* since it was opened */
};

void rbx_peer_state_init(struct rbx_peer_state *state, uint64_t timeout_ns);
/* lease_ns: how long the server keeps what it has lent to a client that is silent. */
void rbx_peer_state_opened(struct rbx_peer_state *state, uint64_t lease_ns,
			   uint64_t now_ns);
/* From UP. heard_ns: the last sign of life; lease_half_ns: when half of the lease is
 * over; asks: there is an owner that can be asked. */
void rbx_peer_state_broken(struct rbx_peer_state *state, uint64_t heard_ns,
			   uint64_t lease_half_ns, bool asks, uint64_t now_ns);
/* All has come back, or was abandoned; the queue pairs are destroyed. */
void rbx_peer_state_drained(struct rbx_peer_state *state);
void rbx_peer_state_resumed(struct rbx_peer_state *state, uint64_t now_ns);
/* err: -ESTALE and -ECONNREFUSED are final, others are tried again; a shortage of this
 * machine for longer, if nobody can be asked. */
void rbx_peer_state_resume_failed(struct rbx_peer_state *state, int err,
				  uint64_t now_ns);

/* New queue pairs are of no use: no more tries, unless the owner cannot do without. */
void rbx_peer_state_in_vain(struct rbx_peer_state *state, uint64_t now_ns);

/* After RBX_PEER_ASK. holds: there is something that nobody else has. */
void rbx_peer_state_asked(struct rbx_peer_state *state, bool holds,
			  uint64_t now_ns);

/* When a try that begins now is over, whatever its steps: each gets what is left. */
static inline uint64_t
rbx_peer_state_try_ends_ns(const struct rbx_peer_state *state, uint64_t now_ns)
{
	return now_ns + state->try_ns;
}

/* Whether it may be relied upon instead of another. Any thread: it guards nothing. */
static inline bool rbx_peer_state_is_settled(const struct rbx_peer_state *state,
					     uint64_t now_ns)
{
	uint64_t since_ns = RBX_LOAD_RELAXED(&state->up_since_ns);

	return now_ns > since_ns && now_ns - since_ns >= state->timeout_ns / 2;
}

/* After RBX_PEER_GIVE_UP. */
void rbx_peer_state_given_up(struct rbx_peer_state *state);

/* What to do at now_ns; *at_ns: when to ask again, UINT64_MAX: at an event. It may be
 * asked more than once: only what is done changes anything. */
enum rbx_peer_action rbx_peer_state_next(const struct rbx_peer_state *state,
					 uint64_t now_ns, uint64_t *at_ns);

#endif
