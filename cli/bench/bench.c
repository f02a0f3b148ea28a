/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox bench: measures reads and writes of remote memory.
 *
 * The steps: read the options (options.c), open the device, borrow the volume, fill it
 * once (so that reads find data and writes find existing memory), warm up, reset the
 * numbers, measure, with --verify read the whole volume back and compare it, report, and
 * close everything.
 *
 * An error before the measurement prints one line and exits with 2. During the
 * measurement, requests that fail and wrong data are counted, the first of each is
 * printed, and the exit code is 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench.h"

/* If nothing completes for so long, the library hangs. It is longer than a request may
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

/* ---- Opening and closing ---------------------------------------------------*/

static int make_loads(struct bench *bench)
{
	const struct bench_options *o = bench->options;
	struct bench_load_shape sweep_shape = {
		.workers_count = 1, .depth = BENCH_SWEEP_DEPTH,
		.buffer_bytes = bench_sweep_bytes(o->block_bytes),
		.seed = ~(uint64_t)o->seed,
		.is_registered = !strcmp(o->buffers, "region"),
	};
	struct bench_load_shape shape = {
		.workers_count = o->threads, .depth = o->depth,
		.buffer_bytes = o->block_bytes, .seed = o->seed,
		.timing = o->timing,
		.is_mix = o->read_percent > 0 && o->read_percent < 100,
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

	bench->blocks = o->volume_bytes / o->block_bytes;
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

/* Asks the library how many queue pairs there are, for the report, if they come from the
 * tuning file. */
static void take_queue_pairs(struct bench *bench)
{
	struct cli_option queue_pairs = {
		.field = &bench->options->library.queue_pairs,
	};
	char text[32], reason[128];

	cli_describe(bench->ctx, "queue_pairs", text, sizeof(text));
	(void)cli_set_number(&queue_pairs, text, reason, sizeof(reason));
}

/* A named volume is what it was made. Returns 0 or an exit code. */
static int take_shape(struct bench *bench)
{
	struct rbx_volume_status status;
	int rc;

	rbx_volume_status(bench->volume, &status);
	bench->options->volume_bytes = rbx_volume_size(bench->volume);
	bench->options->volume.replicas = status.replicas;
	bench->options->volume.checksums = status.checksums;
	rc = bench_block_check(bench->options);
	return rc ? rc : make_checks(bench);
}

static int tell_interrupted(void)
{
	cli_fail(&bench_command, "interrupted before the measurement");
	return CLI_EXIT_SIGNAL + cli_interrupted();
}

/* Returns 0 or an exit code; bench_close() takes back what was opened. */
static int bench_open(struct bench *bench)
{
	struct bench_options *o = bench->options;
	bool is_named = *o->volume_name;
	int rc;

	rc = is_named ? 0 : make_checks(bench);
	if (rc)
		return rc;
	if (rbx_open(&bench->ctx, &o->library))
		return cli_fail(&bench_command, "%s", rbx_last_error());
	take_queue_pairs(bench);
	o->volume.event = bench_events_note;
	o->volume.user = &bench->events;
	o->volume.name = is_named ? o->volume_name : NULL;
	if (cli_interrupt_opens(true))
		return tell_interrupted();
	rc = rbx_volume_open(bench->ctx, &bench->volume, o->pool,
			     o->volume_bytes, &o->volume);
	if (cli_interrupt_opens(false))
		return tell_interrupted();
	if (rc)
		return cli_fail(&bench_command, "%s", rbx_last_error());
	rc = is_named ? take_shape(bench) : 0;
	return rc ? rc : make_loads(bench);
}

static void bench_close(struct bench *bench)
{
	/* First the volume: the load's last callback may still be running. */
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

/* Runs one phase. Does not return if the library hangs. */
static void run(struct bench *bench, const struct bench_phase *phase,
		struct bench_load *load, struct bench_source *source,
		struct bench_result *result)
{
	uint32_t stall_limit_ms =
		STALL_LIMIT_MS(bench->options->library.peer_timeout_ms);
	int err;

	bench_progress_begin(&bench->progress, phase);
	err = bench_load_run(load, source, phase->runtime_s, stall_limit_ms,
			     bench_progress_show, &bench->progress, result);
	bench_progress_end(&bench->progress);
	if (!err)
		return;
	if (err == -ETIMEDOUT)
		cli_fail(&bench_command, "%s: requests are outstanding and "
			 "none has completed for %u s; giving up", phase->name,
			 stall_limit_ms / 1000);
	else
		cli_fail(&bench_command, "%s: cannot start %u threads: %s; "
			 "lower --threads", phase->name, bench->options->threads,
			 strerror(-err));
	fflush(stdout);
	_exit(CLI_EXIT_FAILED);
}

/* Returns whether the sweep went through. */
static bool sweep(struct bench *bench, uint8_t op, struct bench_result *result)
{
	const struct bench_options *o = bench->options;
	struct bench_sweep sweep;
	struct bench_phase phase = {
		.name = op == RBX_WRITE ? "fill" : "check",
		.load = bench->sweep_load,
	};

	bench_sweep_init(&sweep, op, bench->verify, bench->blocks,
			 o->block_bytes, bench_sweep_bytes(o->block_bytes));
	phase.request_bytes = (uint32_t)sweep.blocks_per_request * o->block_bytes;
	phase.requests_total = (bench->blocks + sweep.blocks_per_request - 1) /
			       sweep.blocks_per_request;
	run(bench, &phase, bench->sweep_load, &sweep.source, result);
	return result->requests == phase.requests_total;
}

static void run_mix(struct bench *bench, const char *name, double runtime_s,
		    struct bench_mix *mix, struct bench_result *result)
{
	struct bench_phase phase = {
		.name = name, .load = bench->load, .runtime_s = runtime_s,
		.request_bytes = bench->options->block_bytes,
	};

	run(bench, &phase, bench->load, &mix->source, result);
}

/* A named volume that is only read keeps what it holds. */
static bool is_only_read(const struct bench_options *o)
{
	return *o->volume_name && o->read_percent == 100 && !o->verify;
}

/* Fills the volume and warms up. Returns 0 or an exit code. */
static int prepare(struct bench *bench, struct bench_mix *mix)
{
	struct bench_result result = { 0 };

	if (!is_only_read(bench->options))
		(void)sweep(bench, RBX_WRITE, &result);
	if (!result.errors && bench->options->warmup_s > 0)
		run_mix(bench, "warm-up", bench->options->warmup_s, mix, &result);
	if (result.errors) {
		cli_fail(&bench_command, "before the measurement: %s",
			 result.first_error);
		return CLI_EXIT_FAILED;
	}
	return cli_interrupted() ? tell_interrupted() : 0;
}

/* Reads everything back. Failures are added to the result of the run. False: it was
 * interrupted. */
static bool check_volume(struct bench *bench, struct bench_result *result)
{
	struct bench_result checked;
	bool got_through;

	cli_interrupt_forget();
	got_through = sweep(bench, RBX_READ, &checked);
	if (!result->errors)
		memcpy(result->first_error, checked.first_error,
		       sizeof(result->first_error));
	result->errors += checked.errors;
	return got_through || !cli_interrupted();
}

static int report(struct bench *bench, const struct bench_result *result,
		  const struct rbx_stats *stats)
{
	const char *json = bench->options->json;
	struct bench_report report = {
		.options = bench->options, .result = result, .stats = stats,
	};
	char down[sizeof(bench->events.down)];
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
		bench_events_await_down(&bench->events, down, sizeof(down));
		cli_fail(&bench_command, "%" PRIu64 " requests failed%s; the "
			 "first: %s%s%s", result->errors,
			 result->gave_up ? " and the run was ended" : "",
			 result->first_error, *down ? "; before that, " : "", down);
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
	struct rbx_stats stats;
	struct bench_result result;
	struct bench_mix mix;
	bool all_checked;
	int rc;

	bench_mix_init(&mix, bench->pattern, bench->verify,
		       bench->options->block_bytes,
		       bench->options->read_percent);
	mix.read_flags = bench->options->urgent_reads ? RBX_URGENT : 0;
	rc = prepare(bench, &mix);
	if (rc)
		return rc;
	rbx_stats_reset(bench->ctx);
	run_mix(bench, "measure", bench->options->runtime_s, &mix, &result);
	rbx_stats_get(bench->ctx, &stats);
	all_checked = !bench->verify || check_volume(bench, &result);
	rc = report(bench, &result, &stats);
	if (all_checked)
		return rc;
	cli_fail(&bench_command, "interrupted before all was checked");
	return CLI_EXIT_FAILED;
}

int cli_bench(int argc, char **argv)
{
	struct bench bench = { 0 };
	int rc;

	bench.options = bench_options_parse(argc, argv, &rc);
	if (!bench.options)
		return rc;
	rc = cli_output_check(&bench_command, "json", bench.options->json);
	if (rc)
		return rc;
	/* From now on a signal ends the run early; the result is printed all the same. */
	cli_interrupt_catch(true);
	bench_events_init(&bench.events);
	bench_progress_init(&bench.progress, &bench.events,
			    bench.options->progress);
	rc = bench_open(&bench);
	if (!rc)
		rc = measure(&bench);
	bench_close(&bench);
	return rc;
}
