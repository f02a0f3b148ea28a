/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_state.h - whether a peer is connected, and what to do if it is not.
 *
 *            opened                broken
 *   OPENING ------> UP ------------------------> DRAINING
 *      |             ^                              | drained,
 *      | failed      |  resumed                     v abandoned
 *      +----> DOWN <-+--------------------------- RESUMING <-+
 *                ^        gone, or timeout          |  |     | failed: after
 *                +----------------------------------+  +-----+ a pause, again
 *
 * A broken connection is first drained: every work request posted on it comes back, flushed.
 * A device that was removed, or has failed, may flush nothing. So after T/8 the drain is
 * abandoned and the queue pairs are destroyed, which ends whatever the device did for them.
 * What has not come back by then counts as flushed (rbx_channel_abandon), never as done.
 * Until its queue pair is destroyed, the device may use the memory of a work request.
 *
 * Then the session is resumed, until the server answers that it does not know it any more, or
 * nothing listens there, or the time is over. What waits meanwhile is sent again after a
 * resume and refused after DOWN.
 *
 * The peer timeout T counts from the last message of the server to the end of the last
 * request. Silence is noticed within the first half of T (lease.h), the drain takes an eighth
 * at most, and a try a quarter. The first try is shorter, and each try that fails makes the
 * next one twice as long: its messages may have been lost during a short disturbance. Tries
 * begin until 3/4 T after the last message, however early the break was noticed. If it was
 * noticed late, they begin for at least T/4 (a process that was stopped has had no messages
 * at all). So a peer is given up within T of its last message:
 *
 *	silent T/2 + drained T/8 < 3/4 T + the last try T/4 = T
 *
 * If the break was noticed late, it is within T/2 of the break. Two times come on top that
 * have no bound. One is how long a driver takes to destroy a queue pair: until it has, the
 * device may use the memory of a request, so no other replica may end the request. The other
 * is how long this process was stopped after the break: a try that was due before the end is
 * made however late it is, as is the first one, which is due at the break. This process was
 * the one that was away, so no peer is given up before one try.
 *
 * But data that only this peer has among those that are up is lost if it is given up, and
 * perhaps this machine is cut off, and not the server. So at the end of T the owner is asked
 * (RBX_PEER_ASK). It gives up what has copies elsewhere, whose requests go on there, and says
 * whether something is left. For the rest, the tries go on until half of the lease is over,
 * counted from when we sent the last request that the server answered: until then the server
 * certainly keeps everything. The owner is asked again each T/4.
 *
 * If this machine lacks the descriptors or memory for a connection, a failed try says nothing
 * about the server. If there is no owner to ask, the tries then go on for the same time.
 *
 * A lease may be shorter than T. What is left of it after a silence must be enough for
 * several tries, as one has to succeed. So it bounds the drain and the pauses to an eighth of
 * it, and the first try to a sixteenth (or 100 ms, if that is more). It does not bound all
 * tries: how long a handshake and all queue pairs take depends on the network, and the
 * handshake renews the lease.
 *
 * When the network is back, the peers come back one after another, and the first one must not
 * cost the others their copies. So a peer that is back counts as up for others when it has
 * been up for T/2: longer than a try that began before, a pause, and another try.
 */
#ifndef RBX_PEER_STATE_H
#define RBX_PEER_STATE_H

#include "core/port.h"

enum rbx_peer_phase {
	RBX_PEER_OPENING, /* the first connection is being made */
	RBX_PEER_UP, /* requests are posted */
	RBX_PEER_DRAINING, /* broken; what was posted comes back */
	RBX_PEER_RESUMING, /* trying to connect to the same session */
	RBX_PEER_DOWN, /* given up for good */
};

/* What the host is to do now. */
enum rbx_peer_action {
	RBX_PEER_WAIT, /* nothing until the next event or at_ns */
	RBX_PEER_DRAIN, /* wait for what was posted, until at_ns at most */
	RBX_PEER_RESUME, /* try to resume the session, for try_ns at most */
	/* ask the owner which data it can do without, then say rbx_peer_state_asked() */
	RBX_PEER_ASK,
	RBX_PEER_GIVE_UP, /* refuse all requests, tell the users of the peer */
};

struct rbx_peer_state {
	enum rbx_peer_phase phase;
	uint64_t timeout_ns; /* T; atomic, as any thread calls is_stable() */
	uint64_t lease_ns; /* as it was told by opened() */
	uint64_t eighth_ns; /* of T, or of the lease if that is shorter */
	uint64_t drained_by_ns; /* while draining: it is abandoned then */
	uint64_t deadline_ns; /* while broken: no try begins later */
	uint64_t held_until_ns; /* if the owner cannot do without it; else 0 */
	uint64_t lease_half_ns; /* until then the server certainly keeps its loans */
	uint64_t next_try_ns; /* while resuming */
	uint64_t pause_ns; /* before the next try */
	uint64_t try_ns; /* how long the next try may take */
	uint64_t up_since_ns; /* when it was opened or resumed; atomic */
	uint32_t breaks_count; /* since it was opened */
};

void rbx_peer_state_init(struct rbx_peer_state *state, uint64_t timeout_ns);
/* lease_ns: how long the server keeps the loans of a silent client. */
void rbx_peer_state_opened(struct rbx_peer_state *state, uint64_t lease_ns,
			   uint64_t now_ns);
/* T is another one from now on. While it is broken, no deadline changes. */
void rbx_peer_state_set_timeout(struct rbx_peer_state *state, uint64_t timeout_ns);
/* From UP. heard_ns: when the last message came; lease_half_ns: when half of the lease is
 * over; asks: there is an owner that can be asked. */
void rbx_peer_state_broken(struct rbx_peer_state *state, uint64_t heard_ns,
			   uint64_t lease_half_ns, bool asks, uint64_t now_ns);
/* All has come back, or the drain was abandoned; the queue pairs are destroyed. */
void rbx_peer_state_drained(struct rbx_peer_state *state);
void rbx_peer_state_resumed(struct rbx_peer_state *state, uint64_t now_ns);
/* err: -ESTALE and -ECONNREFUSED are final; after others it is tried again. After a shortage
 * of this machine the tries go on longer, if there is no owner to ask. */
void rbx_peer_state_resume_failed(struct rbx_peer_state *state, int err,
				  uint64_t now_ns);

/*
 * New queue pairs would be of no use: no more tries, unless the owner cannot do without the
 * peer.
 */
void rbx_peer_state_in_vain(struct rbx_peer_state *state, uint64_t now_ns);

/* After RBX_PEER_ASK. holds: the peer has data that no other one has. */
void rbx_peer_state_asked(struct rbx_peer_state *state, bool holds,
			  uint64_t now_ns);

/* When a try that begins now ends at the latest. Each of its steps gets the time that is left. */
static inline uint64_t
rbx_peer_state_try_ends_ns(const struct rbx_peer_state *state, uint64_t now_ns)
{
	return now_ns + state->try_ns;
}

/* Whether others may be given up because this peer is up. Any thread: it guards nothing. */
static inline bool rbx_peer_state_is_stable(const struct rbx_peer_state *state,
					    uint64_t now_ns)
{
	uint64_t since_ns = RBX_LOAD_RELAXED(&state->up_since_ns);

	return now_ns > since_ns &&
	       now_ns - since_ns >= RBX_LOAD_RELAXED(&state->timeout_ns) / 2;
}

/* After RBX_PEER_GIVE_UP. */
void rbx_peer_state_given_up(struct rbx_peer_state *state);

/* What to do at now_ns; *at_ns: when to ask again, UINT64_MAX: after an event. It may be
 * called repeatedly: the state changes only by what was done. */
enum rbx_peer_action rbx_peer_state_next(const struct rbx_peer_state *state,
					 uint64_t now_ns, uint64_t *at_ns);

#endif
