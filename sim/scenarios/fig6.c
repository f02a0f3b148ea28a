/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fig6.c - figure 6 and table I of the RDMAbox paper: ways of batching under paging.
 *
 * The paper runs VoltDB with most of its memory paged out: ETC, 95 % reads, and SYS, 75 %,
 * both skewed. Here threads miss pages. Most misses are single pages anywhere; one in
 * ALONE_OF brings its RUN_PAGES neighbours, as read-ahead and reclaim do. This frequency is
 * assumed, and chosen so that about as much can be merged as in table I. The results of the
 * ways of batching are not assumed. There are many threads with short think times, so the NIC
 * is the bottleneck.
 *
 * preMR copies through staging memory; dynMR maps each buffer.
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/load.h"

#define PAGE_BYTES 4096u
#define THREADS 14u
#define DEPTH 128u
#define THINK_NS 2000u /* assumed: of a thread, for each miss */
#define HANDLE_NS 150u /* assumed: to end a page's I/O */
#define ALONE_OF 40u /* misses, to one with neighbours */
#define RUN_PAGES 7u /* page_cluster of Linux: 8 in all */
#define QUEUE_PAIRS 4u
#define PEER_BYTES (256u << 20)
#define MEASURED_NS 20000000u

static uint32_t reads_of_100;

/* Skewed: the product of two draws is small more often than not. */
static void miss(struct rbx_load_thread *thread, struct rbx_target *target)
{
	struct rbx_random *random = &thread->random;
	uint32_t pages = PEER_BYTES / PAGE_BYTES - RUN_PAGES;
	uint32_t page =
		rbx_random_below(random, rbx_random_below(random, pages) + 1);

	target->direction = rbx_random_below(random, 100) < reads_of_100 ?
				    RBX_DIRECTION_READ :
				    RBX_DIRECTION_WRITE;
	target->offset_bytes = (uint64_t)page * PAGE_BYTES;
	if (rbx_random_below(random, ALONE_OF) == 0)
		target->run_count = RUN_PAGES;
}

static const struct {
	const char *name;
	bool merge;
	uint32_t chain_max;
} modes[] = {
	{ "single", false, 1 },
	{ "doorbell", false, RBX_CHAIN_MAX },
	{ "merge", true, 1 },
	{ "hybrid", true, RBX_CHAIN_MAX },
};

static void run(const struct rbx_setting *setting, uint32_t mode,
		enum rbx_client_buffers buffers, struct rbx_load_result *result)
{
	const struct rbx_client_choices choices = {
		.peers_count = 1,
		.qps_count = QUEUE_PAIRS,
		.pollers_count = 1,
		.send_depth_count = 4096,
		.merge = modes[mode].merge,
		.chain_max = modes[mode].chain_max,
		.buffers = buffers,
		.polling = {
			.retry_max = RBX_POLL_RETRY_FOREVER,
			.batch_max = RBX_POLL_BATCH,
			.event_max = RBX_POLL_EVENT_UNBOUNDED,
		},
		.complete_ns = HANDLE_NS,
		.peer_bytes = PEER_BYTES,
	};
	const struct rbx_load load = {
		.threads_count = THREADS,
		.depth_count = DEPTH,
		.request_bytes = PAGE_BYTES,
		.think_ns = THINK_NS,
		.plug_count = 1,
		.run_count = RUN_PAGES,
		.aim = miss,
	};

	rbx_load_run(setting, &choices, &load, MEASURED_NS, result);
}

static void report_mode(struct rbx_report_table *table, const char *mode,
			const char *buffers,
			const struct rbx_load_result *result, uint64_t single)
{
	int64_t posted = (int64_t)RBX_MAX(result->posted, 1u);

	rbx_report_row(table,
		       (int64_t[]){
			       (int64_t)result->per_second,
			       (int64_t)(result->per_second * 100 / single) -
				       100,
			       (int64_t)result->work_requests * 1000 / posted,
			       (int64_t)result->doorbells * 1000 / posted,
			       (int64_t)result->latency_ns[1] / 100,
		       },
		       "%s %s", mode, buffers);
}

static void workload(const struct rbx_setting *setting,
		     struct rbx_report *report, const char *name,
		     uint32_t reads)
{
	static const struct {
		const char *name;
		enum rbx_client_buffers buffers;
	} memories[] = {
		{ "preMR", RBX_CLIENT_COPIED },
		{ "dynMR", RBX_CLIENT_MAPPED },
	};
	static const struct rbx_report_column columns[] = {
		{ "requests/s", 0 },
		{ "over single, %", 0 },
		{ "work requests of 1000", 0 },
		{ "doorbells of 1000", 0 },
		{ "p99 us", 1 },
	};
	struct rbx_report_table *table =
		rbx_report_table(report, "batching", columns, 5,
				 "%s, %u %% reads", name, reads);

	reads_of_100 = reads;
	for (int memory = 0; memory < 2; memory++) {
		uint64_t single = 1;

		for (uint32_t mode = 0; mode < 4; mode++) {
			struct rbx_load_result result;

			run(setting, mode, memories[memory].buffers, &result);
			if (mode == 0)
				single = RBX_MAX(result.per_second, 1u);
			report_mode(table, modes[mode].name,
				    memories[memory].name, &result, single);
		}
	}
}

void rbx_figure_6(const struct rbx_setting *setting, struct rbx_report *report)
{
	workload(setting, report, "ETC", 95);
	workload(setting, report, "SYS", 75);
}
