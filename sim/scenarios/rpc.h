/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpc.h - requests and responses between many threads and one, as in the paper on
 * communication patterns (section 4.1): each way by WRITE or by SEND, with a connection for
 * each requester, or one for each machine with a dispatcher.
 */
#ifndef RBX_SIM_RPC_H
#define RBX_SIM_RPC_H

#include "sim/scenarios/figure.h"

#define RBX_RPC_MACHINE_THREADS 8u /* requesters of a machine */
/* A responder, and a dispatcher for each machine: as many threads as cores. */
#define RBX_RPC_MACHINES_MAX 28u

struct rbx_rpc {
	bool request_by_write, response_by_write;
	bool dispatched;
	uint32_t requesters_count; /* threads with a core each */
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
