/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - a connection to one memory server, as the code that sends through it sees it.
 *
 * A peer is a control session (identity and loans) and a few queue pairs for the data, with
 * one merge queue in front of them. Any thread puts fragments in by rbx_peer_submit(). They
 * come back by their done(), always called from the thread that polls. While a connection is
 * broken, and within the peer timeout, fragments wait and are sent again. After that the peer
 * is down for good, or at once if the server is known to be dead. Then each fragment ends
 * with -EHOSTUNREACH, and so does each later one. Only requests for data that no other server
 * has wait longer, until half of the lease is over. Nothing waits for ever.
 *
 * How a peer is opened and how a thread submits differs between hosts: that is where a server
 * has an address and a thread has its plug. queue_pairs.h says what a peer is made of.
 */
#ifndef RBX_CLIENT_PEER_H
#define RBX_CLIENT_PEER_H

#include "core/ask.h"
#include "core/eviction.h"
#include "core/loan.h"
#include "core/request.h"

struct rbx_peer;
struct rbx_session;

/* But for welcomed() none of them may block, or call a function that blocks (map, unmap, open,
 * leave). */
struct rbx_peer_events {
	/* Called once, before the first fragment ends with -EHOSTUNREACH because of it. */
	void (*down)(struct rbx_peer *peer, void *user);
	/* The session is there, and no queue pair yet. May block. 0, or -errno that was reported:
	 * then the peer is not opened. NULL: nothing is to be done. */
	int (*welcomed)(struct rbx_peer *peer, void *user);
	/* The server wants a loan back. */
	void (*evict)(struct rbx_peer *peer,
		      const struct rbx_eviction *eviction, void *user);
	/* The server drains: once. NULL: nothing is to be done. */
	void (*drains)(struct rbx_peer *peer, void *user);
	/*
	 * The server has not answered for the peer timeout. The owner gives up what it can do
	 * without: fragments for which wait() is false then end with -EHOSTUNREACH. Returns
	 * whether some data is left that only this server has, or that it may come back with.
	 * Then it is tried for longer,
	 * and hold() is called again from time to time. NULL: there is never such data.
	 */
	bool (*hold)(struct rbx_peer *peer, void *user);
	bool (*wait)(const struct rbx_fragment *fragment);
	/* The session was resumed, whether hold() was called or not. NULL: nothing to do. */
	void (*back)(struct rbx_peer *peer, void *user);
	void *user;
};

/*
 * After stop() has returned, the peer's connection is not repaired any more, and hold() and
 * down() are not called. An owner of several peers stops all before it closes the first.
 * Nothing is outstanding. stop() blocks; stop_soon() makes it begin.
 */
void rbx_peer_stop_soon(struct rbx_peer *peer);
void rbx_peer_stop(struct rbx_peer *peer);
/* Says BYE to the server, which takes back its loans, and frees the peer. No fragment is
 * outstanding. Blocks. */
void rbx_peer_leave(struct rbx_peer *peer);

/* It is given up, as if the server did not know us any more: nothing that waits is sent, and what
 * is under way ends. Any thread; does not block. */
void rbx_peer_renounce(struct rbx_peer *peer, const char *reason);

/* Its peer timeout is another one from now on. Any thread; does not block. */
void rbx_peer_set_timeout(struct rbx_peer *peer, uint32_t peer_timeout_ms);

/* Whether it is being repaired, or was given up. Any thread: it guards nothing. */
bool rbx_peer_is_broken(const struct rbx_peer *peer);
/* Whether it has been up for a while, so that another peer is not needed. Any thread. */
bool rbx_peer_is_up(struct rbx_peer *peer);
/* Why it broke the last time; for a peer that is down. */
const char *rbx_peer_reason(const struct rbx_peer *peer);

/* The server's name, as it was given or as it is reached. */
const char *rbx_peer_name(const struct rbx_peer *peer);
/* A number that identifies a server by its memory, at whatever address. */
uint64_t rbx_peer_incarnation(const struct rbx_peer *peer);
/* What the server says of its place (core/server_labels.h). */
const char *rbx_peer_labels(const struct rbx_peer *peer);
uint64_t rbx_peer_slab_bytes(const struct rbx_peer *peer);
/* As the server last reported, by heartbeat or reply. */
uint64_t rbx_peer_free_bytes(const struct rbx_peer *peer);

/* Borrows one slab / gives it back. Both block; not from a poller's thread. */
int rbx_peer_map(struct rbx_peer *peer, struct rbx_loan *loan);
int rbx_peer_unmap(struct rbx_peer *peer, const struct rbx_loan *loan);
/* Like rbx_session_ask() and rbx_session_answer(). So several servers can be asked at the
 * same time. */
void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask);
int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask,
		    struct rbx_loan *loan);
/* For requests about a named volume. */
struct rbx_session *rbx_peer_session(struct rbx_peer *peer);
/* 0: the loan is still valid. -ESTALE, -EPERM: it was revoked. Blocks. */
int rbx_peer_check(struct rbx_peer *peer, const struct rbx_loan *loan);

/*
 * Gives fragments, linked by node.next from first to last, to the peer until their done().
 * Never blocks and never refuses: the caller's pool of fragments is the bound. In a program
 * they leave at unplug if this thread has plugged.
 */
void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last);

#endif
