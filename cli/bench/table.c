/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of the options of rdmabox bench, with the checks of their values.
 *
 * If only the library knows the right values, such as the forms of a window, it is asked
 * as soon as the value is read. So every wrong value is refused before anything is
 * opened.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/commands.h"
#include "cli/reach.h"

struct bench_options bench_options = {
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

#define OPTIONS bench_options
#define LIBRARY bench_options.library

static const struct cli_option options[] = {
	{ "pool", "POOL", "memory servers", cli_set_text, OPTIONS.pool,
	  .max = sizeof(OPTIONS.pool), .is_required = true, .argument = CLI_ARGUMENT_ADDRESS,
	  .details = CLI_POOL_DETAILS },
	{ "volume", "SIZE", "bytes to borrow, a multiple of 4K", cli_set_size,
	  &OPTIONS.volume_bytes, .min = 4096, .max = 1ull << 46, .is_required = true,
	  .or_next = true },
	{ "volume-name", "NAME", "a named volume instead; writes change what it holds",
	  cli_set_text, OPTIONS.volume_name, .max = sizeof(OPTIONS.volume_name),
	  .is_required = true,
	  .details = "One that `rdmabox volume create` made. With `--op read` and without "
		     "--verify nothing is written to it; otherwise all of it is overwritten before "
		     "the measurement." },
	{ "take-over", NULL, "take it from the program that has it open", cli_set_flag,
	  .field = &OPTIONS.volume.take_over,
	  .details = "That program can neither read nor write it any more." },
	{ "read-only", NULL, "leave it to the program that has it open", cli_set_flag,
	  .field = &OPTIONS.volume.read_only,
	  .details = "With `--op read` and --volume-name. That program may write meanwhile." },
	{ "replicas", "N", "copies of the data, on as many servers", cli_set_number,
	  &OPTIONS.volume.replicas, .group = "Load", .min = 1, .max = 3 },
	{ "spread", "NAME", "keep copies where this label of the servers differs", cli_set_text,
	  OPTIONS.volume.spread, .max = sizeof(OPTIONS.volume.spread),
	  .details = "As long as there is a choice. A server without that label shares its fate "
		     "with no other." },
	CLI_COPY_RATE(OPTIONS.volume),
	CLI_CRASH_COPY(OPTIONS.volume),
	{ "op", "read|write|mix:PCT", "what to do; PCT percent are reads", set_op,
	  OPTIONS.op, .max = sizeof(OPTIONS.op), .words = "read|write|mix:",
	  .like = cli_set_text },
	{ "urgent-reads", NULL, "reads leave before writes to the same server",
	  cli_set_flag, .field = &OPTIONS.urgent_reads,
	  .details = "They are submitted with `RBX_URGENT`, see rbx_submit(3)." },
	{ "pattern", "seq|rand|zipf|trace:FILE",
	  "which blocks\n"
	  "seq: each thread walks its own part, and wraps\n"
	  "rand: each block is equally likely\n"
	  "zipf: theta 0.99, hot blocks scattered\n"
	  "trace: lines START COUNT 0 N of 4 KiB pages",
	  set_pattern, OPTIONS.pattern, .max = sizeof(OPTIONS.pattern),
	  .words = "seq|rand|zipf|trace:", .like = cli_set_text,
	  .details = "See TRACES for the form of a trace." },
	{ "block", "SIZE", "bytes of a request, a multiple of 64",
	  cli_set_size_32, &OPTIONS.block_bytes,
	  .min = BENCH_BLOCK_BYTES_MIN, .max = BENCH_BLOCK_BYTES_MAX },
	{ "depth", "N", "requests that a thread keeps outstanding", cli_set_number,
	  &OPTIONS.depth, .min = 1, .max = BENCH_DEPTH_MAX },
	{ "threads", "N", "threads that submit", cli_set_number,
	  &OPTIONS.threads, .min = 1, .max = BENCH_THREADS_MAX },
	{ "load", "closed|open:RATE|burst:SIZE:GAP",
	  "when requests come\n"
	  "closed: --depth are outstanding all the time\n"
	  "open: RATE requests/s, at random times\n"
	  "burst: SIZE at once; GAP after the last one ends the next",
	  set_load, OPTIONS.load, .max = sizeof(OPTIONS.load),
	  .words = "closed|open:|burst:", .like = cli_set_text,
	  .details = "RATE is that of all threads together, a Poisson process, whether or "
		     "not earlier requests are done; at most --depth of a thread are "
		     "outstanding, and more of them wait. Latency of an open load counts from "
		     "the time at which a request was meant to start, so that what kept it "
		     "waiting is in it. Each thread submits a burst of SIZE requests, in "
		     "place of --depth. GAP is a time such as 0, 300ns, 50us or 2ms, at most "
		     "5s. `burst:1:0` is the paper's small load." },
	{ "runtime", "S", "length of the measurement", cli_set_seconds,
	  &OPTIONS.runtime_s, .min = 0, .max = 1000000, .unit = "s" },
	{ "warmup", "S", "length of the load before it", cli_set_seconds,
	  &OPTIONS.warmup_s, .min = 0, .max = 1000000, .unit = "s" },
	{ "seed", "N", "seed of all that is random", cli_set_number,
	  .field = &OPTIONS.seed,
	  .details = "The same seed draws the same blocks." },
	{ "mode", "single|doorbell|merge|hybrid",
	  "how requests are batched\n"
	  "single: a work request for each request\n"
	  "doorbell: chained, not merged\n"
	  "merge: merged, not chained\n"
	  "hybrid: both",
	  cli_set_word, LIBRARY.mode, .group = "Library",
	  .max = sizeof(LIBRARY.mode), .words = "single|doorbell|merge|hybrid" },
	{ "window", "off|SIZE|aimd|delay|auto",
	  "bytes in flight at most\n"
	  "off: no limit\n"
	  "aimd: grows by steps, halved when round trips get long\n"
	  "delay: by how round trips change\n"
	  "auto: the least that gives full throughput",
	  set_window, LIBRARY.window, .max = sizeof(LIBRARY.window),
	  .words = "off|aimd|delay|auto", .like = cli_set_text,
	  .details = "See rbx_open(3). A size below --fragment is refused." },
	{ "fragment", "SIZE", "longer requests are split; a power of two",
	  cli_set_size_32, &LIBRARY.fragment_bytes, .min = 4096, .max = 256 << 10 },
	{ "buffers", "region|staging|direct|cached|auto",
	  "how the device gets at the buffers\n"
	  "region: registered once, before the run\n"
	  "staging: copied through registered memory (preMR)\n"
	  "direct: each registered for its request (dynMR)\n"
	  "cached: registered when first used, and kept\n"
	  "auto: whichever is cheaper for the length",
	  cli_set_word, OPTIONS.buffers, .max = sizeof(OPTIONS.buffers),
	  .words = "region|staging|direct|cached|auto" },
	{ "polling", "POLICY",
	  "how a poller waits for completions: busy, event,\n"
	  "event-batch:N, hybrid, shared:M,\n"
	  "adaptive[:RETRY[:BATCH]]",
	  cli_set_text, LIBRARY.polling, .max = sizeof(LIBRARY.polling),
	  .words = "busy|event|event-batch:|hybrid|shared:|adaptive",
	  .details = "See rbx_open(3)." },
	{ "pollers", "N|peer|queue_pair",
	  "threads that poll, each with a completion queue\n"
	  "peer: one for each server\n"
	  "queue_pair: one for each queue pair", set_pollers,
	  &LIBRARY.pollers, .min = 1, .max = 16, .words = "peer|queue_pair",
	  .like = cli_set_number },
	{ "poll-cpu", "PCT", "percent of a CPU that adaptive polls may waste",
	  cli_set_number, &LIBRARY.poll_cpu_percent, .min = 1, .max = 100 },
	{ "qps", "N", "queue pairs to each server", cli_set_number,
	  &LIBRARY.queue_pairs, .min = 1, .max = 16,
	  .preset = "what rdmabox tune found, else 1" },
	{ "peer-timeout", "MS", "time until a silent server is given up",
	  cli_set_number, &LIBRARY.peer_timeout_ms, .min = 100, .max = 3600000,
	  .unit = "ms",
	  .details = "Requests for data that this server alone has wait until half of its "
		     "lease is over. A network that loses much, or a host that is short of "
		     "CPU, needs more." },
	{ "checksums", NULL, "keep a CRC32C of each 4 KiB page here, and check it",
	  cli_set_flag, .field = &OPTIONS.volume.checksums },
	{ "overload", "off|N:NS",
	  "the soft device collapses: each work request\n"
	  "queued beyond N costs a post NS nanoseconds",
	  cli_set_text, LIBRARY.overload, .max = sizeof(LIBRARY.overload),
	  .words = "off",
	  .details = "To measure what a window is worth on such a device." },
	{ "verify", NULL, "check every byte that is read", cli_set_flag,
	  .field = &OPTIONS.verify, .group = "Output",
	  .details = "Each block that is written is stamped with its offset and a version, "
		     "and all its bytes follow from these. Each read is compared with what may "
		     "have been written by then, and after the run the whole volume is read "
		     "back and compared. This takes CPU time of the client and 16 bytes of "
		     "memory for each block." },
	{ "json", "FILE|-", "write JSON; - prints it instead of the table",
	  cli_set_text, OPTIONS.json, .max = sizeof(OPTIONS.json),
	  .argument = CLI_ARGUMENT_FILE },
	{ "progress", NULL, "show progress even without a terminal",
	  cli_set_flag, .field = &OPTIONS.progress,
	  .details = "A line every two seconds. On a terminal one line is written over." },
	CLI_REACH_FABRIC(LIBRARY, "how to reach the servers; as they serve"),
	CLI_REACH_DEVICE(LIBRARY),
	CLI_REACH_SECRET(LIBRARY, "the servers"),
	CLI_REACH_CREDENTIAL(LIBRARY),
	CLI_REACH_INTEGRITY(LIBRARY),
};

static void prepare(void)
{
	rbx_options_defaults(&LIBRARY);
	rbx_volume_options_defaults(&OPTIONS.volume);
}

const struct cli_command bench_command = {
	.name = "bench",
	.purpose = "measure reads and writes of remote memory",
	.notes = "Latency is per request, from submit to completion; with --load open from "
		 "the time it\nwas meant to be submitted. Exit code 1 on any error or wrong "
		 "byte.",
	CLI_OPTIONS(options),
	.run = cli_bench,
	.prepare = prepare,
};
