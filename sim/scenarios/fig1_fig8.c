/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fig1_fig8.c - figures 1 and 8 of the RDMAbox paper: threads that write pages as
 * fast as they can, with and without admission control.
 *
 * The paper writes blocks through a kernel's block device, with one client and one server.
 * Here each thread keeps up to 256 pages of 4 KiB outstanding (a blk-mq queue of nbd). It
 * writes them in order through its own part of the remote memory, 16 at a time, as a plug of
 * the block layer submits them. It spends REQUEST_NS on each, the time of a request in the
 * block layer. One busy poller takes the completions. A thread begins with all 256, as fio's
 * jobs do: a NIC that has more than it can hold does not recover by itself.
 *
 * Figure 1: one queue pair, no batching, no window. Figure 8: four queue pairs; without a
 * window, with one, with one and hybrid batching, and with hybrid batching alone. The paper's
 * window is what was in flight at the peak, 7 MB. Here little is in flight before the peak
 * and all queues are full behind it, so there is no such number. The window is half of what
 * the NIC holds of work requests for pages.
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/load.h"

#define PAGE_BYTES 4096u
#define DEPTH 256u
#define PLUG 16u /* BLK_MAX_REQUEST_COUNT of Linux at the time */
#define THREADS_MAX 12u
#define SATURATED 8u /* threads that ask for more than the NIC gives */
#define REQUEST_NS 4500u /* assumed: of Linux's block layer and a driver's */
#define COMPLETE_NS 200u /* assumed: to end a request */
#define PART_BYTES (8u << 20) /* for each thread */
#define WINDOW_BYTES (2u << 20)
#define MEASURED_NS 60000000u /* after the same time in which everything fills */

static void next_page(struct rbx_load_thread *thread, struct rbx_target *target)
{
	target->direction = RBX_DIRECTION_WRITE;
	target->offset_bytes = (uint64_t)thread->number * PART_BYTES +
			       thread->at;
	thread->at = (thread->at + PAGE_BYTES) % PART_BYTES;
}

static const struct rbx_client_choices vanilla = {
	.peers_count = 1,
	.qps_count = 1,
	.send_depth_count = 4096, /* more than all threads have */
	.chain_max = 1,
	.buffers = RBX_CLIENT_REGISTERED,
	.polling = {
		.retry_max = RBX_POLL_RETRY_FOREVER,
		.batch_max = RBX_POLL_BATCH,
		.event_max = RBX_POLL_EVENT_UNBOUNDED,
	},
	.complete_ns = COMPLETE_NS,
	.peer_bytes = (uint64_t)THREADS_MAX * PART_BYTES,
};

static void run(const struct rbx_setting *setting,
		const struct rbx_client_choices *choices, uint32_t threads,
		struct rbx_load_result *result)
{
	const struct rbx_load load = {
		.threads_count = threads,
		.depth_count = DEPTH,
		.request_bytes = PAGE_BYTES,
		.think_ns = REQUEST_NS,
		.plug_count = PLUG,
		.begins_full = true,
		.aim = next_page,
	};

	rbx_load_run(setting, choices, &load, MEASURED_NS, result);
}

/* Reports a sweep; fills in the result of each number of threads. */
static void sweep(const struct rbx_setting *setting,
		  const struct rbx_client_choices *choices,
		  struct rbx_report *report, const char *what,
		  uint64_t *per_second)
{
	static const struct rbx_report_column columns[] = {
		{ "requests/s", 0 },	{ "in flight", 0 },
		{ "KiB posted", 0 },	{ "completion us", 1 },
		{ "work requests", 0 }, { "work misses %", 1 },
	};
	struct rbx_report_table *table =
		rbx_report_table(report, "threads", columns, 6, "%s", what);

	for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
		struct rbx_load_result result;

		run(setting, choices, threads, &result);
		rbx_report_row(table,
			       (int64_t[]){
				       (int64_t)result.per_second,
				       (int64_t)result.in_flight,
				       (int64_t)result.in_flight_bytes / 1024,
				       (int64_t)result.latency_ns[2] / 100,
				       (int64_t)result.work_requests,
				       (int64_t)result.work_misses,
			       },
			       "%u", threads);
		per_second[threads - 1] = result.per_second;
	}
}

/* The best before the first drop of more than 3 %. */
static uint32_t peak_of(const uint64_t *per_second)
{
	uint32_t peak = 0;

	for (uint32_t i = 1; i < THREADS_MAX; i++) {
		if (per_second[i] * 100 < per_second[peak] * 97)
			break;
		if (per_second[i] > per_second[peak])
			peak = i;
	}
	return peak;
}

/* The mean of those with so many threads and more. */
static uint64_t mean_from(const uint64_t *per_second, uint32_t first)
{
	uint64_t sum = 0;

	for (uint32_t i = first; i < THREADS_MAX; i++)
		sum += per_second[i];
	return sum / (THREADS_MAX - first);
}

static int64_t percent_more(uint64_t with, uint64_t without)
{
	return ((int64_t)with - (int64_t)without) * 100 / (int64_t)without;
}

static void compare(struct rbx_report_table *table, const char *what,
		    const uint64_t *with, const uint64_t *without)
{
	rbx_report_row(table,
		       (int64_t[]){
			       percent_more(with[peak_of(with)],
					    without[peak_of(without)]),
			       percent_more(mean_from(with, SATURATED - 1),
					    mean_from(without, SATURATED - 1)),
		       },
		       "%s", what);
}

void rbx_figure_1(const struct rbx_setting *setting, struct rbx_report *report)
{
	static const struct rbx_report_column columns[] = {
		{ "at the peak", 0 }, { "with most", 0 }
	};
	uint64_t per_second[THREADS_MAX];
	uint32_t peak;

	sweep(setting, &vanilla, report,
	      "One queue pair, a work request for each page, no window",
	      per_second);
	peak = peak_of(per_second);
	rbx_report_row(rbx_report_table(report, "", columns, 2, "The peak"),
		       (int64_t[]){ peak + 1, THREADS_MAX }, "threads");
	rbx_report_row(&report->tables[report->tables_count - 1],
		       (int64_t[]){ 100,
				    (int64_t)(per_second[THREADS_MAX - 1] *
					      100 / per_second[peak]) },
		       "requests/s, %% of the peak");
}

void rbx_figure_8(const struct rbx_setting *setting, struct rbx_report *report)
{
	static const struct rbx_report_column columns[] = {
		{ "at the peak, %", 0 },
		{ "mean from 8 threads on, %", 0 },
	};
	uint64_t none[THREADS_MAX], window[THREADS_MAX], hybrid[THREADS_MAX],
		both[THREADS_MAX];
	struct rbx_client_choices choices = vanilla;
	struct rbx_report_table *table;

	choices.qps_count = 4;
	sweep(setting, &choices, report, "Four queue pairs, no window", none);
	choices.window_bytes = WINDOW_BYTES;
	sweep(setting, &choices, report, "A window of 2 MiB", window);
	choices.merge = true;
	choices.chain_max = RBX_CHAIN_MAX;
	sweep(setting, &choices, report, "A window, merging and chaining", both);
	choices.window_bytes = 0;
	sweep(setting, &choices, report, "Merging and chaining, no window",
	      hybrid);
	table = rbx_report_table(report, "", columns, 2,
				 "More than without a window");
	compare(table, "window", window, none);
	compare(table, "window, merging and chaining", both, none);
	compare(table, "merging and chaining", hybrid, none);
}
