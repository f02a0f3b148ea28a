/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * learn.h - four programs that learn from data, as loads for a machine that is short of
 * memory. They access their memory in four ways:
 *
 *	logistic.c  rows, all of them, again and again
 *	boosting.c  columns, one after the other, and what is left of each row
 *	k_means.c   rows, beside a little that stays
 *	text_rank.c a graph, from node to node at random
 *
 * Each makes its data, which takes about `bytes`, learns from it and returns a number that
 * summarizes the result: the same for the same bytes, wherever the memory was swapped to.
 */
#ifndef RBX_BENCH_LEARN_H
#define RBX_BENCH_LEARN_H

#include <stddef.h>
#include <stdint.h>

double learn_logistic(size_t bytes);
double learn_boosting(size_t bytes);
double learn_k_means(size_t bytes);
double learn_text_rank(size_t bytes);

/* Zeroed memory; the program ends if there is none. */
void *learn_alloc(size_t count, size_t size_bytes);

/* The next random number, in [0, 1). */
static inline float learn_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (float)(*state >> 40) / (float)(1 << 24);
}

#endif
