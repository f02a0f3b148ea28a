/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - an RDMA device and what all peers on it share: the protection
 * domain, the window, the planner, and the poller with its completion queue.
 *
 * Which device it is the route to the first server decides.
 */
#ifndef RBX_KERNEL_CONTEXT_H
#define RBX_KERNEL_CONTEXT_H

#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "core/planner.h"
#include "core/window.h"
#include "kernel/lib/poller.h"
#include "wire/proof.h"

struct rbx_peer;

struct rbx_context_options {
	uint32_t queue_pairs; /* for each peer, 1 to RBX_QUEUE_PAIRS_MAX */
	uint32_t fragment_bytes;
	uint32_t peer_timeout_ms;
	bool merge; /* the paper's modes, see core/planner.h */
	bool chain;
	struct rbx_root secret; /* borrowed; empty: none */
};

struct rbx_context {
	struct rbx_context_options options;
	struct ib_device *device;
	struct ib_pd *pd;
	struct rbx_window window;
	struct rbx_planner planner;
	struct rbx_staging staging; /* none: one key covers all memory */
	struct rbx_poller poller;

	struct mutex peers_lock; /* guards the three below */
	uint32_t lanes_left_count; /* that fit into the completion queue */
	uint32_t peer_slots_used; /* atomic */
	struct rbx_peer *peers[RBX_PEERS_MAX]; /* atomic */
};

/* Opens the device that leads to an address. 0; -ENODEV, -EHOSTUNREACH; -ENOMEM.
 * Blocks. */
int rbx_context_open(const struct rbx_context_options *options,
		     struct sockaddr_storage *address,
		     struct rbx_context **ctx);
/* All peers are closed. */
void rbx_context_close(struct rbx_context *ctx);

/* -ENOSPC: too many. */
int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			 uint32_t lane_count);
/* When it returns the poller has nothing of the peer in hand. */
void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			     uint32_t lane_count);

/* Something has completed: lets parked combiners look again, in turn. */
void rbx_context_unpark(struct rbx_context *ctx);

#endif
