/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is shown while a bench runs: on a terminal one line that is written
 * over, with --progress elsewhere a line a second. Events of the volume are
 * printed whether or not progress is shown.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/bench/bench.h"

#define CLEAR_LINE "\r\033[K"

void bench_progress_init(struct bench_progress *progress,
			 struct bench_events *events, bool is_forced)
{
	*progress = (struct bench_progress){
		.events = events,
		.is_terminal = isatty(STDERR_FILENO),
	};
	progress->is_shown = progress->is_terminal || is_forced;
}

void bench_progress_begin(struct bench_progress *progress, const char *phase,
			  uint64_t requests_total, double runtime_s)
{
	progress->phase = phase;
	progress->requests_total = requests_total;
	progress->runtime_s = runtime_s;
	progress->shown_at_s = 0;
	progress->shown_requests = 0;
}

void bench_progress_show(void *progress_pointer, uint64_t requests,
			 double elapsed_s)
{
	struct bench_progress *progress = progress_pointer;
	double since_s = elapsed_s - progress->shown_at_s;
	double percent;

	bench_events_print(progress->events);
	if (!progress->is_shown || since_s <= 0 ||
	    (!progress->is_terminal && since_s < 1))
		return;
	percent = progress->requests_total ?
			  100.0 * requests / progress->requests_total :
			  100.0 * elapsed_s / progress->runtime_s;
	fprintf(stderr, "%s%-7s %3.0f %%  %.0f requests/s%s",
		progress->is_terminal ? CLEAR_LINE : "", progress->phase,
		percent > 100 ? 100 : percent,
		(requests - progress->shown_requests) / since_s,
		progress->is_terminal ? "" : "\n");
	fflush(stderr);
	progress->shown_at_s = elapsed_s;
	progress->shown_requests = requests;
}

void bench_progress_end(struct bench_progress *progress)
{
	if (progress->is_terminal)
		fputs(CLEAR_LINE, stderr);
	bench_events_print(progress->events);
}
