/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fig2.c - figure 2 of the RDMAbox paper: ways of polling on three loads.
 *
 * One thread writes pages to one peer in clusters, and waits for each to end
 * before the next, which follows GAP_NS later. Small is one request at a time
 * without a gap. Large is the smallest cluster at which busy polling has its best
 * throughput, within 2 %; medium is halfway.
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/load.h"
#include "sim/scenarios/polling.h"

#define PAGE_BYTES 4096u
#define GAP_NS 3000u /* assumed: "with a small interval" */
#define REQUEST_NS 300u /* assumed: to ask for one of a cluster */
#define COMPLETE_NS 200u /* assumed: to end a request */
#define CLUSTER_MAX 256u
#define PEER_BYTES (64u << 20)
#define MEASURED_NS 20000000u

static void next_page(struct rbx_load_thread *thread, struct rbx_target *target)
{
	target->direction = RBX_DIRECTION_WRITE;
	target->offset_bytes = thread->at;
	thread->at = (thread->at + PAGE_BYTES) % PEER_BYTES;
}

static void run(const struct rbx_nic_params *params,
		const struct rbx_sim_polling *polling, uint32_t cluster,
		struct rbx_load_result *result)
{
	const struct rbx_client_choices choices = {
		.peers_count = 1,
		.qps_count = 1,
		.send_depth_count = CLUSTER_MAX,
		.chain_max = 1,
		.buffers = RBX_CLIENT_REGISTERED,
		.polling = polling->rule,
		.complete_ns = COMPLETE_NS,
		.peer_bytes = PEER_BYTES,
	};
	const struct rbx_load load = {
		.threads_count = 1,
		.depth_count = cluster,
		.request_bytes = PAGE_BYTES,
		.think_ns = REQUEST_NS,
		.plug_count = 1,
		.burst_count = cluster,
		.gap_ns = cluster == 1 ? 0 : GAP_NS,
		.aim = next_page,
	};

	rbx_load_run(params, &choices, &load, MEASURED_NS, result);
}

/* The smallest cluster with which busy polling is at its best. */
static uint32_t large(const struct rbx_nic_params *params)
{
	struct rbx_load_result result;
	uint64_t best;
	uint32_t cluster = CLUSTER_MAX;

	run(params, &rbx_sim_pollings[0], cluster, &result);
	best = result.per_second;
	while (cluster > 2) {
		run(params, &rbx_sim_pollings[0], cluster / 2, &result);
		if (result.per_second * 100 < best * 98)
			break;
		cluster /= 2;
	}
	return cluster;
}

static void print(FILE *out, const char *name,
		  const struct rbx_load_result *result)
{
	uint64_t requests = RBX_MAX(result->requests, 1u);

	fprintf(out, "| %s | %llu | %llu | %llu | %llu |\n", name,
		(unsigned long long)result->per_second,
		(unsigned long long)result->cpu_percent,
		(unsigned long long)(result->interrupts * 1000 / requests),
		(unsigned long long)(result->context_switches * 1000 /
				     requests));
}

int rbx_figure_2(const struct rbx_nic_params *params, FILE *out)
{
	uint32_t most = large(params);
	const struct {
		const char *name;
		uint32_t cluster;
	} loads[] = {
		{ "Small", 1 },
		{ "Medium", (1 + most) / 2 },
		{ "Large", most },
	};

	for (int i = 0; i < 3; i++) {
		fprintf(out,
			"\n%s, %u at once:\n\n"
			"| polling | requests/s | CPU %% | interrupts of 1000 "
			"| context switches of 1000 |\n|---|---|---|---|---|\n",
			loads[i].name, loads[i].cluster);
		for (uint32_t k = 0; k < RBX_SIM_POLLINGS; k++) {
			struct rbx_load_result result;

			run(params, &rbx_sim_pollings[k], loads[i].cluster,
			    &result);
			print(out, rbx_sim_pollings[k].name, &result);
		}
	}
	return 0;
}
