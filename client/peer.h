/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - a connection to one memory server, as those see it who send by it.
 *
 * A peer is a control session (who am I, which slabs may I use) and a few queue
 * pairs for the data, with one merge queue in front of them. Fragments go in
 * by rbx_peer_submit() from any thread and come back by their done(), always
 * called from the thread that polls. While a connection is broken and within
 * the peer timeout fragments wait and are sent again; after that, or at once
 * where the server is known to be gone, the peer is down for good: each
 * fragment ends with -EHOSTUNREACH, and so does each later one. Only for what nobody
 * else has they wait for longer, until half of the lease is over. Nothing hangs.
 *
 * How it is opened, and what submits, are the host's: there a server has an address,
 * and a thread its plug. What a peer is made of: queue_pairs.h.
 */
#ifndef RBX_CLIENT_PEER_H
#define RBX_CLIENT_PEER_H

#include "core/ask.h"
#include "core/eviction.h"
#include "core/loan.h"
#include "core/request.h"

struct rbx_peer;

/* None of them may block, nor call what blocks (map, unmap, open, leave). */
struct rbx_peer_events {
	/* Once, before the first fragment ends with -EHOSTUNREACH for it. */
	void (*down)(struct rbx_peer *peer, void *user);
	/* The server wants a loan back. */
	void (*evict)(struct rbx_peer *peer,
		      const struct rbx_eviction *eviction, void *user);
	/*
	 * It has not answered for the peer timeout. Does without it where it can:
	 * what wait() is false for then ends with -EHOSTUNREACH. Returns whether
	 * something is left that it alone has; then it is tried for longer, and
	 * hold() is called again now and then. NULL: nothing ever is.
	 */
	bool (*hold)(struct rbx_peer *peer, void *user);
	bool (*wait)(const struct rbx_fragment *fragment);
	void *user;
};

/*
 * Its connection is not repaired any more, and hold() and down() are not called once
 * stop() has returned: who has several peers stops all before the first is closed.
 * Nothing is outstanding. stop() blocks; stop_soon() has it begin.
 */
void rbx_peer_stop_soon(struct rbx_peer *peer);
void rbx_peer_stop(struct rbx_peer *peer);
/* Takes leave of the server, which takes back what it has lent, and frees the peer. No
 * fragment outstanding. Blocks. */
void rbx_peer_leave(struct rbx_peer *peer);

/* It has been up for a while: another need not be waited for. Any thread. */
bool rbx_peer_is_up(struct rbx_peer *peer);
/* Why it broke the last time. Of one that is down. */
const char *rbx_peer_reason(const struct rbx_peer *peer);

/* The server's, as it was named or as it is reached. */
const char *rbx_peer_name(const struct rbx_peer *peer);
/* One number for each start of a server, at whatever address. */
uint64_t rbx_peer_incarnation(const struct rbx_peer *peer);
uint64_t rbx_peer_slab_bytes(const struct rbx_peer *peer);
/* As the server last told it, by heartbeat or reply. */
uint64_t rbx_peer_free_bytes(const struct rbx_peer *peer);

/* Borrows one slab / gives it back. Block; not from a poller's thread. */
int rbx_peer_map(struct rbx_peer *peer, struct rbx_loan *loan);
int rbx_peer_unmap(struct rbx_peer *peer, const struct rbx_loan *loan);
/* What rbx_session_ask() and rbx_session_answer() do. So several servers can be asked at
 * once. */
void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask);
int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask,
		    struct rbx_loan *loan);
/* 0: the loan is still good. -ESTALE, -EPERM: it was revoked. Blocks. */
int rbx_peer_check(struct rbx_peer *peer, const struct rbx_loan *loan);

/*
 * Lends fragments, linked by node.next from first to last, to the peer. Never
 * blocks and never refuses: the caller's pool of fragments is the bound. In a program
 * they leave at unplug under a plug of this thread.
 */
void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last);

#endif
