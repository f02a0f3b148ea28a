/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* histogram.c - clearing, merging and reading; adding is inline. */
#include "core/histogram.h"

void rbx_histogram_clear(struct rbx_histogram *histogram)
{
	RBX_STORE_RELAXED(&histogram->max, 0);
	for (uint32_t i = 0; i < RBX_HISTOGRAM_BUCKETS; i++)
		RBX_STORE_RELAXED(&histogram->counts[i], 0);
}

void rbx_histogram_merge(struct rbx_histogram *to,
			 const struct rbx_histogram *from)
{
	to->max = RBX_MAX(to->max, RBX_LOAD_RELAXED(&from->max));
	for (uint32_t i = 0; i < RBX_HISTOGRAM_BUCKETS; i++)
		to->counts[i] += RBX_LOAD_RELAXED(&from->counts[i]);
}

/* The largest value of a bucket. */
static uint64_t bucket_end(uint32_t bucket)
{
	uint32_t shift = bucket >> RBX_HISTOGRAM_SUB_BITS;
	uint64_t sub = bucket & (RBX_HISTOGRAM_SUB_COUNT - 1);

	if (shift == 0)
		return sub;
	return ((sub + RBX_HISTOGRAM_SUB_COUNT + 1) << (shift - 1)) - 1;
}

uint64_t rbx_histogram_quantile(const struct rbx_histogram *histogram,
				uint32_t part_per_thousand)
{
	uint64_t total = 0, seen = 0, wanted;

	RBX_ASSERT(part_per_thousand <= 1000);
	for (uint32_t i = 0; i < RBX_HISTOGRAM_BUCKETS; i++)
		total += histogram->counts[i];
	if (total == 0)
		return 0;
	/* Rounded up, in two parts so that nothing overflows. */
	wanted = total / 1000 * part_per_thousand +
		 (total % 1000 * part_per_thousand + 999) / 1000;
	for (uint32_t i = 0; i < RBX_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->counts[i];
		if (seen >= wanted && seen != 0)
			return RBX_MIN(bucket_end(i), histogram->max);
	}
	return histogram->max;
}
