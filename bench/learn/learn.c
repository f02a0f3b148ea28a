// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * learn.c - see learn.h.
 *
 * Usage: learn logistic|boosting|k-means|text-rank BYTES Prints JSON: the seconds that it
 * took, and the result.
 */
#include "learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
	const char *name;
	double (*run)(size_t bytes);
} programs[] = {
	{ "logistic", learn_logistic },
	{ "boosting", learn_boosting },
	{ "k-means", learn_k_means },
	{ "text-rank", learn_text_rank },
};

#define PROGRAM_COUNT (sizeof(programs) / sizeof(programs[0]))

void *learn_alloc(size_t count, size_t size_bytes)
{
	void *memory = calloc(count, size_bytes);

	if (!memory) {
		perror("learn");
		exit(2);
	}
	return memory;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, i = 0;
	double begin_s, result;

	while (argc == 3 && i < PROGRAM_COUNT && strcmp(argv[1], programs[i].name))
		i++;
	if (i == PROGRAM_COUNT || bytes < 1 << 16) {
		fprintf(stderr, "usage: learn logistic|boosting|k-means|text-rank BYTES (64 KiB or more)\n");
		return 2;
	}
	begin_s = now_s();
	result = programs[i].run(bytes);
	printf("{\"seconds\": %.6f, \"result\": %.9g}\n", now_s() - begin_s, result);
	return 0;
}
