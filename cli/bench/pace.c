/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses --load, finds its pace, and makes a pace sleep.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/load.h"

/* A sleeping worker checks this often whether the run is over. */
#define SLEEP_NS_MAX 100000000ull
#define RATE_MAX 100000000ull
/* Shorter than a stall. */
#define GAP_NS_MAX 5000000000ull

/* "250us": digits and a unit; "0" needs none. */
static bool parse_time(const char *text, uint64_t *time_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 },
		{ "s", 1000000000 },
	};
	uint64_t number;
	int end = 0;

	if (*text < '0' || *text > '9' ||
	    sscanf(text, "%10" SCNu64 "%n", &number, &end) != 1)
		return false;
	if (!text[end] && !number) {
		*time_ns = 0;
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(text + end, units[i].name)) {
			*time_ns = number * units[i].ns;
			return *time_ns <= GAP_NS_MAX;
		}
	}
	return false;
}

static bool parse_burst(const char *text, struct bench_timing *timing)
{
	uint32_t size;
	int end = 0;

	if (*text < '0' || *text > '9' ||
	    sscanf(text, "%9" SCNu32 ":%n", &size, &end) != 1 || !end ||
	    size < 1 || size > BENCH_DEPTH_MAX)
		return false;
	timing->kind = BENCH_BURST;
	timing->burst_size = size;
	return parse_time(text + end, &timing->gap_ns);
}

static bool parse_open(const char *text, struct bench_timing *timing)
{
	int end = 0;

	timing->kind = BENCH_OPEN;
	return *text >= '0' && *text <= '9' &&
	       sscanf(text, "%10" SCNu64 "%n", &timing->rate, &end) == 1 &&
	       !text[end] && timing->rate >= 1 && timing->rate <= RATE_MAX;
}

int bench_timing_parse(const char *text, struct bench_timing *timing,
		       char *reason, size_t reason_bytes)
{
	*timing = (struct bench_timing){ .kind = BENCH_CLOSED };
	if (!strcmp(text, "closed") ||
	    (!strncmp(text, "open:", 5) && parse_open(text + 5, timing)) ||
	    (!strncmp(text, "burst:", 6) && parse_burst(text + 6, timing)))
		return 0;
	snprintf(reason, reason_bytes, "give closed, open:RATE with 1 to %llu "
		 "requests/s, or burst:SIZE:GAP with 1 to %d requests and a "
		 "time such as 0, 50us or 2ms", RATE_MAX, BENCH_DEPTH_MAX);
	return -EINVAL;
}

const struct bench_pace *bench_pace_of(enum bench_timing_kind kind)
{
	switch (kind) {
	case BENCH_OPEN:
		return &bench_pace_open;
	case BENCH_BURST:
		return &bench_pace_burst;
	case BENCH_CLOSED:
		break;
	}
	return &bench_pace_closed;
}

static bool is_running(const struct bench_worker *worker)
{
	return !atomic_load_explicit(&worker->load->stop, memory_order_relaxed);
}

bool bench_worker_sleep(const struct bench_worker *worker, uint64_t at_ns)
{
	uint64_t now_ns = bench_now_ns();

	/* A worker that is late does not sleep: it has to catch up. */
	while (now_ns < at_ns && is_running(worker)) {
		uint64_t until_ns = at_ns < now_ns + SLEEP_NS_MAX ?
					    at_ns :
					    now_ns + SLEEP_NS_MAX;
		struct timespec until = {
			.tv_sec = until_ns / 1000000000,
			.tv_nsec = until_ns % 1000000000,
		};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		now_ns = bench_now_ns();
	}
	return is_running(worker);
}
