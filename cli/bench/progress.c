/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shows progress while a bench runs: on a terminal one line that is overwritten,
 * elsewhere, with --progress, a line every two seconds. Events of the volume are printed
 * in any case.
 *
 * The rate is that since the last line; in the first line of a phase it is that since the
 * phase began.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/bench/bench.h"

#define CLEAR_LINE "\r\033[K"
#define LINE_EVERY_S 2.0
#define TERMINAL_EVERY_S 0.2

void bench_progress_init(struct bench_progress *progress,
			 struct bench_events *events, bool is_forced)
{
	*progress = (struct bench_progress){
		.events = events,
		.is_terminal = isatty(STDERR_FILENO),
	};
	progress->is_shown = progress->is_terminal || is_forced;
}

void bench_progress_begin(struct bench_progress *progress, const struct bench_phase *phase)
{
	progress->phase = *phase;
	progress->shown_at_s = 0;
	progress->shown_requests = 0;
}

/* Estimates the time left: by time, or by the rate so far. */
static double left_s(const struct bench_phase *phase, uint64_t requests, double elapsed_s)
{
	double left;

	if (phase->requests_total)
		left = requests ? elapsed_s * ((double)phase->requests_total / requests - 1) : 0;
	else
		left = phase->runtime_s - elapsed_s;
	return left > 0 ? left : 0;
}

static double percent(const struct bench_phase *phase, uint64_t requests, double elapsed_s)
{
	double done = phase->requests_total ? 100.0 * requests / phase->requests_total :
					      100.0 * elapsed_s / phase->runtime_s;

	return done > 100 ? 100 : done;
}

static void print_line(const struct bench_progress *progress, uint64_t requests,
		       double elapsed_s, double rate)
{
	const struct bench_phase *phase = &progress->phase;
	uint64_t p50_ns = phase->load ? bench_load_p50_ns(phase->load) : 0;

	fprintf(stderr, "%s%-7s %3.0f %%  %.0f requests/s  %.1f MB/s",
		progress->is_terminal ? CLEAR_LINE : "", phase->name,
		percent(phase, requests, elapsed_s), rate,
		rate * phase->request_bytes / 1e6);
	if (p50_ns)
		fprintf(stderr, "  p50 %.1f us", p50_ns / 1e3);
	fprintf(stderr, "  %.0f s left%s", left_s(phase, requests, elapsed_s),
		progress->is_terminal ? "" : "\n");
	fflush(stderr);
}

void bench_progress_show(void *progress_pointer, uint64_t requests,
			 double elapsed_s)
{
	struct bench_progress *progress = progress_pointer;
	double since_s = elapsed_s - progress->shown_at_s;

	bench_events_print(progress->events);
	if (!progress->is_shown ||
	    since_s < (progress->is_terminal ? TERMINAL_EVERY_S : LINE_EVERY_S))
		return;
	print_line(progress, requests, elapsed_s,
		   (requests - progress->shown_requests) / since_s);
	progress->shown_at_s = elapsed_s;
	progress->shown_requests = requests;
}

void bench_progress_end(struct bench_progress *progress)
{
	if (progress->is_terminal)
		fputs(CLEAR_LINE, stderr);
	bench_events_print(progress->events);
}
