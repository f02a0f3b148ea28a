/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the best number of queue pairs to a server.
 *
 * Each number gets the same load: one thread, 32 requests of 4 KiB outstanding, half of
 * them reads, at random places of a volume that was filled before. The numbers are tried
 * in turn (1 2 4 8 16, 1 2 4 ...), so other load on the machine disturbs all alike, and
 * the median of the rounds counts. Each run borrows anew, so the server needs memory for
 * only one volume.
 *
 * Queue pairs cost memory on the device and space in its cache. So fewer are taken unless
 * more are clearly faster.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/tune/tune.h"

#define VOLUME_BYTES (8u << 20)
#define BLOCK_BYTES 4096u
#define BLOCKS (VOLUME_BYTES / BLOCK_BYTES)
#define DEPTH 32u

/* If nothing completes for so long, the library hangs. */
#define STALL_LIMIT_MS 60000u

/* The objects of a run. */
struct run {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct bench_load *load;
	struct bench_pattern *pattern;
};

/* Returns 0 or an exit code; run_close() takes back what was opened. */
static int run_open(const struct tune_options *options, uint32_t queue_pairs,
		    struct run *run)
{
	struct bench_load_shape shape = {
		.workers_count = 1, .depth = DEPTH, .buffer_bytes = BLOCK_BYTES,
		.is_registered = true, .seed = 1,
	};
	struct rbx_options library = options->library;
	char reason[256];
	int err;

	library.queue_pairs = queue_pairs;
	if (rbx_open(&run->ctx, &library))
		return cli_fail(&tune_command, "%s", rbx_last_error());
	err = rbx_volume_open(run->ctx, &run->volume, options->server, VOLUME_BYTES, NULL);
	if (err)
		return cli_fail(&tune_command, "%s", rbx_last_error());
	if (bench_pattern_create(&run->pattern, "rand", BLOCKS, BLOCK_BYTES, 1,
				 1, reason, sizeof(reason)))
		return cli_fail(&tune_command, "%s", reason);
	if (bench_load_create(&run->load, run->ctx, run->volume, &shape))
		return cli_fail(&tune_command, "no memory for %u buffers",
				DEPTH);
	return 0;
}

static void run_close(struct run *run)
{
	bench_load_destroy(run->load);
	bench_pattern_destroy(run->pattern);
	if (run->volume)
		rbx_volume_close(run->volume);
	if (run->ctx)
		rbx_close(run->ctx);
}

/* Does not return if the library hangs: then nothing can be closed. */
static int run_source(struct run *run, struct bench_source *source,
		      double runtime_s, double *iops)
{
	struct bench_result result;
	int err = bench_load_run(run->load, source, runtime_s, STALL_LIMIT_MS,
				 NULL, NULL, &result);

	if (err) {
		cli_fail(&tune_command, "the load cannot be run: %s",
			 strerror(-err));
		_Exit(CLI_EXIT_FAILED);
	}
	if (result.errors) {
		cli_fail(&tune_command, "%s", result.first_error);
		return CLI_EXIT_FAILED;
	}
	*iops = result.requests / result.elapsed_s;
	return 0;
}

/* Fills the volume, then measures. */
static int measure(const struct tune_options *options, uint32_t queue_pairs,
		   double *iops)
{
	struct run run = { 0 };
	struct bench_sweep fill;
	struct bench_mix mix;
	int rc = run_open(options, queue_pairs, &run);

	bench_sweep_init(&fill, RBX_WRITE, NULL, BLOCKS, BLOCK_BYTES,
			 BLOCK_BYTES);
	bench_mix_init(&mix, run.pattern, NULL, BLOCK_BYTES, 50);
	if (!rc)
		rc = run_source(&run, &fill.source, 0, iops);
	if (!rc)
		rc = run_source(&run, &mix.source, options->runtime_s, iops);
	run_close(&run);
	return rc;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static void summarize(double *iops, struct tune_qps_point *point)
{
	qsort(iops, TUNE_QPS_TURNS, sizeof(*iops), by_value);
	point->iops = iops[TUNE_QPS_TURNS / 2];
	point->spread_iops = (iops[TUNE_QPS_TURNS - 1] - iops[0]) / 2;
}

uint32_t tune_qps_best(const struct tune_qps_point *points, uint32_t count)
{
	double best = 0;

	for (uint32_t i = 0; i < count; i++)
		if (points[i].iops > best)
			best = points[i].iops;
	for (uint32_t i = 0; i < count; i++)
		if (points[i].iops + points[i].spread_iops >=
		    best * (1 - TUNE_QPS_TOLERANCE))
			return points[i].queue_pairs;
	return 0;
}

int tune_qps(const struct tune_options *options, struct tune_result *result)
{
	double iops[TUNE_QPS_POINTS][TUNE_QPS_TURNS];
	uint32_t turn, i;
	int rc = 0;

	for (turn = 0; turn < TUNE_QPS_TURNS; turn++)
		for (i = 0; i < TUNE_QPS_POINTS && !rc && !cli_interrupted(); i++) {
			tune_progress(options, "%u queue pairs, turn %u of %u",
				      1u << i, turn + 1, TUNE_QPS_TURNS);
			rc = measure(options, 1u << i, &iops[i][turn]);
		}
	tune_progress_end();
	if (rc || cli_interrupted())
		return rc;
	for (i = 0; i < TUNE_QPS_POINTS; i++) {
		result->qps[i].queue_pairs = 1u << i;
		summarize(iops[i], &result->qps[i]);
	}
	result->qps_count = TUNE_QPS_POINTS;
	result->queue_pairs = tune_qps_best(result->qps, result->qps_count);
	return 0;
}
