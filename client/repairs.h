/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repairs.h - the threads that look after the connections of all peers of a context.
 *
 * One of them, the clock, sees what is due for which peer (core/recovery.h), and does
 * what waits for nobody: LOOK, ASK, GIVE_UP. What waits, DRAIN and RESUME, is done by a
 * few hands, so that a server which does not answer keeps no other from being repaired;
 * and to take the session of a peer that was given up from the server waits as well.
 *
 * A context has as many hands as it has had peers at a time, and not more than
 * RBX_RECOVERY_HANDS. They start when a peer is opened, and end with the context: none
 * is made where something is to be repaired.
 *
 * If more peers are broken than there are hands, they wait for one: first those that
 * drain, then the others in the order of their deadlines. A try that nobody has begun
 * by the deadline counts as failed while no hand is free. So the bound of
 * core/peer_state.h holds for any number of peers:
 *
 *	A hand is busy for T/4 at most, with a try. So a drain that waits begins within
 *	T/4 of its break, as no try goes before it; and drains do not add up: each
 *	ends T/8 after its own break, or at once if it begins later. To end the session
 *	of one that was given up waits for those only who still use that session, which
 *	is lost; and it goes last.
 *	By the deadline, T/4 after the break or 3/4 T after the last sign of life,
 *	whichever is later, the peer is drained. Then its try has begun, or begins, as
 *	a hand is free, and ends within T/4; or it is missed, which takes no time.
 *
 *	Between what the clock does for one peer it may do something for each other:
 *	to ask an owner takes as long as that looks. Those who need a hand are seen to
 *	before each.
 *
 * So it is given up T after its last sign of life, or T/2 after a break that was noticed
 * late, and no later for those that were waited for. What nobody can bound is as it
 * was: how long a driver destroys a queue pair, and how long this process is stopped. But
 * only those of which there are more than hands may be given up without having been
 * asked.
 */
#ifndef RBX_CLIENT_REPAIRS_H
#define RBX_CLIENT_REPAIRS_H

#include "client/host.h"
#include "core/limits.h"

struct rbx_peer;

struct rbx_repairs {
	/* Guards all below, and of each peer what queue_pairs.h says. */
	struct rbx_monitor monitor;
	struct rbx_peer *first; /* peers that are looked after */
	uint32_t peers_count;
	uint32_t busy_count; /* hands that do something */
	bool is_starting; /* somebody makes threads */
	bool stop;
	bool has_clock;
	uint32_t hands_count;
	struct rbx_thread clock;
	struct rbx_thread hands[RBX_RECOVERY_HANDS];
};

void rbx_repairs_init(struct rbx_repairs *repairs);
/* No peer is looked after any more. Blocks. */
void rbx_repairs_destroy(struct rbx_repairs *repairs);

/* Looks after a peer that is open, from here on. 0; -errno: there is no thread to be
 * had. Blocks. */
int rbx_repairs_add(struct rbx_repairs *repairs, struct rbx_peer *peer);
/* When it returns nobody does anything for it. Blocks. */
void rbx_repairs_remove(struct rbx_repairs *repairs, struct rbx_peer *peer);

#endif
