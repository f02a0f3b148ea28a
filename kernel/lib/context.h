/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - an RDMA device and what all peers on it share: the protection
 * domain, the window, and the poller with its completion queue.
 *
 * There is one for a device: it is the NIC that thrashes, whoever makes it do so, and
 * one thread polls for all. It comes with the first volume that needs it and goes
 * with the last. What the peers of one volume have in common besides is its client.
 */
#ifndef RBX_KERNEL_CONTEXT_H
#define RBX_KERNEL_CONTEXT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "core/planner.h"
#include "core/window.h"
#include "kernel/lib/poller.h"
#include "wire/proof.h"

struct rbx_peer;

struct rbx_context {
	struct list_head link; /* of all contexts; with their lock, as the next */
	uint32_t users_count;
	struct ib_device *device;
	struct ib_pd *pd;
	struct rbx_window window;
	struct rbx_staging staging; /* none: one key covers all memory */
	struct rbx_poller poller;

	struct mutex peers_lock; /* guards the three below */
	uint32_t lanes_left_count; /* that fit into the completion queue */
	uint32_t peer_slots_used; /* atomic */
	struct rbx_peer *peers[RBX_PEERS_MAX]; /* atomic */
};

/* How a client wants its peers. */
struct rbx_client_options {
	uint32_t queue_pairs; /* for each peer, 1 to RBX_QUEUE_PAIRS_MAX */
	uint32_t peer_timeout_ms;
	bool merge; /* the paper's modes, see core/planner.h */
	bool chain;
	struct rbx_root secret; /* borrowed; empty: none */
};

struct rbx_client {
	struct rbx_context *ctx; /* NULL: not open */
	struct rbx_client_options options;
	struct rbx_planner planner;
};

/* The name of an option that is out of its bounds, or NULL. */
const char *rbx_client_bad_option(uint32_t peer_timeout_ms, const void *secret,
				  size_t secret_bytes);
/* With the device that leads to an address. 0; -ENODEV, -EHOSTUNREACH; -ENOMEM.
 * Blocks. */
int rbx_client_open(struct rbx_client *client,
		    const struct rbx_client_options *options,
		    struct sockaddr_storage *address);
/* All its peers are closed. */
void rbx_client_close(struct rbx_client *client);

/* -ENOSPC: too many. */
int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			 uint32_t lane_count);
/* When it returns the poller has nothing of the peer in hand. */
void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			     uint32_t lane_count);

/* Something has completed: lets parked combiners look again, in turn. */
void rbx_context_unpark(struct rbx_context *ctx);

#endif
