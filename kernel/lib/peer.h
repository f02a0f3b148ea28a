/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - one memory server: its session, its data queue pairs, and the channel
 * through which all fragments to it go.
 *
 *	peer.c    opens and closes
 *	lane.c    data queue pairs: connected, posted to, completed
 *	keeper.c  the thread that restores the connection, or gives up
 */
#ifndef RBX_KERNEL_PEER_H
#define RBX_KERNEL_PEER_H

#include <linux/spinlock.h>
#include <linux/wait.h>

#include "core/harvest.h"
#include "core/peer_state.h"
#include "core/stall.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/context.h"
#include "kernel/lib/session.h"

/* A slot of a send ring: leads from a completion to its lane. */
struct rbx_posted {
	struct ib_cqe cqe;
	struct rbx_lane *lane;
};

/* A data queue pair and the ring of what is posted on it. */
struct rbx_lane {
	struct rbx_ib_conn conn;
	struct rbx_peer *peer;
	uint32_t ring_index;
	struct rbx_stall stall; /* looked at with each heartbeat */
	struct rbx_posted posted[RBX_SEND_DEPTH];
	struct ib_rdma_wr wrs[RBX_CHAIN_MAX]; /* the combiner's */
};

struct rbx_peer_events {
	/* The peer was given up: all it lent is gone. May not block. */
	void (*down)(struct rbx_peer *peer, void *user);
	/* The server wants a slab back. May not block. */
	void (*evict)(struct rbx_peer *peer, uint64_t slab_id, void *user);
	void *user;
};

struct rbx_peer {
	const struct rbx_client *client;
	struct rbx_context *ctx; /* the client's */
	struct rbx_session *session;
	struct rbx_peer_events events;
	struct rbx_channel channel;
	struct rbx_work *works; /* RBX_SEND_DEPTH for each lane */
	uint32_t lane_count;
	struct rbx_lane *lanes;

	struct task_struct *keeper;
	wait_queue_head_t changed; /* wakes the keeper */

	spinlock_t lock; /* guards all below */
	struct rbx_peer_state state;
	bool closing;
	uint32_t stalls_count; /* in a row, with nothing answered between */
	uint32_t stalled_at_count; /* what was answered at the last one */
	bool broken_meanwhile; /* noted while it was opened or resumed */
	struct rbx_fragment *again_first; /* to be sent after a resume */
	struct rbx_fragment *again_last;
	uint64_t retries_count;
};

/* As rbx_session_open(), and -ENOSPC, -ENOMEM. Blocks. */
int rbx_peer_open(const struct rbx_client *client,
		  struct sockaddr_storage *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer);
/* Nothing is outstanding. Blocks. */
void rbx_peer_close(struct rbx_peer *peer);

/* lane.c */

/* Hands fragments to the channel and combines where it falls to us. Never
 * blocks. local_addr is a DMA address. */
void rbx_peer_submit(struct rbx_peer *peer, struct rbx_fragment *first,
		     struct rbx_fragment *last);
/* The caller is the combiner of the peer's channel. */
void rbx_peer_combine(struct rbx_peer *peer);
/* Connects all lanes; 0 or -errno, then none is connected. Blocks. */
int rbx_peer_connect_lanes(struct rbx_peer *peer);
/* All that is posted has come back when it returns, and has been seen to. */
void rbx_peer_destroy_lanes(struct rbx_peer *peer);

/* keeper.c */

/* Something is wrong with the connection. Any context. */
void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason);
/* The peer lives: whether it also answers work requests. One at a time. */
void rbx_peer_look_for_stall(struct rbx_peer *peer);
int rbx_peer_keeper_main(void *peer);

#endif
