/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox bench: their table, what they may be, and what does not
 * go together.
 *
 * What the library knows better, such as the forms of a window, is asked of it
 * as soon as it is read, so that every wrong word is refused before anything is
 * opened.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/reach.h"

#define REQUESTS_MAX 65536 /* what the library allows */

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
	size_t said_bytes;

	bench_options.library.pollers = RBX_POLLERS_PEER;
	if (!strcmp(text, "peer"))
		return 0;
	bench_options.library.pollers = RBX_POLLERS_QUEUE_PAIR;
	if (!strcmp(text, "queue_pair") ||
	    !cli_set_number(option, text, reason, reason_bytes))
		return 0;
	said_bytes = strlen(reason);
	snprintf(reason + said_bytes, reason_bytes - said_bytes,
		 ", peer or queue_pair");
	return -EINVAL;
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
	{ "urgent-reads", NULL, "reads leave before writes", cli_set_flag,
	  .field = &bench_options.urgent_reads },
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
	  .max = 256 << 10 },
	{ "runtime", "S", "seconds to measure", cli_set_seconds,
	  &bench_options.runtime_s, .min = 0, .max = 1000000 },
	{ "warmup", "S", "seconds before that", cli_set_seconds,
	  &bench_options.warmup_s, .min = 0, .max = 1000000 },
	{ "verify", NULL, "check every byte that is read", cli_set_flag,
	  .field = &bench_options.verify },
	{ "json", "FILE|-", "write JSON; - prints it instead of the table",
	  cli_set_text, bench_options.json,
	  .max = sizeof(bench_options.json) },
	CLI_REACH_FABRIC(bench_options.library, "how to reach the servers"),
	{ "overload", "off|N:NS",
	  "soft: a device that collapses; each work request\n"
	  "queued beyond N costs a post NS nanoseconds",
	  cli_set_text, bench_options.library.overload,
	  .max = sizeof(bench_options.library.overload) },
	CLI_REACH_DEVICE(bench_options.library),
	CLI_REACH_SECRET(bench_options.library, "the servers"),
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
	{ "peer-timeout", "MS", "until a silent server is given up",
	  cli_set_number, &bench_options.library.peer_timeout_ms, .min = 100,
	  .max = 3600000 },
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
		 "                     [--op read|write|mix:PCT]\n"
		 "                     [--pattern seq|rand|zipf|trace:FILE]\n"
		 "                     [--block SIZE] [--depth N] [--threads N]\n"
		 "                     [--mode single|doorbell|merge|hybrid]\n"
		 "                     [--window off|SIZE|aimd|delay|auto]\n"
		 "                     [--fragment SIZE] [--runtime S]\n"
		 "                     [--verify] [--json FILE|-] [OPTION...]",
	.notes = "Only --servers and --volume have no default. Latency is "
		 "per request, from submit\nto completion; with --load open "
		 "from the time it was meant to be submitted.\n"
		 "Exit code 1 on any error or wrong byte.",
	.options = options,
	.options_count = sizeof(options) / sizeof(options[0]),
};

/* ---- What does not go together ----------------------------------------------*/

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
				"of two; give one from 4K to 256K",
				o->library.fragment_bytes);
	if (o->runtime_s <= 0)
		return cli_fail(&bench_command,
				"--runtime must be above 0; give seconds");
	return cli_reach_check(&bench_command, o->library.secret_file,
			       o->library.insecure);
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
	uint64_t sweep = fragments_of(o, bench_sweep_bytes(o->block_bytes)) *
			 BENCH_SWEEP_DEPTH;
	uint64_t most = (load > sweep ? load : sweep) * o->volume.replicas;

	if (most > REQUESTS_MAX)
		most = REQUESTS_MAX;
	if (o->library.requests_max < most)
		o->library.requests_max = most;
}

struct bench_options *bench_options_parse(int argc, char **argv, int *exit_code)
{
	struct bench_options *o = &bench_options;
	int rc;

	rbx_options_defaults(&o->library);
	rbx_volume_options_defaults(&o->volume);
	rc = cli_parse(&bench_command, argc, argv);
	*exit_code = rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!rc)
		rc = *exit_code = check_options(o);
	if (rc)
		return NULL;
	if (o->timing.kind == BENCH_BURST)
		o->depth = o->timing.burst_size;
	size_library(o);
	if (strcmp(o->buffers, "region"))
		strcpy(o->library.buffers, o->buffers);
	return o;
}
