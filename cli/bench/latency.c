/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latencies that the bench measures itself, for three cases that the library cannot
 * report. In an open load the latency begins at the time for which the request was
 * planned, and the library does not know this time. A mix needs a histogram for reads and
 * one for writes, and the library has one for both. And bars need a histogram, but the
 * library only reports quantiles. In the last two cases one slot in a few is measured.
 * All slots do the same, so this is a fair sample, and the clock costs nothing.
 *
 * Buckets are 1/16 of a power of two wide, so a quantile is within 6 %. Any thread may
 * add a sample. They are read when the run is over.
 */
#include <string.h>

#include "cli/bench/bench.h"

#define STEPS_BITS 4
#define STEPS (1u << STEPS_BITS)

void bench_latency_clear(struct bench_latency *latency)
{
	memset(latency, 0, sizeof(*latency));
}

static uint32_t bucket_of(uint64_t ns)
{
	uint32_t shift;

	if (ns < STEPS)
		return ns;
	shift = 63 - __builtin_clzll(ns) - STEPS_BITS;
	return (shift + 1) * STEPS + (uint32_t)((ns >> shift) & (STEPS - 1));
}

uint64_t bench_latency_bucket_end_ns(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < STEPS)
		return bucket;
	shift = bucket / STEPS - 1;
	return ((uint64_t)(STEPS + bucket % STEPS + 1) << shift) - 1;
}

void bench_latency_add(struct bench_latency *latency, uint64_t ns)
{
	uint64_t max = atomic_load_explicit(&latency->max_ns,
					    memory_order_relaxed);

	atomic_fetch_add_explicit(&latency->counts[bucket_of(ns)], 1,
				  memory_order_relaxed);
	while (ns > max && !atomic_compare_exchange_weak(&latency->max_ns,
							 &max, ns))
		;
}

void bench_latency_merge(struct bench_latency *latency,
			 const struct bench_latency *other)
{
	for (uint32_t i = 0; i < BENCH_LATENCY_BUCKETS; i++)
		latency->counts[i] += other->counts[i];
	if (latency->max_ns < other->max_ns)
		latency->max_ns = other->max_ns;
}

uint64_t bench_latency_quantile_ns(const struct bench_latency *latency,
				   uint32_t per_mille)
{
	uint64_t sum = 0, rank, seen = 0;

	for (uint32_t i = 0; i < BENCH_LATENCY_BUCKETS; i++)
		sum += latency->counts[i];
	rank = (sum * per_mille + 999) / 1000;
	for (uint32_t i = 0; i < BENCH_LATENCY_BUCKETS; i++) {
		seen += latency->counts[i];
		if (seen >= rank && seen)
			return bench_latency_bucket_end_ns(i) < latency->max_ns ?
				       bench_latency_bucket_end_ns(i) :
				       latency->max_ns;
	}
	return 0;
}
