/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load.h - threads that send requests through a client, and the results.
 *
 * A thread keeps depth_count requests outstanding. Each costs it some CPU time before it is
 * submitted, think_ns on average; plug_count are submitted together. With bursts it submits
 * burst_count, waits for all of them, and then sleeps for gap_ns before the next burst.
 */
#ifndef RBX_SIM_LOAD_H
#define RBX_SIM_LOAD_H

#include "core/random.h"
#include "sim/scenarios/client.h"
#include "sim/scenarios/figure.h"

struct rbx_load_thread;

/* Where a request goes; filled in by the scenario. */
struct rbx_target {
	uint32_t peer;
	uint32_t direction; /* enum rbx_direction */
	uint64_t offset_bytes;
	uint32_t run_count; /* neighbours that go with it, at most the load's run_count */
};

struct rbx_load {
	uint32_t threads_count;
	uint32_t depth_count;
	uint32_t request_bytes;
	uint32_t think_ns;
	uint32_t plug_count; /* at least 1 */
	uint32_t run_count; /* it thinks only if there is room for so many more neighbours */
	uint32_t burst_count; /* 0: no bursts */
	uint32_t gap_ns;
	bool begins_full; /* it begins with depth_count requests ready */
	void (*aim)(struct rbx_load_thread *thread, struct rbx_target *target);
};

struct rbx_load_thread {
	struct rbx_sim_thread thread;
	struct rbx_client *client;
	const struct rbx_load *load;
	uint32_t number;
	struct rbx_random random;
	uint64_t at; /* for the scenario: its position */

	uint32_t there_count; /* left of those it began with */
	uint32_t ready_count; /* requests that were made */
	struct rbx_fragment *held_first; /* held by the plug, of one peer */
	struct rbx_fragment *held_last;
	uint32_t held_peer;
	struct rbx_combining combining;
	struct rbx_request *requests; /* depth_count */
	struct rbx_request *free_first;
	uint32_t in_flight_count;
	uint32_t burst_left;
	uint64_t done_count;
	struct rbx_histogram *latencies;
};

/* Of the measured time. */
struct rbx_load_result {
	uint64_t requests;
	uint64_t per_second;
	uint64_t latency_ns[3]; /* median, 99th percentile, mean */
	uint64_t in_flight; /* requests, mean */
	uint64_t in_flight_bytes; /* posted, mean */
	uint64_t in_flight_bytes_peak;
	uint64_t posted; /* requests; then the work requests and doorbells for them */
	uint64_t work_requests, doorbells;
	uint64_t work_misses; /* of 1000 lookups of work requests in the NIC */
	uint64_t interrupts, context_switches;
	uint64_t cpu_percent; /* 100: one core */
};

/* Runs the load for measured_ns, after half that time without counting. */
void rbx_load_run(const struct rbx_setting *setting,
		  const struct rbx_client_choices *choices,
		  const struct rbx_load *load, uint64_t measured_ns,
		  struct rbx_load_result *result);

#endif
