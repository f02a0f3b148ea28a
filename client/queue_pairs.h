/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pairs.h - the structure of a peer, and the functions that only its host has.
 *
 *	peer.c      opens and closes
 *	recovery.c  steps that restore its connection, or give up
 *	repairs.c   the threads that do them, for all peers of a context
 *
 * The host makes the data queue pairs of a peer, posts on them and polls them; the host's own
 * structure contains this one. The host has as many rings in the channel as it has queue
 * pairs, and a table of core/drive.h. The entries of that table that are the same in every
 * host are here: rbx_peer_note_failed(), _keep(), _end_later() and _unpark().
 */
#ifndef RBX_CLIENT_QUEUE_PAIRS_H
#define RBX_CLIENT_QUEUE_PAIRS_H

#include "client/host.h"
#include "client/peer.h"
#include "client/repairs.h"
#include "client/session.h"
#include "core/drive.h"
#include "core/recovery.h"

struct rbx_context; /* an RDMA device, and what all peers on it share */
struct rbx_poller; /* takes completions */

/* The longest reason of a break that is kept; a longer one is cut. */
#define RBX_REASON_BYTES 256u

struct rbx_peer {
	struct rbx_context *ctx;
	struct rbx_session *session;
	struct rbx_poller *poller; /* gives back fragments that end without a completion */
	struct rbx_peer_events events;
	struct rbx_channel channel;

	bool is_stopped; /* used by its owner only */
	bool is_renounced; /* atomic: it is not resumed any more */
	struct rbx_repairs *repairs; /* of its context; its monitor guards all below */
	struct rbx_peer *next; /* in the list of peers that are maintained */
	bool has_worker; /* a thread does a step */
	/* needs a thread: DRAIN or RESUME is due, or it is down and its session is to be ended */
	bool wants_worker;
	struct rbx_recovery recovery;
	char reason[RBX_REASON_BYTES]; /* of the last break */
};

/* ---- peer.c, for the host ----------------------------------------------------*/

/* ctx: the peer's context. The peer is zeroed, with no queue pair yet. Prepares the fields
 * above; the host adds its rings to the channel afterwards. events: may be NULL. */
void rbx_peer_prepare(struct rbx_peer *peer, struct rbx_context *ctx,
		      struct rbx_repairs *repairs,
		      const struct rbx_planner *planner,
		      struct rbx_window *window, uint32_t peer_timeout_ms,
		      const struct rbx_peer_events *events);
/* Connects it. After a failure the host frees it. address: passed to rbx_peer_open_session().
 * Blocks. */
int rbx_peer_connect_to(struct rbx_peer *peer, const void *address);

/* For the host's table of its channel. */
void rbx_peer_note_failed(struct rbx_channel *channel);
void rbx_peer_keep(struct rbx_channel *channel, struct rbx_harvest *harvest);
void rbx_peer_end_later(struct rbx_channel *channel, struct rbx_fragment *list);
void rbx_peer_unpark(struct rbx_channel *channel);

/* ---- recovery.c ------------------------------------------------------------------*/

/* The connection is broken. Any thread. */
void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason);
/* Does a step that is due; DRAIN and RESUME block, until at_ns. */
void rbx_peer_do_step(struct rbx_peer *peer, enum rbx_recovery_step step,
		      uint64_t at_ns);

/* ---- What the host does for it -------------------------------------------------*/

/* Opens its session with the server at this address. Blocks. */
int rbx_peer_open_session(struct rbx_peer *peer, const void *address,
			  const struct rbx_session_events *events);
/* Frees the memory of a peer that was prepared, or was connected and left. */
void rbx_peer_free(struct rbx_peer *peer);

/* Connects all queue pairs. Returns 0 or -errno; then none is connected. Blocks, but not
 * beyond until_ns, unless that is 0. */
int rbx_peer_connect_qps(struct rbx_peer *peer, uint64_t until_ns);
/* Disconnects the queue pairs, waits until what is posted has come back, or until until_ns,
 * and destroys them. By then all completions have been handled. The caller is the combiner. */
void rbx_peer_drain_qps(struct rbx_peer *peer, uint64_t until_ns);
/* Nothing is posted, or nothing of it has to come back. */
void rbx_peer_destroy_qps(struct rbx_peer *peer);
/* A bit for each ring whose poller has looked for completions since the last call, or would
 * get an event for one. */
uint32_t rbx_peer_rings_looked(struct rbx_peer *peer);

/* The host's table for its channel. */
extern const struct rbx_drive rbx_peer_drive;
/* The caller is the combiner of its channel. */
void rbx_peer_combine(struct rbx_peer *peer);

/* Puts a peer into the context's table and gives its queue pairs pollers; one of these
 * becomes its own. -ENOSPC. */
int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer);
/* When it returns, no poller uses the peer any more. */
void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer);

/* Has the poller give back fragments that ended without a completion. */
void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list);
/* Has the poller look for parked combiners, completions or none. */
void rbx_poller_unpark(struct rbx_poller *poller);

static inline struct rbx_peer *rbx_peer_of_channel(struct rbx_channel *channel)
{
	return RBX_CONTAINER_OF(channel, struct rbx_peer, channel);
}

#endif
