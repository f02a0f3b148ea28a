/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * n_to_one.c - figures of the paper on communication patterns: responses of one thread to
 * many, each with a connection of its own (figures 5 and 7) or with a dispatcher for those of
 * a machine (figure 6), and one to one (figure 3).
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/rpc.h"

#define MEASURED_NS 400000u

static const uint32_t requesters[] = { 1, 8, 16, 24, 32, 40, 128 };
#define REQUESTERS (sizeof(requesters) / sizeof(requesters[0]))

static const struct {
	const char *name;
	bool request_by_write, response_by_write;
} designs[] = {
	{ "WriteWrite", true, true },
	{ "WriteSend", true, false },
	{ "SendWrite", false, true },
	{ "SendSend", false, false },
};

static void sweep(const struct rbx_setting *setting, struct rbx_report *report,
		  uint32_t response_bytes, bool dispatched)
{
	const char *by = dispatched ? ", by dispatchers" : "";
	uint32_t alone = setting->nodes_count * RBX_RPC_MACHINE_THREADS;
	const uint32_t *counts = alone ? &alone : requesters;
	uint32_t count = alone ? 1 : REQUESTERS;
	struct rbx_report_column columns[REQUESTERS] = { 0 };
	struct rbx_report_table *rates, *times;

	for (uint32_t i = 0; i < count; i++)
		snprintf(columns[i].name, sizeof(columns[i].name), "%u",
			 counts[i]);
	rates = rbx_report_table(report, "requesters", columns, count,
				 "Responses of %u bytes%s, MB/s", response_bytes,
				 by);
	times = rbx_report_table(report, "requesters", columns, count,
				 "Responses of %u bytes%s, ns from request to response",
				 response_bytes, by);
	for (int design = 0; design < 4; design++) {
		int64_t rate[REQUESTERS], time[REQUESTERS];

		for (uint32_t i = 0; i < count; i++) {
			const struct rbx_rpc rpc = {
				.request_by_write =
					designs[design].request_by_write,
				.response_by_write =
					designs[design].response_by_write,
				.dispatched = dispatched,
				.requesters_count = counts[i],
				.response_bytes = response_bytes,
				.measured_ns = MEASURED_NS,
			};
			struct rbx_rpc_result result;

			rbx_rpc_run(setting, &rpc, &result);
			rate[i] = (int64_t)result.bytes_per_second / 1000000;
			time[i] = (int64_t)result.latency_ns;
		}
		rbx_report_row(rates, rate, "%s", designs[design].name);
		rbx_report_row(times, time, "%s", designs[design].name);
	}
}

void rbx_figure_n_to_one(const struct rbx_setting *setting,
			 struct rbx_report *report)
{
	static const uint32_t sizes[] = { 64, 256, 4096, 16384 };

	for (uint32_t i = 0; i < 8; i++)
		sweep(setting, report, sizes[i % 4], i >= 4);
}
