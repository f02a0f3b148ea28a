/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The progress bar: on stderr, if that is a terminal, so that scripts can read stdout.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "keep_tree.h"

#define BAR_COLUMNS 40
#define REDRAW_S 0.1

static struct {
	const char *name;
	uint64_t total_bytes;
	double begin_s;
	double shown_s;
} progress;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static double rate_mb_per_s(uint64_t done_bytes)
{
	double elapsed_s = now_s() - progress.begin_s;

	return elapsed_s > 0 ? done_bytes / 1e6 / elapsed_s : 0;
}

void progress_begin(const char *name, uint64_t total_bytes)
{
	progress.name = name;
	progress.total_bytes = total_bytes ? total_bytes : 1;
	progress.begin_s = progress.shown_s = now_s();
}

void progress_show(uint64_t done_bytes)
{
	static const char full[] = "########################################";
	int columns = BAR_COLUMNS * done_bytes / progress.total_bytes;

	if (!isatty(STDERR_FILENO) || now_s() - progress.shown_s < REDRAW_S)
		return;
	progress.shown_s = now_s();
	fprintf(stderr, "\r\033[K%-12s [%-*.*s] %3" PRIu64 " %%  %.0f MB/s",
		progress.name, BAR_COLUMNS, columns, full,
		100 * done_bytes / progress.total_bytes,
		rate_mb_per_s(done_bytes));
	fflush(stderr);
}

void progress_end(const char *did, size_t files_count, uint64_t done_bytes)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	printf("%s %zu files, %" PRIu64 " bytes, %.1f MB/s\n", did, files_count,
	       done_bytes, rate_mb_per_s(done_bytes));
	fflush(stdout);
}
