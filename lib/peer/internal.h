/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * internal.h - what the files of a peer share: peer.c makes it, send.c posts,
 * queue_pairs.c has the queue pairs.
 */
#ifndef RBX_LIB_PEER_INTERNAL_H
#define RBX_LIB_PEER_INTERNAL_H

#include <pthread.h>

#include "client/queue_pairs.h"
#include "lib/clock.h"
#include "lib/context.h"
#include "lib/peer/peer.h"
#include "lib/poller/plug.h"
#include "lib/poller/poller.h"

/* wr_id of the receive that stays posted on a data queue pair. It completes when the
 * connection ends. Work requests are numbered with 32 bits. */
#define RBX_SENTINEL_WR_ID UINT64_MAX

/* wr_id of the marker. If the last work request of a disconnected queue pair had no
 * signal, the recovery posts the marker behind it. */
#define RBX_MARKER_WR_ID (UINT64_MAX - 1)

/* A data queue pair and the ring of what is posted on it. */
struct rbx_peer_qp {
	struct rbx_peer *peer;
	struct rbx_poller *poller; /* takes its completions */
	uint32_t cq_index; /* the completion queue of the poller */
	uint32_t ring_index;
	struct rbx_qp *qp; /* NULL while the connection is broken */
	bool tail_is_silent; /* the last posted work request has no signal; used by the combiner */
	/* Polls of the poller when the recovery last looked; used by the recovery. */
	uint64_t polls_count;
};

/* A peer of the user host. */
struct rbx_user_peer {
	struct rbx_peer peer;
	uint32_t send_depth_count; /* of each queue pair */
	uint32_t qps_count;
	struct rbx_peer_qp qps[RBX_QUEUE_PAIRS_MAX];
	struct rbx_work *works; /* RBX_SEND_DEPTH for each queue pair */

	/* Memory that was borrowed without a volume. */
	uint32_t remotes_count; /* atomic */
	pthread_mutex_t remotes_lock; /* guards the next */
	struct rbx_remote *remotes;
};

static inline struct rbx_user_peer *rbx_user_peer(const struct rbx_peer *peer)
{
	return RBX_CONTAINER_OF(peer, struct rbx_user_peer, peer);
}

/* send.c */

/* Hands fragments to the channel. Combines if this thread becomes the combiner. */
void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);

#endif
