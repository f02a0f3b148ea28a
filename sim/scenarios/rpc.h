/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpc.h - requests and responses between many threads and one, as the paper on
 * communication patterns has them (section 4.1): each way either a WRITE into a
 * mailbox that the other side looks at, or a SEND into a receive.
 */
#ifndef RBX_SIM_RPC_H
#define RBX_SIM_RPC_H

#include "sim/scenarios/figure.h"

#define RBX_RPC_MACHINE_THREADS 8u /* requesters of a machine */
#define RBX_RPC_MACHINES_MAX 31u /* and a responder: as many threads as cores */

struct rbx_rpc {
	bool request_by_write, response_by_write;
	uint32_t requesters_count; /* threads, each with a connection and a core */
	uint32_t response_bytes;
	uint64_t measured_ns;
};

struct rbx_rpc_result {
	uint64_t per_second;
	uint64_t bytes_per_second; /* of responses */
	uint64_t latency_ns; /* on average */
};

void rbx_rpc_run(const struct rbx_setting *setting, const struct rbx_rpc *rpc,
		 struct rbx_rpc_result *result);

#endif
