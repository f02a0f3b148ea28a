// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * k_means.c - k-means by Lloyd's passes: each point goes to the nearest centre, each
 * centre to the mean of its points.
 */
#include <math.h>

#include "learn.h"

#define CENTRES 4
#define FEATURES 64
#define PASSES 3

static float distance(const float *a, const float *b)
{
	float sum = 0;

	for (int i = 0; i < FEATURES; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sum;
}

static int nearest(float centres[CENTRES][FEATURES], const float *point, float *least)
{
	int best = 0;

	*least = INFINITY;
	for (int i = 0; i < CENTRES; i++) {
		float found = distance(centres[i], point);

		if (found < *least) {
			*least = found;
			best = i;
		}
	}
	return best;
}

double learn_k_means(size_t bytes)
{
	size_t count = bytes / (FEATURES * sizeof(float));
	float *points = learn_alloc(count * FEATURES, sizeof(*points));
	float centres[CENTRES][FEATURES], least;
	double inertia = 0;
	uint64_t random = 7;

	/* As many clusters as centres, around the corners of a cube. */
	for (size_t i = 0; i < count; i++)
		for (int j = 0; j < FEATURES; j++)
			points[i * FEATURES + (size_t)j] =
				learn_random(&random) + (float)((i >> (j % 2)) & 1);
	for (int i = 0; i < CENTRES; i++)
		for (int j = 0; j < FEATURES; j++)
			centres[i][j] = points[i * FEATURES + j];
	for (int pass = 0; pass < PASSES; pass++) {
		float sums[CENTRES][FEATURES] = { 0 };
		size_t members[CENTRES] = { 0 };

		inertia = 0;
		for (size_t i = 0; i < count; i++) {
			const float *point = points + i * FEATURES;
			int centre = nearest(centres, point, &least);

			inertia += (double)least;
			members[centre]++;
			for (int j = 0; j < FEATURES; j++)
				sums[centre][j] += point[j];
		}
		for (int i = 0; i < CENTRES; i++)
			for (int j = 0; members[i] && j < FEATURES; j++)
				centres[i][j] = sums[i][j] / (float)members[i];
	}
	return inertia / (double)count;
}
