/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client.h - the core's client on modelled cores and NICs.
 *
 * The library uses threads for this (lib/peer, lib/poller); here it is done in steps
 * (cores.h). The channels, planner, window and poll policies are those of the core. Threads
 * submit fragments. The thread that the submit queue elects combines, one chain for each
 * step, so that others can add to what it takes. Pollers take completions, give credit back
 * and let parked combiners look again.
 *
 * A scenario adds a load (load.h) and these choices.
 */
#ifndef RBX_SIM_CLIENT_H
#define RBX_SIM_CLIENT_H

#include "core/harvest.h"
#include "core/histogram.h"
#include "core/poll_policy.h"
#include "sim/scenarios/wires.h"

#define RBX_CLIENT_PEERS_MAX 64u
#define RBX_CLIENT_POLLERS_MAX (RBX_CLIENT_PEERS_MAX * 4u)

enum rbx_client_buffers {
	RBX_CLIENT_REGISTERED, /* buffers that were registered once */
	RBX_CLIENT_COPIED, /* preMR: through staging memory */
	RBX_CLIENT_MAPPED, /* dynMR, as a kernel does it: mapped for each */
};

struct rbx_client_choices {
	uint32_t peers_count;
	uint32_t qps_count; /* to each peer */
	uint32_t pollers_count; /* in all; 0: one for each peer */
	uint32_t send_depth_count; /* of a queue pair, a power of two */
	bool merge;
	uint32_t chain_max;
	uint64_t window_bytes; /* 0: no window */
	enum rbx_client_buffers buffers;
	struct rbx_poll_rule polling;
	uint32_t complete_ns; /* CPU time to handle the end of a request */
	uint64_t peer_bytes; /* of memory lent by each */
	uint32_t local_bytes; /* of buffers, for all threads */
};

struct rbx_client;

/* A thread's state while it is the combiner. */
struct rbx_combining {
	struct rbx_channel *channel; /* NULL: it is none */
	uint32_t chains_count; /* in this stint */
};

struct rbx_client_peer {
	struct rbx_client *client;
	struct rbx_channel channel;
	struct rbx_qp *qps[RBX_QUEUE_PAIRS_MAX];
	struct rbx_work *works;
	struct rbx_mr *memory; /* at the peer */
};

struct rbx_client_poller {
	struct rbx_sim_thread thread;
	struct rbx_client *client;
	struct rbx_cq *cq;
	struct rbx_poll_policy policy;
	bool asleep;
	uint64_t polls, wakeups; /* counters */
};

struct rbx_client {
	struct rbx_client_choices choices;
	const struct rbx_nic_params *params;
	struct rbx_device *device;
	struct rbx_window window;
	struct rbx_planner planner;
	struct rbx_staging staging;
	struct rbx_mr *staging_memory;
	struct rbx_mr *local;
	struct rbx_client_peer *peers;
	uint32_t poller_count;
	struct rbx_client_poller *pollers;
	uint64_t submitted_count, ended_count;
};

/* params must stay until the end. */
void rbx_client_open(struct rbx_client *client,
		     const struct rbx_nic_params *params,
		     const struct rbx_client_choices *choices);
void rbx_client_close(struct rbx_client *client);

/* In a thread's step: submits fragments; it may have to combine afterwards. */
void rbx_client_submit(struct rbx_client *client, uint32_t peer,
		       struct rbx_fragment *first, struct rbx_fragment *last,
		       struct rbx_combining *combining);
/* Posts one chain while the thread combines. */
void rbx_client_combine(struct rbx_client *client,
			struct rbx_combining *combining);

static inline uint64_t rbx_client_in_flight(const struct rbx_client *client)
{
	return client->submitted_count - client->ended_count;
}

#endif
