/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Zipf: the block of rank r is drawn with a probability of 1 / r^0.99.
 *
 * This is the skew of YCSB and of the paper's mixes. The ranks are scattered over the
 * volume by a random permutation, since the hot pages of a program are not neighbours.
 *
 * A draw is O(1) and uses only integers (Walker's alias method, built as by Vose). Each
 * block has a column. A column holds the block's own probability up to a threshold, and
 * that of one other block above it, so all columns are equally likely. The high bits of a
 * random number choose the column, the low 32 bits the side of the threshold. Columns are
 * at the place of their block, so the permutation costs nothing in a draw. It takes 8
 * bytes for each block, and 12 more while the table is built.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cli/bench/bench.h"

#define THETA 0.99

struct column {
	uint32_t threshold; /* of 2^32 */
	uint32_t alias;
};

struct bench_zipf {
	uint32_t blocks;
	struct column columns[];
};

static void scatter(uint32_t *block_of_rank, uint32_t blocks, uint64_t seed)
{
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t j = bench_scale(bench_random(&seed), i + 1);

		block_of_rank[i] = block_of_rank[j];
		block_of_rank[j] = i;
	}
}

/* Computes the share of each block, in columns: 1.0 fills one. */
static void weigh(double *shares, const uint32_t *block_of_rank,
		  uint32_t blocks)
{
	double sum = 0;

	for (uint32_t rank = 0; rank < blocks; rank++) {
		double weight = pow(rank + 1.0, -THETA);

		shares[block_of_rank[rank]] = weight;
		sum += weight;
	}
	for (uint32_t block = 0; block < blocks; block++)
		shares[block] *= blocks / sum;
}

/* Fills columns that are too short from shares that are too large. @order is scratch
 * memory: short ones grow from the left, tall ones from the right. */
static void fill_columns(struct bench_zipf *zipf, double *shares,
			 uint32_t *order)
{
	uint32_t short_count = 0, tall_at = zipf->blocks;

	for (uint32_t block = 0; block < zipf->blocks; block++) {
		zipf->columns[block] = (struct column){ UINT32_MAX, block };
		if (shares[block] < 1)
			order[short_count++] = block;
		else
			order[--tall_at] = block;
	}
	while (short_count && tall_at < zipf->blocks) {
		uint32_t low = order[--short_count], high = order[tall_at];

		zipf->columns[low].threshold = shares[low] * 4294967295.0;
		zipf->columns[low].alias = high;
		shares[high] -= 1 - shares[low];
		if (shares[high] < 1) {
			tall_at++;
			order[short_count++] = high;
		}
	}
}

int bench_zipf_create(struct bench_zipf **zipf_out, uint32_t blocks,
		      uint64_t seed)
{
	uint32_t *order = malloc(blocks * sizeof(*order));
	double *shares = calloc(blocks, sizeof(*shares));
	struct bench_zipf *zipf;

	zipf = malloc(sizeof(*zipf) + blocks * sizeof(zipf->columns[0]));
	if (order && shares && zipf) {
		zipf->blocks = blocks;
		scatter(order, blocks, seed);
		weigh(shares, order, blocks);
		fill_columns(zipf, shares, order);
		*zipf_out = zipf;
	} else {
		free(zipf);
		zipf = NULL;
	}
	free(shares);
	free(order);
	return zipf ? 0 : -ENOMEM;
}

void bench_zipf_destroy(struct bench_zipf *zipf)
{
	free(zipf);
}

uint32_t bench_zipf_draw(const struct bench_zipf *zipf, uint64_t random)
{
	uint32_t block = bench_scale(random, zipf->blocks);
	const struct column *column = &zipf->columns[block];

	return (uint32_t)random <= column->threshold ? block : column->alias;
}
