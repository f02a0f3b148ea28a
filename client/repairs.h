/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repairs.h - the threads that repair the connections of all peers of a context.
 *
 * One thread, the clock, checks what is due for which peer (core/recovery.h), and does the
 * steps that do not block: LOOK, ASK, GIVE_UP. A few other threads, the workers, do the steps
 * that block, DRAIN and RESUME. So a server that does not answer does not delay the repair of
 * the others. Ending the session of a peer that was given up blocks as well, and is for the
 * workers.
 *
 * A context has as many workers as it has had peers at a time, and at most RBX_RECOVERY_WORKERS.
 * They start when a peer is opened and end with the context: no thread is started for a
 * repair.
 *
 * If more peers are broken than there are workers, the peers wait: first served are those to
 * drain, then the others in the order of their deadlines. A try that was not begun by the
 * deadline counts as failed if no worker is free. So the bound of core/peer_state.h holds for
 * any number of peers:
 *
 *	A worker is busy for T/4 at most, with a try. So a drain that waits begins within
 *	T/4 of its break, as no try goes before it. Drains do not add up: each ends T/8
 *	after its own break, or at once if it begins later. Ending the session of a peer
 *	that was given up waits only for threads that still use that session, which is
 *	lost; and it goes last.
 *	By the deadline, T/4 after the break or 3/4 T after the last message, whichever
 *	is later, the peer is drained. Then its try has begun, or begins if a worker is
 *	free, and ends within T/4; or it is missed, which takes no time.
 *
 *	Between two actions for one peer the clock may do one for each other peer: asking
 *	an owner takes as long as that looks. Before each action it serves the peers that
 *	need a worker.
 *
 * So a peer is given up T after its last message, or T/2 after a break that was noticed late.
 * Waiting for others does not make it later. Two times remain without a bound: how long a
 * driver takes to destroy a queue pair, and how long this process is stopped. But if more
 * peers are broken than there are workers, some may be given up without any try.
 */
#ifndef RBX_CLIENT_REPAIRS_H
#define RBX_CLIENT_REPAIRS_H

#include "client/host.h"
#include "core/limits.h"

struct rbx_peer;

struct rbx_repairs {
	/* Guards all below, and the fields of each peer that queue_pairs.h names. */
	struct rbx_monitor monitor;
	struct rbx_peer *first; /* peers that are maintained */
	uint32_t peers_count;
	uint32_t busy_count; /* workers that do a step */
	bool is_starting; /* a thread starts threads */
	bool stop;
	bool has_clock;
	uint32_t workers_count;
	struct rbx_thread clock;
	struct rbx_thread workers[RBX_RECOVERY_WORKERS];
};

void rbx_repairs_init(struct rbx_repairs *repairs);
/* No peer is in the list any more. Blocks. */
void rbx_repairs_destroy(struct rbx_repairs *repairs);

/* Repairs an open peer from here on. Returns 0; -errno: a thread could not be started. Blocks. */
int rbx_repairs_add(struct rbx_repairs *repairs, struct rbx_peer *peer);
/* When it returns, no thread does anything for the peer. Blocks. */
void rbx_repairs_remove(struct rbx_repairs *repairs, struct rbx_peer *peer);

#endif
