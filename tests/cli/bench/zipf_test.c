/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Zipf: the shares of the ranks, against the formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "cli/bench/bench.h"

#define DRAWS 2000000

static int more_first(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return (one < other) - (one > other);
}

/* Draws, and returns how often each block came, most frequent first. */
static uint32_t *draw_counts(uint32_t blocks, uint64_t seed)
{
	uint32_t *counts = calloc(blocks, sizeof(*counts));
	uint64_t random = seed;
	struct bench_zipf *zipf;

	assert_int_equal(bench_zipf_create(&zipf, blocks, seed), 0);
	for (int i = 0; i < DRAWS; i++) {
		uint32_t block = bench_zipf_draw(zipf, bench_random(&random));

		assert_in_range(block, 0, blocks - 1);
		counts[block]++;
	}
	bench_zipf_destroy(zipf);
	return counts;
}

static void zipf_ranks_have_their_shares(void **state)
{
	const uint32_t blocks = 1000;
	uint32_t *counts = draw_counts(blocks, 7);
	double sum = 0;

	(void)state;
	qsort(counts, blocks, sizeof(*counts), more_first);
	for (uint32_t rank = 1; rank <= blocks; rank++)
		sum += pow(rank, -0.99);
	/* The first hundred ranks come 2,000 times or more: seven deviations
	 * of such a count are far below a tenth of it plus a few. */
	for (uint32_t rank = 1; rank <= 100; rank++) {
		double expected = DRAWS * pow(rank, -0.99) / sum;

		assert_true(fabs(counts[rank - 1] - expected) <
			    0.1 * expected + 100);
	}
	free(counts);
}

static void zipf_hot_blocks_are_scattered(void **state)
{
	const uint32_t blocks = 1000;
	uint32_t *counts = draw_counts(blocks, 7);
	uint64_t front = 0;

	(void)state;
	/* Were block 0 the hottest, 1 the next and so on, nine tenths of the
	 * draws would be in the first half. */
	for (uint32_t block = 0; block < blocks / 2; block++)
		front += counts[block];
	assert_in_range(front, DRAWS / 5, DRAWS / 5 * 4);
	free(counts);
}

static void zipf_of_one_block_draws_it(void **state)
{
	uint32_t *counts = draw_counts(1, 1);

	(void)state;
	assert_int_equal(counts[0], DRAWS);
	free(counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zipf_ranks_have_their_shares),
		cmocka_unit_test(zipf_hot_blocks_are_scattered),
		cmocka_unit_test(zipf_of_one_block_draws_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
