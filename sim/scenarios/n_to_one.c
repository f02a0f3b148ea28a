/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * n_to_one.c - the paper on communication patterns: responses of one thread to
 * many, each with a connection of its own (figures 5 and 7), and one to one
 * (figure 3). Its dispatchers (figure 6) are not modelled.
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

static void print_head(FILE *out, const char *what, uint32_t response_bytes)
{
	fprintf(out, "\nResponses of %u bytes, %s:\n\n| requesters |",
		response_bytes, what);
	for (size_t i = 0; i < REQUESTERS; i++)
		fprintf(out, " %u |", requesters[i]);
	fprintf(out, "\n|---|---|---|---|---|---|---|---|\n");
}

static void sweep(const struct rbx_nic_params *params, FILE *out,
		  uint32_t response_bytes)
{
	struct rbx_rpc_result results[4][REQUESTERS];

	print_head(out, "MB/s", response_bytes);
	for (int design = 0; design < 4; design++) {
		fprintf(out, "| %s |", designs[design].name);
		for (size_t i = 0; i < REQUESTERS; i++) {
			const struct rbx_rpc rpc = {
				.request_by_write =
					designs[design].request_by_write,
				.response_by_write =
					designs[design].response_by_write,
				.requesters_count = requesters[i],
				.response_bytes = response_bytes,
				.measured_ns = MEASURED_NS,
			};

			rbx_rpc_run(params, &rpc, &results[design][i]);
			fprintf(out, " %llu |",
				(unsigned long long)results[design][i]
						.bytes_per_second /
					1000000);
		}
		fprintf(out, "\n");
	}
	print_head(out, "ns from request to response", response_bytes);
	for (int design = 0; design < 4; design++) {
		fprintf(out, "| %s |", designs[design].name);
		for (size_t i = 0; i < REQUESTERS; i++)
			fprintf(out, " %llu |",
				(unsigned long long)results[design][i]
					.latency_ns);
		fprintf(out, "\n");
	}
}

int rbx_figure_n_to_one(const struct rbx_nic_params *params, FILE *out)
{
	static const uint32_t sizes[] = { 64, 256, 4096, 16384 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		sweep(params, out, sizes[i]);
	return 0;
}
