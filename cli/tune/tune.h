/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tune.h - the parts of rdmabox tune.
 *
 *	tune.c     runs the measurements
 *	options.c  the options, and the checks between them
 *	file.c     finds the tuning file, and checks that it can be written
 *	buffers.c  what copying and registering cost, for each length
 *	qps.c      throughput for each number of queue pairs
 *	report.c   tables and JSON
 */
#ifndef TUNE_H
#define TUNE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/tuning.h>

#include "cli/cli.h"

/* 4 KiB to 16 MiB, doubling. */
#define TUNE_BYTES_MIN 4096u
#define TUNE_BYTES_MAX (16u << 20)
#define TUNE_POINTS 13
_Static_assert(TUNE_BYTES_MIN << (TUNE_POINTS - 1) == TUNE_BYTES_MAX,
	       "so many lengths");

/* 1, 2, 4, 8, 16 queue pairs, each several times. */
#define TUNE_QPS_POINTS 5
#define TUNE_QPS_TURNS 5

struct tune_options {
	struct rbx_options library;
	char server[128]; /* "": none */
	char json[4096]; /* "": none */
	char out[256]; /* "": the default file; "none": no file */
	uint32_t rounds;
	double runtime_s; /* of one run */
	uint32_t progress; /* also if stderr is no terminal */
};

struct tune_qps_point {
	uint32_t queue_pairs;
	double iops; /* median */
	double spread_iops; /* half the distance between the extremes */
};

struct tune_result {
	char fabric[16];
	char device[128];
	char using[512];
	char registering[256]; /* what buffers=auto does now */
	struct rbx_buffer_cost costs[TUNE_POINTS];
	uint64_t break_even_bytes; /* UINT64_MAX: never */
	struct tune_qps_point qps[TUNE_QPS_POINTS];
	uint32_t qps_count; /* 0: not measured */
	uint32_t queue_pairs; /* the best; 0: not measured */
};

extern struct tune_options tune_options;
extern const struct cli_command tune_command;

/* Returns 0 or an exit code. */
int tune_options_check(void);
int cli_tune(int argc, char **argv);

/* Finds the path of the tuning file. Returns 0, or an exit code after saying why it
 * cannot be written. */
int tune_file_check(char path[PATH_MAX]);

/* A line that is overwritten on a terminal; elsewhere only if asked for. */
void tune_progress(const struct tune_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tune_progress_end(void);

/* Each returns 0, or an exit code after saying why. */
int tune_buffers(const struct tune_options *options, struct rbx_context *ctx,
		 struct tune_result *result);
int tune_qps(const struct tune_options *options, struct tune_result *result);

/* The fewest queue pairs whose throughput is, with its spread, within TUNE_QPS_TOLERANCE
 * of the fastest. */
#define TUNE_QPS_TOLERANCE 0.03
uint32_t tune_qps_best(const struct tune_qps_point *points, uint32_t count);

void tune_report_print(const struct tune_result *result);
json_t *tune_report_json(const struct tune_result *result);

#endif
