/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client.h - the core's client on modelled cores and NICs.
 *
 * What lib/peer and lib/poller do with threads, this does in steps (cores.h): the
 * channels, planner, window and poll policies are the core's own. Threads submit
 * fragments; the one whom the submit queue elects combines, a chain a step, so
 * that others can add to what it takes; pollers take completions, give credit
 * back and let parked combiners look again.
 *
 * What a scenario brings is a load (load.h) and these choices.
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
	uint32_t qps_count; /* of each peer */
	uint32_t pollers_count; /* for all; 0: one for each peer */
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

/* A combiner, for as long as it is one. */
struct rbx_combining {
	struct rbx_channel *channel; /* NULL: it is none */
	uint32_t chains_count; /* in this turn */
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

/* params stays until the end. */
void rbx_client_open(struct rbx_client *client,
		     const struct rbx_nic_params *params,
		     const struct rbx_client_choices *choices);
void rbx_client_close(struct rbx_client *client);

/* Of a thread's step: hands fragments over; it may have to combine then. */
void rbx_client_submit(struct rbx_client *client, uint32_t peer,
		       struct rbx_fragment *first, struct rbx_fragment *last,
		       struct rbx_combining *combining);
/* A chain, while it combines. */
void rbx_client_combine(struct rbx_client *client,
			struct rbx_combining *combining);

static inline uint64_t rbx_client_in_flight(const struct rbx_client *client)
{
	return client->submitted_count - client->ended_count;
}

#endif
