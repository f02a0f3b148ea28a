/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * micro.h - the load of a microbenchmark on bare queue pairs: threads that each keep so many
 * work requests outstanding on each of their queue pairs, posted in chains. Well-known
 * measurements of NICs do the same, so the model can be compared with them.
 */
#ifndef RBX_SIM_MICRO_H
#define RBX_SIM_MICRO_H

#include "fabric/fabric.h"
#include "sim/scenarios/figure.h"

struct rbx_micro {
	uint8_t opcode; /* RBX_OP_WRITE or RBX_OP_READ */
	bool is_inline;
	uint32_t bytes;
	uint32_t machines_count; /* that use one memory server */
	uint32_t threads_count; /* of each */
	uint32_t qps_count; /* of each thread */
	uint32_t chain_count; /* behind one doorbell */
	uint32_t signal_count; /* every so many chains the last work request is signaled */
	uint32_t depth_count; /* of each queue pair; a multiple of chains */
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
