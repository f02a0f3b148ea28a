/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * internal.h - what the files of a peer share: peer.c opens and closes,
 * send.c posts, lanes.c has the queue pairs, recovery.c restores the connection.
 */
#ifndef RBX_LIB_PEER_INTERNAL_H
#define RBX_LIB_PEER_INTERNAL_H

#include <pthread.h>

#include "core/drive.h"
#include "core/recovery.h"
#include "lib/clock.h"
#include "lib/context.h"
#include "lib/peer/peer.h"
#include "lib/poller/plug.h"
#include "lib/poller/poller.h"

/* wr_id of the receive that a data queue pair keeps posted to hear of its end;
 * work requests are numbered with 32 bits. */
#define RBX_SENTINEL_WR_ID UINT64_MAX

/* wr_id of the marker that the recovery posts behind all others on a queue pair
 * that it has disconnected, where the last of them had no signal. */
#define RBX_MARKER_WR_ID (UINT64_MAX - 1)

/* A data queue pair and the ring of what is posted on it. */
struct rbx_lane {
	struct rbx_peer *peer;
	struct rbx_poller *poller; /* takes its completions */
	uint32_t cq_index; /* out of that queue of it */
	uint32_t ring_index;
	struct rbx_qp *qp; /* NULL while the connection is broken */
	bool tail_is_silent; /* the last posted has no signal; the combiner's */
	uint64_t polls_count; /* the recovery's: of the poller when it looked */
};

struct rbx_peer {
	struct rbx_context *ctx;
	struct rbx_session *session;
	struct rbx_peer_events events;
	uint32_t remotes_count; /* atomic: borrowed without a volume */
	struct rbx_channel channel;
	uint32_t send_depth_count; /* of each lane */
	uint32_t lane_count;
	struct rbx_lane lanes[RBX_QUEUE_PAIRS_MAX];
	struct rbx_work *works; /* RBX_SEND_DEPTH for each lane */

	pthread_t recovery_thread;
	bool is_stopped; /* its owner's: it was joined */
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed; /* wakes the recovery */
	struct rbx_recovery recovery;
	char reason[RBX_ERROR_TEXT_MAX]; /* of the last break */
	struct rbx_remote *remotes; /* borrowed without a volume */
};

/* send.c */

/* Hands fragments to the channel and combines where it falls to us. */
void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);
/* The caller is the combiner of the peer's channel. */
void rbx_peer_combine(struct rbx_peer *peer);
/* The host of its channel. */
extern const struct rbx_drive rbx_peer_drive;

/* lanes.c */

/* Connects all lanes; 0 or -errno, then none is connected. Blocks, but not beyond
 * until_ns, unless that is 0. */
int rbx_peer_connect_lanes(struct rbx_peer *peer, uint64_t until_ns);
/* Ends them, waits until what is posted has come back, or until then, and destroys
 * them. The caller is the combiner. */
void rbx_peer_drain_lanes(struct rbx_peer *peer, uint64_t until_ns);
void rbx_peer_destroy_lanes(struct rbx_peer *peer);

/* recovery.c */

/* Something is wrong with the connection. Any thread. */
void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason);
void *rbx_peer_recovery_main(void *peer);

#endif
