/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * histogram.h - latencies within 4 %, in constant memory and time.
 *
 * Buckets grow with the value: 32 to each power of two, so a bucket is at most
 * 1/32 of its value wide. One writer; readers see counts that were true at
 * slightly different moments.
 */
#ifndef RBX_HISTOGRAM_H
#define RBX_HISTOGRAM_H

#include "core/port.h"

#define RBX_HISTOGRAM_SUB_BITS 5
#define RBX_HISTOGRAM_SUB_COUNT (1u << RBX_HISTOGRAM_SUB_BITS)
#define RBX_HISTOGRAM_BUCKETS \
	((64 - RBX_HISTOGRAM_SUB_BITS + 1) * RBX_HISTOGRAM_SUB_COUNT)

struct rbx_histogram {
	uint64_t max;
	uint64_t counts[RBX_HISTOGRAM_BUCKETS];
};

void rbx_histogram_clear(struct rbx_histogram *histogram);

/* Values below twice RBX_HISTOGRAM_SUB_COUNT have a bucket each. */
static inline size_t rbx_histogram_bucket(uint64_t value)
{
	/* 63 - n, but the compiler sees through this: it is one instruction. */
	uint32_t highest_bit =
		63 ^ (uint32_t)__builtin_clzll(value | RBX_HISTOGRAM_SUB_COUNT);
	uint32_t shift = highest_bit - RBX_HISTOGRAM_SUB_BITS;

	return (shift << RBX_HISTOGRAM_SUB_BITS) + (size_t)(value >> shift);
}

/* Only for the one writer. */
static inline void rbx_histogram_add(struct rbx_histogram *histogram,
				     uint64_t value)
{
	uint64_t *count = &histogram->counts[rbx_histogram_bucket(value)];

	RBX_STORE_RELAXED(count, RBX_LOAD_RELAXED(count) + 1);
	if (value > RBX_LOAD_RELAXED(&histogram->max))
		RBX_STORE_RELAXED(&histogram->max, value);
}

/* Adds the counts of another histogram. */
void rbx_histogram_merge(struct rbx_histogram *to,
			 const struct rbx_histogram *from);

/*
 * The value that part_per_thousand of all values do not exceed: 500 is the median, 999 is
 * p99.9. The upper end of its bucket, at most the maximum; 0 if nothing was counted.
 */
uint64_t rbx_histogram_quantile(const struct rbx_histogram *histogram,
				uint32_t part_per_thousand);

#endif
