/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox bench: measures reads and writes of remote memory.
 *
 * Options, then in order: open the device, borrow the volume, fill it once (so
 * that reads find data and writes find memory that exists), warm up, reset the
 * numbers, measure, with --verify read the whole volume back and compare it,
 * report, give everything back.
 *
 * What is wrong before the measurement is one line and exit code 2. A request
 * that fails or data that is wrong while it runs is counted, the first of each
 * is told, and the exit code is 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define SWEEP_BYTES (256 << 10) /* of a request that fills or checks */
#define SWEEP_DEPTH 16
#define REQUESTS_MAX 65536 /* what the library allows */

/* Nothing completes for this long: the library hangs. Above what a request may
 * take that goes from one dead replica to the next. */
#define STALL_LIMIT_MS(peer_timeout_ms) (4 * (peer_timeout_ms) + 10000)

struct bench {
	struct bench_options *options;
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct bench_pattern *pattern;
	struct bench_verify *verify;
	struct bench_load *sweep_load;
	struct bench_load *load;
	struct bench_events events;
	struct bench_progress progress;
	uint64_t blocks;
};

static struct bench_options bench_options = {
	.op = "read",
	.read_percent = 100,
	.pattern = "rand",
	.block_bytes = 4096,
	.depth = 32,
	.threads = 1,
	.load = "closed",
	.runtime_s = 5,
	.warmup_s = 0.5,
	.buffers = "region",
	.seed = 1,
};

static int set_op(const struct cli_option *option, const char *text,
		  char *reason, size_t reason_bytes)
{
	struct cli_option percent = { .field = &bench_options.read_percent,
				      .max = 100 };

	if (!strcmp(text, "read"))
		bench_options.read_percent = 100;
	else if (!strcmp(text, "write"))
		bench_options.read_percent = 0;
	else if (strncmp(text, "mix:", 4) ||
		 cli_set_number(&percent, text + 4, reason, reason_bytes)) {
		snprintf(reason, reason_bytes, "give read, write, or mix:PCT "
			 "with 0 to 100 percent of reads");
		return -EINVAL;
	}
	return cli_set_text(option, text, reason, reason_bytes);
}

static int set_load(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes)
{
	int err = bench_timing_parse(text, &bench_options.timing, reason,
				     reason_bytes);

	return err ? err : cli_set_text(option, text, reason, reason_bytes);
}

static int set_pollers(const struct cli_option *option, const char *text,
		       char *reason, size_t reason_bytes)
{
	bench_options.library.pollers = RBX_POLLERS_PEER;
	if (!strcmp(text, "peer"))
		return 0;
	bench_options.library.pollers = RBX_POLLERS_QUEUE_PAIR;
	return strcmp(text, "queue_pair") ?
		       cli_set_number(option, text, reason, reason_bytes) :
		       0;
}

static int set_pattern(const struct cli_option *option, const char *text,
		       char *reason, size_t reason_bytes)
{
	bool is_trace = !strncmp(text, "trace:", 6) && text[6];

	if (is_trace || !strcmp(text, "seq") || !strcmp(text, "rand") ||
	    !strcmp(text, "zipf"))
		return cli_set_text(option, text, reason, reason_bytes);
	snprintf(reason, reason_bytes, "give seq, rand, zipf or trace:FILE");
	return -EINVAL;
}

static int set_window(const struct cli_option *option, const char *text,
		      char *reason, size_t reason_bytes)
{
	struct rbx_options options;
	char key_value[64];

	rbx_options_defaults(&options);
	snprintf(key_value, sizeof(key_value), "window=%s", text);
	if (!rbx_options_set(&options, key_value))
		return cli_set_text(option, text, reason, reason_bytes);
	snprintf(reason, reason_bytes, "give off, aimd, delay, auto, or a size "
		 "of one fragment to 512G");
	return -EINVAL;
}

static const struct cli_option options[] = {
	{ "servers", "A:P,B:P", "the memory servers", cli_set_text,
	  bench_options.servers, .max = sizeof(bench_options.servers) },
	{ "replicas", "R", "copies of the data, 1 to 3", cli_set_number,
	  &bench_options.volume.replicas, .min = 1, .max = 3 },
	{ "volume", "SIZE", "bytes to borrow, a multiple of 4K", cli_set_size,
	  &bench_options.volume_bytes, .min = 4096, .max = 1ull << 46 },
	{ "op", "read|write|mix:PCT", "PCT percent are reads", set_op,
	  bench_options.op, .max = sizeof(bench_options.op) },
	{ "pattern", "seq|rand|zipf|trace:FILE",
	  "seq: each thread walks its own part\n"
	  "zipf: theta 0.99, hot blocks scattered\n"
	  "trace: lines START COUNT 0 N of 4 KiB pages",
	  set_pattern, bench_options.pattern,
	  .max = sizeof(bench_options.pattern) },
	{ "block", "SIZE", "bytes of a request, a multiple of 64",
	  cli_set_size_32, &bench_options.block_bytes,
	  .min = BENCH_BLOCK_BYTES_MIN, .max = BENCH_BLOCK_BYTES_MAX },
	{ "depth", "N", "requests a thread keeps outstanding", cli_set_number,
	  &bench_options.depth, .min = 1, .max = BENCH_DEPTH_MAX },
	{ "threads", "N", "threads that submit", cli_set_number,
	  &bench_options.threads, .min = 1, .max = BENCH_THREADS_MAX },
	{ "load", "closed|open:RATE|burst:SIZE:GAP",
	  "closed: DEPTH outstanding all the time\n"
	  "open: RATE requests/s, Poisson, at most DEPTH outstanding\n"
	  "burst: SIZE at once; when all are done and after GAP the next",
	  set_load, bench_options.load, .max = sizeof(bench_options.load) },
	{ "mode", "M",
	  "single: a work request for each request\n"
	  "doorbell: chained, not merged\n"
	  "merge: merged, not chained\n"
	  "hybrid: both",
	  cli_set_word, bench_options.library.mode,
	  .max = sizeof(bench_options.library.mode),
	  .words = "single|doorbell|merge|hybrid" },
	{ "window", "off|SIZE|aimd|delay|auto",
	  "bytes in flight at most\n"
	  "aimd, delay: by the round trips\n"
	  "auto: the least that gives full throughput",
	  set_window, bench_options.library.window,
	  .max = sizeof(bench_options.library.window) },
	{ "fragment", "SIZE", "longer requests are split", cli_set_size_32,
	  &bench_options.library.fragment_bytes, .min = 4096,
	  .max = 1 << 20 },
	{ "runtime", "S", "seconds to measure", cli_set_seconds,
	  &bench_options.runtime_s, .min = 0, .max = 1000000 },
	{ "warmup", "S", "seconds before that", cli_set_seconds,
	  &bench_options.warmup_s, .min = 0, .max = 1000000 },
	{ "verify", NULL, "check every byte that is read", cli_set_flag,
	  .field = &bench_options.verify },
	{ "json", "FILE|-", "write JSON; - prints it instead of the table",
	  cli_set_text, bench_options.json,
	  .max = sizeof(bench_options.json) },
	{ "fabric", "auto|verbs|soft|soft:tcp", "how to reach the servers",
	  cli_set_word, bench_options.library.fabric,
	  .max = sizeof(bench_options.library.fabric),
	  .words = "auto|verbs|soft|soft:tcp" },
	{ "overload", "off|N:NS",
	  "soft: a device that collapses; each work request\n"
	  "queued beyond N costs a post NS nanoseconds",
	  cli_set_text, bench_options.library.overload,
	  .max = sizeof(bench_options.library.overload) },
	{ "device", "NAME[:PORT]",
	  "verbs: the device, such as mlx5_0:1\n"
	  "soft: registered, to register as most NICs must",
	  cli_set_text, bench_options.library.device,
	  .max = sizeof(bench_options.library.device) },
	{ "secret-file", "F", "the secret shared with the servers",
	  cli_set_text, bench_options.library.secret_file,
	  .max = sizeof(bench_options.library.secret_file) },
	{ "insecure", NULL, "no secret, even beyond loopback", cli_set_flag,
	  .field = &bench_options.library.insecure },
	{ "polling", "P",
	  "busy, event, event-batch:N, hybrid, shared:M\n"
	  "or adaptive[:RETRY[:BATCH]]",
	  cli_set_text, bench_options.library.polling,
	  .max = sizeof(bench_options.library.polling) },
	{ "pollers", "N|peer|queue_pair", "threads that poll", set_pollers,
	  &bench_options.library.pollers, .min = 1, .max = 16 },
	{ "poll-cpu", "PCT", "adaptive: percent of a CPU to poll in vain",
	  cli_set_number, &bench_options.library.poll_cpu_percent, .min = 1,
	  .max = 100 },
	{ "buffers", "region|staging|direct|auto",
	  "region: registered once, before\n"
	  "staging: copied (preMR)\n"
	  "direct: each registered for its request (dynMR)\n"
	  "auto: what is cheaper for the length",
	  cli_set_word, bench_options.buffers,
	  .max = sizeof(bench_options.buffers),
	  .words = "region|staging|direct|auto" },
	{ "qps", "N", "queue pairs to each server", cli_set_number,
	  &bench_options.library.queue_pairs, .min = 1, .max = 16 },
	{ "checksums", NULL, "CRC32C of each 4 KiB page, kept here",
	  cli_set_flag, .field = &bench_options.volume.checksums },
	{ "seed", "N", "of all that is random", cli_set_number,
	  .field = &bench_options.seed },
	{ "progress", NULL, "show progress even without a terminal",
	  cli_set_flag, .field = &bench_options.progress },
};

const struct cli_command bench_command = {
	.name = "bench",
	.purpose = "Measures reads and writes of remote memory.",
	.usage = "--servers A:P,B:P [--replicas R] --volume SIZE\n"
		 "                     --op read|write|mix:PCT\n"
		 "                     --pattern seq|rand|zipf|trace:FILE\n"
		 "                     --block SIZE --depth N --threads N\n"
		 "                     --mode single|doorbell|merge|hybrid\n"
		 "                     --window off|SIZE|aimd|delay|auto\n"
		 "                     [--fragment SIZE]\n"
		 "                     --runtime S [--verify] [--json FILE|-]",
	.notes = "Only --servers and --volume have no default. Latency is "
		 "per request, from submit\nto completion; with --load open "
		 "from the time it was meant to be submitted.\n"
		 "Exit code 1 on any error or wrong byte.",
	.options = options,
	.options_count = sizeof(options) / sizeof(options[0]),
};

/* ---- Before anything is opened ---------------------------------------------*/

static int check_options(const struct bench_options *o)
{
	if (!*o->servers)
		return cli_fail(&bench_command,
				"no servers; add --servers ADDR:PORT,...");
	if (!o->volume_bytes)
		return cli_fail(&bench_command, "no volume; add --volume SIZE");
	if (o->volume_bytes % 4096)
		return cli_fail(&bench_command, "--volume %" PRIu64
				" is not a multiple of 4096; round it up",
				o->volume_bytes);
	if (o->block_bytes % 64 || o->block_bytes > o->volume_bytes)
		return cli_fail(&bench_command, "--block %u must be a multiple "
				"of 64 and no larger than the volume",
				o->block_bytes);
	if (o->volume.checksums && o->block_bytes % 4096)
		return cli_fail(&bench_command, "--block %u does not go with "
				"--checksums; give a multiple of 4096",
				o->block_bytes);
	if (o->library.fragment_bytes & (o->library.fragment_bytes - 1))
		return cli_fail(&bench_command, "--fragment %u is not a power "
				"of two; give one from 4K to 1M",
				o->library.fragment_bytes);
	if (o->runtime_s <= 0)
		return cli_fail(&bench_command,
				"--runtime must be above 0; give seconds");
	if (*o->library.secret_file && o->library.insecure)
		return cli_fail(&bench_command, "--secret-file and --insecure "
				"exclude each other; give one of them");
	return 0;
}

static uint32_t sweep_bytes(const struct bench_options *o)
{
	return o->block_bytes >= SWEEP_BYTES ?
		       o->block_bytes :
		       SWEEP_BYTES / o->block_bytes * o->block_bytes;
}

static uint64_t fragments_of(const struct bench_options *o, uint32_t bytes)
{
	/* One more where a request begins inside of a fragment. */
	return bytes / o->library.fragment_bytes + 1;
}

/* Lets the library hold all that will be outstanding, if it may. */
static void size_library(struct bench_options *o)
{
	uint64_t load = fragments_of(o, o->block_bytes) * o->depth * o->threads;
	uint64_t sweep = fragments_of(o, sweep_bytes(o)) * SWEEP_DEPTH;
	uint64_t most = (load > sweep ? load : sweep) * o->volume.replicas;

	if (most > REQUESTS_MAX)
		most = REQUESTS_MAX;
	if (o->library.requests_max < most)
		o->library.requests_max = most;
}

/* ---- Opening and closing ---------------------------------------------------*/

static int make_loads(struct bench *bench)
{
	const struct bench_options *o = bench->options;
	struct bench_load_shape sweep_shape = {
		.lanes_count = 1, .depth = SWEEP_DEPTH,
		.buffer_bytes = sweep_bytes(o), .seed = ~(uint64_t)o->seed,
		.is_registered = !strcmp(o->buffers, "region"),
	};
	struct bench_load_shape shape = {
		.lanes_count = o->threads, .depth = o->depth,
		.buffer_bytes = o->block_bytes, .seed = o->seed,
		.timing = o->timing,
		.is_registered = sweep_shape.is_registered,
	};

	if (bench_load_create(&bench->sweep_load, bench->ctx, bench->volume,
			      &sweep_shape) ||
	    bench_load_create(&bench->load, bench->ctx, bench->volume, &shape))
		return cli_fail(&bench_command, "no memory for buffers of %u "
				"requests of %u bytes; lower --depth, "
				"--threads or --block", o->depth * o->threads,
				o->block_bytes);
	return 0;
}

static int make_checks(struct bench *bench)
{
	const struct bench_options *o = bench->options;
	char reason[512];

	if (bench_pattern_create(&bench->pattern, o->pattern, bench->blocks,
				 o->block_bytes, o->threads, o->seed, reason,
				 sizeof(reason)))
		return cli_fail(&bench_command, "%s", reason);
	if (o->verify && bench_verify_create(&bench->verify, bench->blocks,
					     o->block_bytes, o->seed))
		return cli_fail(&bench_command, "no memory to remember what "
				"%" PRIu64 " blocks hold; lower --volume",
				bench->blocks);
	return 0;
}

/* For the report: how many there are, where the tuning file said it. */
static void take_queue_pairs(struct bench *bench)
{
	struct cli_option queue_pairs = {
		.field = &bench->options->library.queue_pairs,
	};
	char text[32], reason[128];

	cli_describe(bench->ctx, "queue_pairs", text, sizeof(text));
	(void)cli_set_number(&queue_pairs, text, reason, sizeof(reason));
}

/* Returns 0 or an exit code; bench_close() takes back what was opened. */
static int bench_open(struct bench *bench)
{
	struct bench_options *o = bench->options;
	int rc;

	bench->blocks = o->volume_bytes / o->block_bytes;
	rc = make_checks(bench);
	if (rc)
		return rc;
	if (rbx_open(&bench->ctx, &o->library))
		return cli_fail(&bench_command, "%s", rbx_last_error());
	take_queue_pairs(bench);
	o->volume.event = bench_events_note;
	o->volume.user = &bench->events;
	if (rbx_volume_open(bench->ctx, &bench->volume, o->servers,
			    o->volume_bytes, &o->volume))
		return cli_fail(&bench_command, "%s", rbx_last_error());
	return make_loads(bench);
}

static void bench_close(struct bench *bench)
{
	/* First: the last callback may still be on its way out of the load. */
	if (bench->volume)
		rbx_volume_close(bench->volume);
	bench_load_destroy(bench->load);
	bench_load_destroy(bench->sweep_load);
	if (bench->ctx)
		rbx_close(bench->ctx);
	bench_verify_destroy(bench->verify);
	bench_pattern_destroy(bench->pattern);
}

/* ---- Running ---------------------------------------------------------------*/

/* One phase. Does not return where the library hangs. */
static void run(struct bench *bench, const char *phase,
		struct bench_load *load, struct bench_source *source,
		uint64_t requests_total, double runtime_s,
		struct bench_result *result)
{
	uint32_t stall_limit_ms =
		STALL_LIMIT_MS(bench->options->library.peer_timeout_ms);
	int rc;

	bench_progress_begin(&bench->progress, phase, requests_total,
			     runtime_s);
	rc = bench_load_run(load, source, runtime_s, stall_limit_ms,
			    bench_progress_show, &bench->progress, result);
	bench_progress_end(&bench->progress);
	if (!rc)
		return;
	if (rc == -ETIMEDOUT)
		cli_fail(&bench_command, "%s: requests are outstanding and "
			 "none has completed for %u s; giving up", phase,
			 stall_limit_ms / 1000);
	else
		cli_fail(&bench_command, "%s: cannot start %u threads: %s; "
			 "lower --threads", phase, bench->options->threads,
			 strerror(-rc));
	fflush(stdout);
	_exit(CLI_EXIT_FAILED);
}

static void sweep(struct bench *bench, uint8_t op, struct bench_result *result)
{
	const struct bench_options *o = bench->options;
	struct bench_sweep sweep;
	uint64_t requests_total;

	bench_sweep_init(&sweep, op, bench->verify, bench->blocks,
			 o->block_bytes, sweep_bytes(o));
	requests_total = (bench->blocks + sweep.blocks_per_request - 1) /
			 sweep.blocks_per_request;
	run(bench, op == RBX_WRITE ? "fill" : "check", bench->sweep_load,
	    &sweep.source, requests_total, 0, result);
}

/* Fills and warms up. Returns 0 or an exit code. */
static int prepare(struct bench *bench, struct bench_mix *mix)
{
	struct bench_result result;

	sweep(bench, RBX_WRITE, &result);
	if (!result.errors && bench->options->warmup_s > 0)
		run(bench, "warm-up", bench->load, &mix->source, 0,
		    bench->options->warmup_s, &result);
	if (result.errors) {
		cli_fail(&bench_command, "before the measurement: %s",
			 result.first_error);
		return CLI_EXIT_FAILED;
	}
	if (atomic_load(&bench_interrupted)) {
		cli_fail(&bench_command, "interrupted before the measurement");
		return CLI_EXIT_FAILED;
	}
	return 0;
}

/* Reads everything back; what fails is added to the result of the run. */
static void check_volume(struct bench *bench, struct bench_result *result)
{
	struct bench_result checked;

	atomic_store(&bench_interrupted, false);
	sweep(bench, RBX_READ, &checked);
	if (!result->errors)
		memcpy(result->first_error, checked.first_error,
		       sizeof(result->first_error));
	result->errors += checked.errors;
}

static int report(struct bench *bench, const struct bench_result *result,
		  const struct rbx_stats *stats)
{
	const char *json = bench->options->json;
	struct bench_report report = {
		.options = bench->options, .result = result, .stats = stats,
	};
	int rc = CLI_EXIT_OK;

	if (bench->verify)
		report.verify_errors = bench_verify_errors(bench->verify);
	cli_describe(bench->ctx, "using", report.using, sizeof(report.using));
	if (strcmp(json, "-"))
		bench_report_print(&report);
	if (*json && cli_json_write(&bench_command,
				    bench_report_json(&report), json))
		rc = CLI_EXIT_FAILED;
	if (result->errors) {
		cli_fail(&bench_command, "%" PRIu64 " requests failed%s; the "
			 "first: %s", result->errors,
			 result->gave_up ? " and the run was ended" : "",
			 result->first_error);
		rc = CLI_EXIT_FAILED;
	}
	if (report.verify_errors) {
		cli_fail(&bench_command, "%" PRIu64 " blocks were wrong; the "
			 "first: %s", report.verify_errors,
			 bench_verify_first_error(bench->verify));
		rc = CLI_EXIT_FAILED;
	}
	return rc;
}

static int measure(struct bench *bench)
{
	struct rbx_stats stats = { .size_bytes = sizeof(stats) };
	struct bench_result result;
	struct bench_mix mix;
	int rc;

	bench_mix_init(&mix, bench->pattern, bench->verify,
		       bench->options->block_bytes,
		       bench->options->read_percent);
	rc = prepare(bench, &mix);
	if (rc)
		return rc;
	rbx_stats_reset(bench->ctx);
	run(bench, "measure", bench->load, &mix.source, 0,
	    bench->options->runtime_s, &result);
	rbx_stats_get(bench->ctx, &stats);
	if (bench->verify)
		check_volume(bench, &result);
	return report(bench, &result, &stats);
}

static void interrupt(int signal_number)
{
	(void)signal_number;
	atomic_store(&bench_interrupted, true);
}

int cli_bench(int argc, char **argv)
{
	/* The second SIGINT ends the process. */
	struct sigaction action = { .sa_handler = interrupt,
				    .sa_flags = SA_RESETHAND | SA_RESTART };
	struct bench bench = { .options = &bench_options };
	int rc;

	rbx_options_defaults(&bench_options.library);
	rbx_volume_options_defaults(&bench_options.volume);
	rc = cli_parse(&bench_command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = check_options(&bench_options);
	if (rc)
		return rc;
	if (bench_options.timing.kind == BENCH_BURST)
		bench_options.depth = bench_options.timing.burst_size;
	size_library(&bench_options);
	if (strcmp(bench_options.buffers, "region"))
		strcpy(bench_options.library.buffers, bench_options.buffers);
	sigaction(SIGINT, &action, NULL);
	bench_events_init(&bench.events);
	bench_progress_init(&bench.progress, &bench.events,
			    bench_options.progress);
	rc = bench_open(&bench);
	if (!rc)
		rc = measure(&bench);
	bench_close(&bench);
	return rc;
}
