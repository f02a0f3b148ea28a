// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * logistic.c - logistic regression by gradient descent over all rows.
 *
 * A hidden plane decides the class of a row. Each pass reads all rows once, and takes a step
 * against the mean gradient.
 */
#include <math.h>

#include "learn.h"

#define FEATURES 64
#define PASSES 3
#define RATE 4.0f

static float dot(const float *a, const float *b)
{
	float sum = 0;

	for (int i = 0; i < FEATURES; i++)
		sum += a[i] * b[i];
	return sum;
}

double learn_logistic(size_t bytes)
{
	size_t rows = bytes / (FEATURES * sizeof(float)), right = 0;
	float *data = learn_alloc(rows * FEATURES, sizeof(*data));
	float *classes = learn_alloc(rows, sizeof(*classes));
	float plane[FEATURES], weights[FEATURES] = { 0 };
	uint64_t random = 42;

	for (int i = 0; i < FEATURES; i++)
		plane[i] = learn_random(&random) - 0.5f;
	for (size_t row = 0; row < rows; row++) {
		float *x = data + row * FEATURES;

		for (int i = 0; i < FEATURES; i++)
			x[i] = learn_random(&random) - 0.5f;
		classes[row] = dot(x, plane) > 0;
	}
	for (int pass = 0; pass < PASSES; pass++) {
		float gradient[FEATURES] = { 0 };

		right = 0;
		for (size_t row = 0; row < rows; row++) {
			const float *x = data + row * FEATURES;
			float guess = 1 / (1 + expf(-dot(x, weights)));
			float error = guess - classes[row];

			right += (guess > 0.5f) == (classes[row] > 0.5f);
			for (int i = 0; i < FEATURES; i++)
				gradient[i] += error * x[i];
		}
		for (int i = 0; i < FEATURES; i++)
			weights[i] -= RATE * gradient[i] / (float)rows;
	}
	return (double)right / (double)rows + (double)weights[0];
}
