/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - a connection to one memory server, as the kernel makes it (client/peer.h): its
 * data queue pairs.
 *
 *	peer.c         makes it
 *	send.c         posts work requests, and handles their completions
 *	late.c         maps memory for the device while it is posted
 *	queue_pairs.c  data queue pairs: connected, drained, destroyed
 */
#ifndef RBX_KERNEL_PEER_H
#define RBX_KERNEL_PEER_H

#include "client/queue_pairs.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/context.h"
#include "kernel/lib/post_chain.h"
#include "kernel/lib/session/sessions.h"

/* What is mapped while it is posted on a queue pair (late.c). */
struct rbx_late {
	uint32_t masks[RBX_SEND_DEPTH]; /* of a slot: the scatter entries that are mapped */
	uint32_t posted_count; /* work requests that have some, ever; atomic, the combiner's */
	uint32_t ended_count; /* the same, the poller's */
};

/* A data queue pair and the ring of what is posted on it. */
struct rbx_peer_qp {
	struct rbx_ib_conn conn;
	struct rbx_peer *peer;
	struct rbx_poller *poller; /* takes its completions */
	uint32_t cq_index; /* the completion queue of the poller */
	uint64_t polls_count; /* polls of the poller when the recovery last looked */
	uint32_t ring_index;
	bool is_over; /* completions that still come are dropped; guarded by poller.lock */
	struct rbx_posts posts;
	struct rbx_late late;
};

/* A peer of the kernel host. */
struct rbx_kernel_peer {
	struct rbx_peer peer;
	struct rbx_client *client;
	struct rbx_work *works; /* RBX_SEND_DEPTH for each queue pair */
	uint32_t qps_count;
	struct rbx_peer_qp *qps;
};

static inline struct rbx_kernel_peer *
rbx_kernel_peer(const struct rbx_peer *peer)
{
	return container_of(peer, struct rbx_kernel_peer, peer);
}

/* As rbx_session_open(), and -ENOSPC, -ENOMEM. Blocks. */
int rbx_peer_open(struct rbx_client *client,
		  const struct sockaddr_storage *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer);

/* ---- late.c ------------------------------------------------------------------------*/

/* Maps what is late of a chain that is about to be posted. Returns how many of its work requests,
 * from the first on, can be. By the combiner. */
uint32_t rbx_late_map(struct rbx_peer_qp *pair, const struct rbx_chain *chain);
/* The device has not taken these. By the combiner. */
void rbx_late_not_posted(struct rbx_peer_qp *pair, uint32_t at, uint32_t before);
/* All before this one are about to complete. By the poller. */
void rbx_late_unmap_until(struct rbx_peer_qp *pair, uint32_t before);
/* The queue pair is destroyed, and all that it still held is about to be given back. As the
 * poller, while no thread posts. */
void rbx_late_unmap_rest(struct rbx_peer_qp *pair);

/* send.c: handles the completion of a work request. Called by the thread that polls. */
void rbx_peer_work_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
