/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The result of a bench, as a table for people and as JSON for programs: the same numbers
 * with the same names.
 *
 * requests, errors and verify_errors are counted by the bench itself. Latency and
 * everything below a request are the library's numbers, for the measured time only.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench.h"

/* The most memory that the process had. Not ru_maxrss: it starts with that of the program
 * that started this one. */
static uint64_t memory_bytes_max(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	uint64_t kib = 0;
	char line[256];

	if (!status)
		return 0;
	while (!kib && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %" SCNu64, &kib);
	fclose(status);
	return kib * 1024;
}

static double per_second(const struct bench_result *result, double amount)
{
	return result->elapsed_s > 0 ? amount / result->elapsed_s : 0;
}

/* The fabric that was asked for, or the one that "auto" chose. */
static json_t *fabric_taken(const struct bench_report *report)
{
	const char *asked = report->options->library.fabric;

	if (strcmp(asked, "auto"))
		return json_string(asked);
	return json_stringn(report->using, strcspn(report->using, " ,:("));
}

struct latency {
	double p50_us;
	double p99_us;
	double p999_us;
	double max_us;
};

static struct latency own_latency(const struct bench_latency *own)
{
	return (struct latency){
		bench_latency_quantile_ns(own, 500) / 1e3,
		bench_latency_quantile_ns(own, 990) / 1e3,
		bench_latency_quantile_ns(own, 999) / 1e3,
		own->max_ns / 1e3,
	};
}

static bool is_open(const struct bench_report *report)
{
	return report->options->timing.kind == BENCH_OPEN;
}

/* Reads and writes together; valid until the next call. */
static struct bench_latency *all_ops(const struct bench_report *report)
{
	static struct bench_latency all;

	bench_latency_clear(&all);
	for (int op = 0; op < BENCH_OPS; op++)
		bench_latency_merge(&all, &report->result->latency_of_op[op]);
	return &all;
}

/* Latency of all requests: the library's, but the bench's own in an open load. */
static struct latency latency_of(const struct bench_report *report)
{
	const struct rbx_stats *stats = report->stats;

	if (is_open(report))
		return own_latency(all_ops(report));
	return (struct latency){
		stats->latency_p50_ns / 1e3,
		stats->latency_p99_ns / 1e3,
		stats->latency_p999_ns / 1e3,
		stats->latency_max_ns / 1e3,
	};
}

static bool is_mix(const struct bench_report *report)
{
	return report->options->read_percent > 0 &&
	       report->options->read_percent < 100;
}

static json_t *latency_json(struct latency latency)
{
	return json_pack("{sf sf sf sf}", "p50", latency.p50_us, "p99",
			 latency.p99_us, "p999", latency.p999_us, "max",
			 latency.max_us);
}

static double poller_percent(const struct bench_report *report)
{
	return per_second(report->result, report->stats->poller_cpu_ns / 1e7);
}

static void set_options(json_t *json, const struct bench_report *report)
{
	const struct bench_options *options = report->options;

	json_object_set_new(json, "fabric", fabric_taken(report));
	json_object_set_new(json, "mode", json_string(options->library.mode));
	json_object_set_new(json, "polling",
			    json_string(options->library.polling));
	json_object_set_new(json, "op", json_string(options->op));
	json_object_set_new(json, "pattern", json_string(options->pattern));
	json_object_set_new(json, "block_bytes",
			    json_integer(options->block_bytes));
	json_object_set_new(json, "depth", json_integer(options->depth));
	json_object_set_new(json, "threads", json_integer(options->threads));
	json_object_set_new(json, "load", json_string(options->load));
	json_object_set_new(json, "urgent_reads",
			    json_boolean(options->urgent_reads));
}

static void set_result(json_t *json, const struct bench_report *report)
{
	const struct bench_result *result = report->result;
	const struct bench_latency *of_op = result->latency_of_op;
	double bytes = (double)result->requests * report->options->block_bytes;

	json_object_set_new(json, "runtime_s", json_real(result->elapsed_s));
	json_object_set_new(json, "requests", json_integer(result->requests));
	json_object_set_new(json, "iops",
			    json_real(per_second(result, result->requests)));
	json_object_set_new(json, "mb_per_s",
			    json_real(per_second(result, bytes / 1e6)));
	json_object_set_new(json, "lat_us", latency_json(latency_of(report)));
	if (!is_mix(report))
		return;
	json_object_set_new(json, "read_lat_us",
			    latency_json(own_latency(&of_op[RBX_READ])));
	json_object_set_new(json, "write_lat_us",
			    latency_json(own_latency(&of_op[RBX_WRITE])));
}

/* The numbers of the library in the documented order, then all others. */
static void set_stats(json_t *json, const struct bench_report *report)
{
	const struct rbx_stats *stats = report->stats;

#define SET(name, what)                                                       \
	if (!json_object_get(json, #name))                                    \
		json_object_set_new(json, #name, json_integer(stats->name));
	SET(work_requests, )
	SET(doorbells, )
	SET(merged_requests, )
	SET(completions, )
	SET(polls, )
	SET(empty_polls, )
	SET(arms, )
	SET(wakeups, )
	SET(context_switches, )
	SET(window_waits, )
	SET(inflight_bytes_max, )
	SET(failovers, )
	json_object_set_new(json, "errors",
			    json_integer(report->result->errors));
	json_object_set_new(json, "verify_errors",
			    json_integer(report->verify_errors));
	json_object_set_new(json, "cpu_percent",
			    json_real(per_second(report->result,
						 report->result->cpu_s *
							 100)));
	json_object_set_new(json, "poller_cpu_percent",
			    json_real(poller_percent(report)));
	RBX_STATS(SET)
#undef SET
}

static void set_extras(json_t *json, const struct bench_report *report)
{
	const struct bench_options *options = report->options;

	json_object_set_new(json, "using", json_string(report->using));
	json_object_set_new(json, "version", json_string(RBX_VERSION));
	json_object_set_new(json, "servers", json_string(options->pool));
	json_object_set_new(json, "replicas",
			    json_integer(options->volume.replicas));
	json_object_set_new(json, "volume_bytes",
			    json_integer(options->volume_bytes));
	if (*options->volume_name)
		json_object_set_new(json, "volume_name",
				    json_string(options->volume_name));
	json_object_set_new(json, "window",
			    json_string(options->library.window));
	json_object_set_new(json, "overload",
			    json_string(options->library.overload));
	json_object_set_new(json, "fragment_bytes",
			    json_integer(options->library.fragment_bytes));
	json_object_set_new(json, "queue_pairs",
			    json_integer(options->library.queue_pairs));
	json_object_set_new(json, "buffers",
			    json_string(options->buffers));
	json_object_set_new(json, "checksums",
			    json_boolean(options->volume.checksums));
	json_object_set_new(json, "seed", json_integer(options->seed));
	json_object_set_new(json, "memory_bytes_max",
			    json_integer(memory_bytes_max()));
	json_object_set_new(json, "lat_sample",
			    bench_histogram_json(all_ops(report)));
}

json_t *bench_report_json(const struct bench_report *report)
{
	json_t *json = json_object();

	set_options(json, report);
	set_result(json, report);
	set_stats(json, report);
	set_extras(json, report);
	return json;
}

static void print_title(const struct bench_report *report)
{
	const struct bench_options *options = report->options;
	char block[32], volume[32];

	printf("%s %s, %s blocks in %s, %u replica%s, depth %u x %u thread%s\n",
	       options->op, options->pattern,
	       cli_size_print(options->block_bytes, block, sizeof(block)),
	       cli_size_print(options->volume_bytes, volume, sizeof(volume)),
	       options->volume.replicas,
	       options->volume.replicas == 1 ? "" : "s", options->depth,
	       options->threads, options->threads == 1 ? "" : "s");
	printf("using %s\nload %s%s, mode %s, polling %s, window %s\n\n",
	       report->using, options->load,
	       options->urgent_reads ? ", reads urgent" : "",
	       options->library.mode, options->library.polling,
	       options->library.window);
}

static void print_latency(const char *of, struct latency latency)
{
	printf("  %-21s %14.1f  p50\n"
	       "                        %14.1f  p99\n"
	       "                        %14.1f  p99.9\n"
	       "                        %14.1f  max\n",
	       of, latency.p50_us, latency.p99_us, latency.p999_us,
	       latency.max_us);
}

static void print_latencies(const struct bench_report *report)
{
	const struct bench_latency *of_op = report->result->latency_of_op;

	print_latency("latency us", latency_of(report));
	if (!is_mix(report))
		return;
	print_latency("  of reads", own_latency(&of_op[RBX_READ]));
	print_latency("  of writes", own_latency(&of_op[RBX_WRITE]));
}

static void print_histogram(const struct bench_report *report)
{
	struct bench_latency *all = all_ops(report);

	printf("\n  latency of %s\n", is_open(report) ? "all requests" :
						      "a sample of the requests");
	bench_histogram_print(all);
}

static void print_rates(const struct bench_report *report)
{
	const struct bench_result *result = report->result;
	double bytes = (double)result->requests * report->options->block_bytes;

	printf("  requests              %14" PRIu64 "  in %.2f s\n",
	       result->requests, result->elapsed_s);
	printf("  requests/s            %14.0f\n",
	       per_second(result, result->requests));
	printf("  MB/s                  %14.1f\n", per_second(result, bytes / 1e6));
	print_latencies(report);
	printf("  CPU %%                 %14.1f\n"
	       "  of it pollers         %14.1f\n",
	       per_second(result, result->cpu_s * 100), poller_percent(report));
}

static void print_stats(const struct bench_report *report)
{
	const struct rbx_stats *stats = report->stats;

#define PRINT(name, what)                                                     \
	if (strcmp(#name, "requests") && strcmp(#name, "errors"))             \
		printf("  %-21s %14" PRIu64 "  %s\n", #name, stats->name, what);
	RBX_STATS(PRINT)
#undef PRINT
	printf("  %-21s %14" PRIu64 "  requests that failed\n", "errors",
	       report->result->errors);
	if (report->options->verify)
		printf("  %-21s %14" PRIu64 "  blocks that were wrong\n",
		       "verify_errors", report->verify_errors);
}

void bench_report_print(const struct bench_report *report)
{
	print_title(report);
	print_rates(report);
	print_stats(report);
	print_histogram(report);
}
