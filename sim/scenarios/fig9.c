/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fig9.c - figure 9 of the RDMAbox paper: ways of polling, and many peers.
 *
 * An application that needs its cores: THREADS threads compute for THINK_NS and then ask for
 * some page, three of four times a read (SYS of the paper). Each peer has one queue pair and
 * one completion queue with a poller of its own, except for shared:M. The poller handles a
 * completed request to its end (run to completion), which costs HANDLE_NS. Application and
 * pollers share the cores.
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/load.h"
#include "sim/scenarios/polling.h"

#define PAGE_BYTES 4096u
#define THINK_NS 20000u /* assumed: of a transaction, for each page it misses */
#define HANDLE_NS 3000u /* assumed: to end a page's I/O and hand the page over */
#define OUTSTANDING 4u /* of each thread */
#define READS_OF_4 3u
#define PEER_BYTES (16u << 20)
#define MEASURED_NS 40000000u

static const uint32_t sweep[] = { 1, 2, 4, 8, 16, 32, 64 };
#define SWEEP (sizeof(sweep) / sizeof(sweep[0]))

static void anywhere(struct rbx_load_thread *thread, struct rbx_target *target)
{
	struct rbx_random *random = &thread->random;

	target->peer = rbx_random_below(random,
					thread->client->choices.peers_count);
	target->direction = rbx_random_below(random, 4) < READS_OF_4 ?
				    RBX_DIRECTION_READ :
				    RBX_DIRECTION_WRITE;
	target->offset_bytes =
		(uint64_t)rbx_random_below(random, PEER_BYTES / PAGE_BYTES) *
		PAGE_BYTES;
}

static void run(const struct rbx_setting *setting,
		const struct rbx_sim_polling *polling, uint32_t peers_count,
		struct rbx_load_result *result)
{
	const struct rbx_client_choices choices = {
		.peers_count = peers_count,
		.qps_count = 1,
		.pollers_count = RBX_MIN(polling->shared_count, peers_count),
		.send_depth_count = RBX_SEND_DEPTH,
		.chain_max = 1,
		.buffers = RBX_CLIENT_COPIED,
		.polling = polling->rule,
		.complete_ns = HANDLE_NS,
		.peer_bytes = PEER_BYTES,
	};
	const struct rbx_load load = {
		.threads_count = setting->params->cores * 3 / 4,
		.depth_count = OUTSTANDING,
		.request_bytes = PAGE_BYTES,
		.think_ns = THINK_NS,
		.plug_count = 1,
		.aim = anywhere,
	};

	rbx_load_run(setting, &choices, &load, MEASURED_NS, result);
}

void rbx_figure_9(const struct rbx_setting *setting, struct rbx_report *report)
{
	const uint32_t *peers = setting->nodes_count ? &setting->nodes_count :
						       sweep;
	uint32_t count = setting->nodes_count ? 1 : SWEEP;
	struct rbx_report_column columns[SWEEP] = { 0 };
	struct rbx_report_table *rates, *cpus;

	for (uint32_t i = 0; i < count; i++)
		snprintf(columns[i].name, sizeof(columns[i].name), "%u",
			 peers[i]);
	rates = rbx_report_table(report, "polling", columns, count,
				 "Requests/s with so many peers");
	cpus = rbx_report_table(report, "polling", columns, count,
				"CPU %%, of 100 for each core");
	for (uint32_t k = 0; k < RBX_SIM_POLLINGS_ALL; k++) {
		int64_t rate[SWEEP], cpu[SWEEP];

		for (uint32_t i = 0; i < count; i++) {
			struct rbx_load_result result;

			run(setting, &rbx_sim_pollings[k], peers[i], &result);
			rate[i] = (int64_t)result.per_second;
			cpu[i] = (int64_t)result.cpu_percent;
		}
		rbx_report_row(rates, rate, "%s", rbx_sim_pollings[k].name);
		rbx_report_row(cpus, cpu, "%s", rbx_sim_pollings[k].name);
	}
}
