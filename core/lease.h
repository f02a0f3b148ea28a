/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lease.h - when a client sends heartbeats, and when it counts a server as lost
 * (wire/PROTOCOL.md, "The lease").
 *
 * With T the peer timeout and L the lease:
 * - a heartbeat each min(T, L) / 4;
 * - nothing heard for T, and a heartbeat without answer: silent;
 * - nothing that was sent in the last L / 2 has been answered: over. The server
 *   counts L from when it heard of us, which is later than when we sent; so we
 *   stop at half the term even if our clock runs at half the server's speed.
 *
 * now_ns is read before incoming messages are read: a host that was stopped for a while reads
 * its messages before it counts a server as dead. So an event may carry a time after now_ns;
 * it then counts as just now.
 */
#ifndef RBX_LEASE_H
#define RBX_LEASE_H

#include "core/port.h"

struct rbx_lease {
	uint64_t timeout_ns; /* T */
	uint64_t lease_ns; /* L */
	uint64_t heard_ns; /* when the last message came; atomic */
	uint64_t answered_ns; /* when we sent the last request that has been
				 answered: the server heard of us later; atomic */
	uint64_t heartbeat_ns; /* when the last heartbeat was sent */
	bool heartbeat_is_out; /* it has not been answered */
};

enum rbx_lease_step {
	RBX_LEASE_WAIT, /* until *at_ns */
	RBX_LEASE_HEARTBEAT, /* send one, if one can be sent */
	RBX_LEASE_SILENT, /* the server is lost: it says nothing */
	RBX_LEASE_OVER, /* the server is lost: it may have ended our session */
};

static inline uint64_t rbx_lease_interval_ns(const struct rbx_lease *lease)
{
	return RBX_MIN(lease->timeout_ns, lease->lease_ns) / 4;
}

static inline uint64_t rbx_lease_since_ns(uint64_t now_ns, uint64_t then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* A message has come. */
static inline void rbx_lease_heard(struct rbx_lease *lease, uint64_t now_ns)
{
	RBX_STORE_RELAXED(&lease->heard_ns, now_ns);
}

/* The time of the last message. Any thread: it is a time, and guards nothing. */
static inline uint64_t rbx_lease_heard_ns(const struct rbx_lease *lease)
{
	return RBX_LOAD_RELAXED(&lease->heard_ns);
}

/* A connection is up; the request that brought it up was sent at sent_ns. */
static inline void rbx_lease_begin(struct rbx_lease *lease, uint64_t sent_ns,
				   uint64_t now_ns)
{
	RBX_STORE_RELAXED(&lease->answered_ns, sent_ns);
	rbx_lease_heard(lease, now_ns);
	lease->heartbeat_ns = now_ns;
	lease->heartbeat_is_out = false;
}

static inline void rbx_lease_answered(struct rbx_lease *lease, uint64_t sent_ns)
{
	if (lease->answered_ns < sent_ns)
		RBX_STORE_RELAXED(&lease->answered_ns, sent_ns);
}

/* The time at which half of the lease is over. Any thread, once a connection was up. */
static inline uint64_t rbx_lease_half_ns(const struct rbx_lease *lease)
{
	return RBX_LOAD_RELAXED(&lease->answered_ns) + lease->lease_ns / 2;
}

/* What to do now; *at_ns: when to ask again. */
static inline enum rbx_lease_step rbx_lease_next(const struct rbx_lease *lease,
						 uint64_t now_ns,
						 uint64_t *at_ns)
{
	uint64_t interval_ns = rbx_lease_interval_ns(lease);
	uint64_t quiet_ns = rbx_lease_since_ns(now_ns, lease->heartbeat_ns);

	*at_ns = UINT64_MAX;
	if (rbx_lease_since_ns(now_ns, lease->answered_ns) >=
	    lease->lease_ns / 2)
		return RBX_LEASE_OVER;
	if (lease->heartbeat_is_out && quiet_ns >= interval_ns &&
	    rbx_lease_since_ns(now_ns, rbx_lease_heard_ns(lease)) >=
		    lease->timeout_ns)
		return RBX_LEASE_SILENT;
	if (quiet_ns < interval_ns) {
		*at_ns = lease->heartbeat_ns + interval_ns;
		return RBX_LEASE_WAIT;
	}
	*at_ns = now_ns + interval_ns / 4;
	return lease->heartbeat_is_out ? RBX_LEASE_WAIT : RBX_LEASE_HEARTBEAT;
}

#endif
