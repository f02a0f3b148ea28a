// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * boosting.c - gradient boosting: each round fits a stump to the residuals of the earlier
 * stumps, by histograms of the binned columns.
 */
#include "learn.h"

#define COLUMNS 60
#define BINS 16
#define ROUNDS 3
#define RATE 0.5

struct stump {
	double gain;
	double left, right; /* what it adds */
	int column, bin; /* left: up to this bin */
};

static void consider(struct stump *best, int column, const double *sums, const size_t *counts)
{
	double total = 0, left = 0;
	size_t rows = 0, left_rows = 0;

	for (int bin = 0; bin < BINS; bin++) {
		total += sums[bin];
		rows += counts[bin];
	}
	for (int bin = 0; bin < BINS - 1; bin++) {
		double right = total - (left += sums[bin]), gain;
		size_t right_rows = rows - (left_rows += counts[bin]);

		if (!left_rows || !right_rows)
			continue;
		gain = left * left / (double)left_rows + right * right / (double)right_rows;
		if (gain > best->gain)
			*best = (struct stump){ gain, left / (double)left_rows,
						right / (double)right_rows, column, bin };
	}
}

double learn_boosting(size_t bytes)
{
	size_t rows = bytes / (COLUMNS + sizeof(float));
	uint8_t *columns = learn_alloc(rows, COLUMNS);
	float *rest = learn_alloc(rows, sizeof(*rest));
	double error = 0;
	uint64_t random = 3;

	for (size_t i = 0; i < rows * COLUMNS; i++)
		columns[i] = (uint8_t)(learn_random(&random) * BINS);
	for (size_t row = 0; row < rows; row++)
		rest[row] = (float)(columns[row] > 7) - (float)(columns[rows + row] > 11) +
			    learn_random(&random);
	for (int round = 0; round < ROUNDS; round++) {
		struct stump best = { .gain = -1 };

		for (int column = 0; column < COLUMNS; column++) {
			const uint8_t *values = columns + (size_t)column * rows;
			double sums[BINS] = { 0 };
			size_t counts[BINS] = { 0 };

			for (size_t row = 0; row < rows; row++) {
				sums[values[row]] += (double)rest[row];
				counts[values[row]]++;
			}
			consider(&best, column, sums, counts);
		}
		error = 0;
		for (size_t row = 0; row < rows; row++) {
			uint8_t value = columns[(size_t)best.column * rows + row];

			rest[row] -= (float)(RATE * (value <= best.bin ? best.left : best.right));
			error += (double)(rest[row] * rest[row]);
		}
	}
	return error / (double)rows;
}
