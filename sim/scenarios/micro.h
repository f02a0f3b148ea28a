/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * micro.h - the load of a microbenchmark on bare queue pairs: threads that each
 * keep so many work requests on each of their queue pairs, posted in chains. What
 * the well-known measurements of NICs do, to hold the model against them.
 */
#ifndef RBX_SIM_MICRO_H
#define RBX_SIM_MICRO_H

#include "fabric/fabric.h"
#include "sim/scenarios/figure.h"

struct rbx_micro {
	uint8_t opcode; /* RBX_OP_WRITE or RBX_OP_READ */
	bool is_inline;
	uint32_t bytes;
	uint32_t machines_count; /* that ask one memory server */
	uint32_t threads_count; /* of each */
	uint32_t qps_count; /* of each thread */
	uint32_t chain_count; /* behind one doorbell */
	uint32_t signal_count; /* chains, of which the last is signaled */
	uint32_t depth_count; /* of each queue pair; chains fit in it */
	uint64_t measured_ns;
};

struct rbx_micro_result {
	uint64_t per_second;
	uint64_t latency_ns; /* from post to poll, on average */
	uint64_t bytes_per_second;
};

/* Each thread has a core of its own. */
void rbx_micro_run(const struct rbx_setting *setting,
		   const struct rbx_micro *load,
		   struct rbx_micro_result *result);

#endif
