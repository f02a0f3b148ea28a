/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - one memory server: its session, its data queue pairs, and the channel
 * through which all fragments to it go.
 *
 *	peer.c      opens and closes
 *	send.c      posts, completes
 *	lanes.c     data queue pairs: connected, drained, destroyed
 *	recovery.c  the thread that restores the connection, or gives up
 */
#ifndef RBX_KERNEL_PEER_H
#define RBX_KERNEL_PEER_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "core/drive.h"
#include "core/recovery.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/context.h"
#include "kernel/lib/session/sessions.h"

/* A slot of a send ring: leads from a completion to its lane. */
struct rbx_posted {
	struct ib_cqe cqe;
	struct rbx_lane *lane;
};

/* A data queue pair and the ring of what is posted on it. */
struct rbx_lane {
	struct rbx_ib_conn conn;
	struct rbx_peer *peer;
	struct rbx_poller *poller; /* takes its completions */
	uint32_t cq_index; /* out of that queue of it */
	uint64_t polls_count; /* the recovery's: of the poller when it looked */
	uint32_t ring_index;
	bool is_over; /* what still completes is of no account; poller.lock */
	struct rbx_posted posted[RBX_SEND_DEPTH];
	struct ib_rdma_wr wrs[RBX_CHAIN_MAX]; /* the combiner's */
};

struct rbx_peer_events {
	/* The peer was given up: all it lent is gone. May not block. */
	void (*down)(struct rbx_peer *peer, void *user);
	/* The server wants a loan back. May not block. */
	void (*evict)(struct rbx_peer *peer,
		      const struct rbx_eviction *eviction, void *user);
	/*
	 * It has not answered for the peer timeout. Does without it where it can:
	 * what wait() is false for then ends with -EHOSTUNREACH. Returns whether
	 * something is left that it alone has; then it is tried for longer, and
	 * hold() is called again now and then. NULL: nothing ever is. Neither
	 * blocks.
	 */
	bool (*hold)(struct rbx_peer *peer, void *user);
	bool (*wait)(const struct rbx_fragment *fragment);
	void *user;
};

struct rbx_peer {
	struct rbx_client *client;
	struct rbx_context *ctx; /* the client's */
	struct rbx_session *session;
	struct rbx_peer_events events;
	struct rbx_channel channel;
	struct rbx_work *works; /* RBX_SEND_DEPTH for each lane */
	uint32_t lane_count;
	struct rbx_lane *lanes;

	struct task_struct *recovery_thread; /* NULL: stopped */
	wait_queue_head_t changed; /* wakes it */

	spinlock_t lock; /* guards the next */
	struct rbx_recovery recovery;
};

/* As rbx_session_open(), and -ENOSPC, -ENOMEM. Blocks. */
int rbx_peer_open(struct rbx_client *client,
		  struct sockaddr_storage *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer);
/* Its connection is not repaired any more, and hold() and down() are not called from
 * here on: who has several peers stops all before the first is closed. Nothing is
 * outstanding. Blocks. */
void rbx_peer_stop(struct rbx_peer *peer);
/* Nothing is outstanding. Blocks. */
void rbx_peer_close(struct rbx_peer *peer);

/* send.c */

/* Hands fragments to the channel and combines where it falls to us. Never
 * blocks. local_addr is a DMA address. */
void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last);
/* The caller is the combiner of the peer's channel. */
void rbx_peer_combine(struct rbx_peer *peer);
/* The host of its channel. */
extern const struct rbx_drive rbx_peer_drive;
/* The completion of a work request. By who polls. */
void rbx_peer_work_done(struct ib_cq *cq, struct ib_wc *wc);

/* lanes.c */

/* Connects all lanes; 0 or -errno, then none is connected. Blocks, but not beyond
 * until_ns, unless that is 0. */
int rbx_peer_connect_lanes(struct rbx_peer *peer, uint64_t until_ns);
/* Waits until all that is posted has come back, but not longer than until_ns. When
 * it returns the queue pairs are destroyed, and all has been seen to. */
void rbx_peer_destroy_lanes(struct rbx_peer *peer, uint64_t until_ns);
/* Until when, if nothing else says so. */
static inline uint64_t rbx_peer_patience_ns(void)
{
	return ktime_get_ns() + RBX_IB_DRAIN_MS * (uint64_t)NSEC_PER_MSEC;
}

/* Which sees to what is of no lane. */
static inline struct rbx_poller *rbx_peer_poller(const struct rbx_peer *peer)
{
	return peer->lanes[0].poller;
}

/* It has been up for a while: another need not be waited for. Any context. */
static inline bool rbx_peer_is_up(const struct rbx_peer *peer)
{
	return rbx_peer_state_is_settled(&peer->recovery.state, ktime_get_ns());
}

/* recovery.c */

/* Something is wrong with the connection. Any context. */
void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason);
int rbx_peer_recovery_main(void *peer);

#endif
