/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * internal.h - what the files of a peer share: peer.c opens and closes,
 * send.c posts, stall.c sees that it is answered, keeper.c repairs.
 */
#ifndef RBX_LIB_PEER_INTERNAL_H
#define RBX_LIB_PEER_INTERNAL_H

#include <pthread.h>

#include "core/harvest.h"
#include "core/peer_state.h"
#include "core/stall.h"
#include "lib/clock.h"
#include "lib/context.h"
#include "lib/peer/peer.h"
#include "lib/poller/plug.h"
#include "lib/poller/poller.h"

/* wr_id of the receive that a data queue pair keeps posted to hear of its end;
 * work requests are numbered with 32 bits. */
#define RBX_SENTINEL_WR_ID UINT64_MAX

/* wr_id of the marker that the keeper posts behind all others on a queue pair
 * that it has disconnected, where the last of them had no signal. */
#define RBX_MARKER_WR_ID (UINT64_MAX - 1)

/* A data queue pair and the ring of what is posted on it. */
struct rbx_lane {
	struct rbx_peer *peer;
	struct rbx_poller *poller; /* takes its completions */
	uint32_t ring_index;
	struct rbx_qp *qp; /* NULL while the connection is broken */
	bool tail_is_silent; /* the last posted has no signal; the combiner's */
	struct rbx_stall stall; /* the keeper's */
	uint64_t polls_count; /* the keeper's: of the poller when it looked */
};

struct rbx_peer {
	struct rbx_context *ctx;
	struct rbx_session *session;
	struct rbx_peer_events events;
	struct rbx_channel channel;
	uint32_t send_depth_count; /* of each lane */
	uint32_t lane_count;
	struct rbx_lane lanes[RBX_QUEUE_PAIRS_MAX];
	struct rbx_work *works; /* RBX_SEND_DEPTH for each lane */

	pthread_t keeper;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed; /* wakes the keeper */
	struct rbx_peer_state state;
	bool closing;
	bool broken_meanwhile; /* noted while it was opened or resumed */
	uint64_t look_at_ns; /* when the keeper looks for a stall again */
	uint32_t stalls_count; /* in a row, with nothing answered between */
	uint32_t stalled_at_count; /* what was answered at the last one */
	char reason[RBX_ERROR_TEXT_MAX]; /* of the last break */
	struct rbx_fragment *again_first; /* to be sent after a resume */
	struct rbx_fragment *again_last;
};

/* send.c */

/* Hands fragments to the channel and combines where it falls to us. */
void rbx_peer_send(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);
/* The caller is the combiner of the peer's channel. */
void rbx_peer_combine(struct rbx_peer *peer);
/* Keeps what is to be sent again, and notes a break. Takes the again-list of
 * the harvest. */
void rbx_peer_keep(struct rbx_peer *peer, struct rbx_harvest *harvest);

/* keeper.c */

/* Connects all lanes; 0 or -errno, then none is connected. Blocks. */
int rbx_peer_connect_lanes(struct rbx_peer *peer);
void rbx_peer_destroy_lanes(struct rbx_peer *peer);
/* Something is wrong with the connection. Any thread. */
void rbx_peer_note_broken(struct rbx_peer *peer, const char *reason);
void *rbx_peer_keeper_main(void *peer);

/* stall.c: the keeper's, which holds the peer's lock. */

/* Looks, where it is time to. True: posted work requests are not answered. */
bool rbx_peer_stands_still(struct rbx_peer *peer);
/* Whether nothing was answered between the last two times. */
bool rbx_peer_stalls_again(const struct rbx_peer *peer);

#endif
