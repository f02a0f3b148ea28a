/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fig2.c - figure 2 of the RDMAbox paper: ways of polling on three loads.
 *
 * One thread writes pages to one peer in clusters, and waits for each to end before the next,
 * which follows GAP_NS later. Small is one request at a time without a gap. Large is the
 * smallest cluster at which busy polling has its best throughput, within 2 %. Medium is
 * halfway between.
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

static void run(const struct rbx_setting *setting,
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

	rbx_load_run(setting, &choices, &load, MEASURED_NS, result);
}

/* The smallest cluster with which busy polling is at its best. */
static uint32_t large(const struct rbx_setting *setting)
{
	struct rbx_load_result result;
	uint64_t best;
	uint32_t cluster = CLUSTER_MAX;

	run(setting, &rbx_sim_pollings[0], cluster, &result);
	best = result.per_second;
	while (cluster > 2) {
		run(setting, &rbx_sim_pollings[0], cluster / 2, &result);
		if (result.per_second * 100 < best * 98)
			break;
		cluster /= 2;
	}
	return cluster;
}

static void measure(const struct rbx_setting *setting, uint32_t cluster,
		    struct rbx_report_table *table)
{
	for (uint32_t i = 0; i < RBX_SIM_POLLINGS; i++) {
		struct rbx_load_result result;
		int64_t requests;

		run(setting, &rbx_sim_pollings[i], cluster, &result);
		requests = (int64_t)RBX_MAX(result.requests, 1u);
		rbx_report_row(
			table,
			(int64_t[]){
				(int64_t)result.per_second,
				(int64_t)result.cpu_percent,
				(int64_t)result.interrupts * 1000 / requests,
				(int64_t)result.context_switches * 1000 /
					requests,
			},
			"%s", rbx_sim_pollings[i].name);
	}
}

void rbx_figure_2(const struct rbx_setting *setting, struct rbx_report *report)
{
	static const struct rbx_report_column columns[] = {
		{ "requests/s", 0 },
		{ "CPU %", 0 },
		{ "interrupts of 1000", 0 },
		{ "context switches of 1000", 0 },
	};
	uint32_t most = large(setting);
	const struct {
		const char *name;
		uint32_t cluster;
	} loads[] = {
		{ "Small", 1 },
		{ "Medium", (1 + most) / 2 },
		{ "Large", most },
	};

	for (int i = 0; i < 3; i++)
		measure(setting, loads[i].cluster,
			rbx_report_table(report, "polling", columns, 4,
					 "%s, %u at once", loads[i].name,
					 loads[i].cluster));
}
