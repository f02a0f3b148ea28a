/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fig1_fig8.c - figures 1 and 8 of the RDMAbox paper: threads that write pages as
 * fast as they can, with and without admission control.
 *
 * The paper writes blocks through a kernel's block device, one client and one
 * server. Here each thread keeps up to 256 pages of 4 KiB outstanding (a blk-mq
 * queue of nbd), writes them in order through its own part of the remote memory, 16
 * at a time as a plug of the block layer hands them over, and
 * spends REQUEST_NS on each, what a request takes to come down through the block
 * layer. One busy poller takes the completions.
 *
 * Figure 1: one queue pair, no batching, no window. Figure 8: four queue pairs,
 * without a window, with one, with one and hybrid batching, and with that alone. The paper's window
 * is what was in flight at the peak, 7 MB. Here little is in flight before the peak
 * and all queues are full behind it, so that there is no such number; the window is
 * half of what the NIC holds of work requests for pages.
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
#define PART_BYTES (8u << 20) /* of each thread */
#define WINDOW_BYTES (2u << 20)
#define MEASURED_NS 60000000u /* as many before: until all is full that fills */

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

static void run(const struct rbx_nic_params *params,
		const struct rbx_client_choices *choices, uint32_t threads,
		struct rbx_load_result *result)
{
	const struct rbx_load load = {
		.threads_count = threads,
		.depth_count = DEPTH,
		.request_bytes = PAGE_BYTES,
		.think_ns = REQUEST_NS,
		.plug_count = PLUG,
		.aim = next_page,
	};

	rbx_load_run(params, choices, &load, MEASURED_NS, result);
}

static void print(FILE *out, uint32_t threads,
		  const struct rbx_load_result *result)
{
	fprintf(out,
		"| %u | %llu | %llu | %llu | %llu.%llu | %llu | %llu.%llu |\n",
		threads, (unsigned long long)result->per_second,
		(unsigned long long)result->in_flight,
		(unsigned long long)result->in_flight_bytes / 1024,
		(unsigned long long)result->latency_ns[2] / 1000,
		(unsigned long long)result->latency_ns[2] / 100 % 10,
		(unsigned long long)result->work_requests,
		(unsigned long long)result->work_misses / 10,
		(unsigned long long)result->work_misses % 10);
}

static void print_head(FILE *out, const char *what)
{
	fprintf(out,
		"\n%s\n\n"
		"| threads | requests/s | in flight | KiB posted | "
		"completion us | work requests | work misses %% |\n"
		"|---|---|---|---|---|---|---|\n",
		what);
}

/* Prints a sweep; fills in what each number of threads got. */
static void sweep(const struct rbx_nic_params *params,
		  const struct rbx_client_choices *choices, FILE *out,
		  const char *what, uint64_t *per_second)
{
	struct rbx_load_result result;

	print_head(out, what);
	for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
		run(params, choices, threads, &result);
		print(out, threads, &result);
		per_second[threads - 1] = result.per_second;
	}
}

static uint32_t peak_of(const uint64_t *per_second)
{
	uint32_t peak = 0;

	for (uint32_t i = 1; i < THREADS_MAX; i++) {
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

static void compare(FILE *out, const char *what, const uint64_t *with,
		    const uint64_t *without)
{
	uint64_t most = with[peak_of(with)], before = without[peak_of(without)];
	uint64_t beyond = mean_from(with, SATURATED - 1);
	uint64_t beyond_before = mean_from(without, SATURATED - 1);

	fprintf(out, "| %s | %+lld %% | %+lld %% |\n", what,
		((long long)most - (long long)before) * 100 / (long long)before,
		((long long)beyond - (long long)beyond_before) * 100 /
			(long long)beyond_before);
}

int rbx_figure_1(const struct rbx_nic_params *params, FILE *out)
{
	uint64_t per_second[THREADS_MAX];
	uint32_t peak;

	sweep(params, &vanilla, out,
	      "One queue pair, a work request for each page, no window:",
	      per_second);
	peak = peak_of(per_second);
	fprintf(out,
		"\nThe peak is at %u threads; with %u there are %llu %% of it.\n",
		peak + 1, THREADS_MAX,
		(unsigned long long)(per_second[THREADS_MAX - 1] * 100 /
				     per_second[peak]));
	return 0;
}

int rbx_figure_8(const struct rbx_nic_params *params, FILE *out)
{
	uint64_t none[THREADS_MAX], window[THREADS_MAX], hybrid[THREADS_MAX],
		both[THREADS_MAX];
	struct rbx_client_choices choices = vanilla;

	choices.qps_count = 4;
	sweep(params, &choices, out, "Four queue pairs, no window:", none);
	choices.window_bytes = WINDOW_BYTES;
	sweep(params, &choices, out, "A window of 2 MiB:", window);
	choices.merge = true;
	choices.chain_max = RBX_CHAIN_MAX;
	sweep(params, &choices, out, "A window, merging and chaining:", both);
	choices.window_bytes = 0;
	sweep(params, &choices, out, "Merging and chaining, no window:",
	      hybrid);
	fprintf(out, "\n| against no window | at the peak | from %u threads on "
		     "|\n|---|---|---|\n",
		SATURATED);
	compare(out, "window", window, none);
	compare(out, "window, merging and chaining", both, none);
	compare(out, "merging and chaining", hybrid, none);
	return 0;
}
