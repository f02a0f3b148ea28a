/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latencies as bars: a line for each power of two of microseconds, or for several powers
 * if there were too many lines. The first line has all that is shorter.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/bench/bench.h"

#define LINES_MAX 12u
#define BAR_COLUMNS 40u

/* Counts of requests; index n has those that took less than 2^n ns. */
struct powers {
	uint64_t counts[65];
	uint64_t sum;
	uint64_t most;
	uint32_t first, last; /* powers with requests */
};

/* Each bucket of a latency lies within one power of two. */
static void count_powers(const struct bench_latency *latency, struct powers *powers)
{
	*powers = (struct powers){ .first = 64 };
	for (uint32_t i = 0; i < BENCH_LATENCY_BUCKETS; i++) {
		uint64_t end_ns = bench_latency_bucket_end_ns(i);
		uint32_t power = end_ns ? 64 - __builtin_clzll(end_ns) : 0;

		if (!latency->counts[i])
			continue;
		powers->counts[power] += latency->counts[i];
		powers->sum += latency->counts[i];
		if (power < powers->first)
			powers->first = power;
		powers->last = power;
	}
}

json_t *bench_histogram_json(const struct bench_latency *latency)
{
	json_t *json = json_array();
	struct powers powers;

	count_powers(latency, &powers);
	for (uint32_t i = powers.first; powers.sum && i <= powers.last; i++)
		json_array_append_new(
			json, json_pack("{sf sI}", "below_us",
					(double)(1ull << (i < 63 ? i : 63)) / 1e3, "requests",
					(json_int_t)powers.counts[i]));
	return json;
}

static void print_line(uint32_t power, uint64_t count, const struct powers *powers)
{
	static const char bar[] = "########################################";
	uint32_t columns = (uint32_t)((double)count / powers->most * BAR_COLUMNS + 0.5);

	_Static_assert(sizeof(bar) - 1 == BAR_COLUMNS, "a bar of full length");
	if (count && !columns)
		columns = 1;
	printf("  < %12.1f us %6.2f %%  %.*s\n", (double)(1ull << (power < 63 ? power : 63)) / 1e3,
	       100.0 * count / powers->sum, (int)columns, bar);
}

void bench_histogram_print(const struct bench_latency *latency)
{
	struct powers powers;
	uint32_t step;

	count_powers(latency, &powers);
	if (!powers.sum)
		return;
	step = (powers.last - powers.first) / LINES_MAX + 1;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = powers.first; i <= powers.last; i += step) {
			uint64_t count = 0;

			for (uint32_t j = i; j < i + step && j <= powers.last; j++)
				count += powers.counts[j];
			if (!pass && count > powers.most)
				powers.most = count;
			if (pass)
				print_line(i + step - 1, count, &powers);
		}
}
