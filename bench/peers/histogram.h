/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A latency histogram of fixed size with 64 buckets per power of two.
 *
 * A percentile is the upper edge of its bucket and so at most 1/64 (1.6 %)
 * too high; the largest value is kept exactly. Recording is an increment, so
 * it does not disturb what is measured.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_FINE_BITS 6
#define HISTOGRAM_FINE (1u << HISTOGRAM_FINE_BITS)
/* Values below 64 ns have a bucket each, then 64 for each of 58 powers. */
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_FINE_BITS + 1) * HISTOGRAM_FINE)

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t max_ns;
};

static inline unsigned int histogram_bucket(uint64_t value_ns)
{
	unsigned int shift;

	if (value_ns < HISTOGRAM_FINE)
		return value_ns;
	shift = 63 - __builtin_clzll(value_ns) - HISTOGRAM_FINE_BITS;
	return shift * HISTOGRAM_FINE + (value_ns >> shift);
}

static inline uint64_t histogram_bucket_end_ns(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < HISTOGRAM_FINE)
		return bucket;
	shift = bucket / HISTOGRAM_FINE - 1;
	return ((uint64_t)(bucket % HISTOGRAM_FINE + HISTOGRAM_FINE + 1) << shift) - 1;
}

static inline void histogram_record(struct histogram *histogram, uint64_t value_ns)
{
	histogram->buckets[histogram_bucket(value_ns)]++;
	histogram->count++;
	if (value_ns > histogram->max_ns)
		histogram->max_ns = value_ns;
}

/* The value that @fraction of all values do not exceed; 0 when empty. */
static inline uint64_t histogram_percentile_ns(const struct histogram *histogram, double fraction)
{
	uint64_t wanted = histogram->count * fraction;
	uint64_t seen = 0;
	unsigned int i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen > wanted)
			break;
	}
	if (i == HISTOGRAM_BUCKETS || histogram_bucket_end_ns(i) > histogram->max_ns)
		return histogram->max_ns;
	return histogram_bucket_end_ns(i);
}

#endif
