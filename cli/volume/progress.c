/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * progress.c - shows how far a copy is: on a terminal, one line that is written over.
 *
 * The rate is that since the last line.
 */
#include <time.h>
#include <unistd.h>

#include "cli/volume/volume.h"

#define CLEAR_LINE "\r\033[K"
#define EVERY_NS 200000000ull

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void volume_progress_begin(struct volume_progress *progress, const char *verb,
			   uint64_t total_bytes)
{
	uint64_t now = now_ns();

	*progress = (struct volume_progress){
		.verb = verb,
		.is_shown = isatty(STDERR_FILENO),
		.total_bytes = total_bytes,
		.begun_ns = now,
		.shown_ns = now,
	};
}

void volume_progress_show(struct volume_progress *progress, uint64_t bytes)
{
	uint64_t now, total = progress->total_bytes;
	double rate;

	if (!progress->is_shown)
		return;
	now = now_ns();
	if (now - progress->shown_ns < EVERY_NS)
		return;
	/* Bytes in a microsecond: MB/s. */
	rate = 1e3 * (double)(bytes - progress->shown_bytes) / (double)(now - progress->shown_ns);
	fprintf(stderr, CLEAR_LINE "%s", progress->verb);
	if (total)
		fprintf(stderr, " %3.0f %%", 100.0 * (double)bytes / (double)total);
	fprintf(stderr, "  %.1f MB  %.1f MB/s", (double)bytes / 1e6, rate);
	if (total && rate > 0)
		fprintf(stderr, "  %.0f s left", (double)(total - bytes) / 1e6 / rate);
	fflush(stderr);
	progress->shown_ns = now;
	progress->shown_bytes = bytes;
}

void volume_progress_end(struct volume_progress *progress, uint64_t bytes, bool is_whole)
{
	double elapsed_s = (double)(now_ns() - progress->begun_ns) / 1e9;

	if (!progress->is_shown)
		return;
	fputs(CLEAR_LINE, stderr);
	if (is_whole)
		fprintf(stderr, "%s: %.1f MB in %.1f s, %.1f MB/s\n", progress->verb,
			(double)bytes / 1e6, elapsed_s,
			elapsed_s > 0 ? (double)bytes / 1e6 / elapsed_s : 0);
	fflush(stderr);
}
