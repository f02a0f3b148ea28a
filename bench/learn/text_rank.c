// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * text_rank.c - TextRank: finds important words of a text by ranks in a graph, in which words
 * that stand beside each other are neighbours.
 *
 * The words have a natural distribution: the frequency of the r-th is about 1/r. The graph is
 * one array of neighbours, by word.
 */
#include <math.h>

#include "learn.h"

#define WORDS_EACH 16 /* neighbours of a word, on average */
#define PASSES 2
#define DAMPING 0.85f

/* A word of a vocabulary: its rank is e to the power of a uniform number. */
static uint32_t word(uint64_t *random, uint32_t words)
{
	uint32_t rank = (uint32_t)expf(learn_random(random) * logf((float)words));

	/* Frequent words are not together in memory. */
	return (uint32_t)((uint64_t)(rank % words) * 2654435761u % words);
}

/* Where the neighbours of each word begin in an array of them all. */
static uint32_t *begins_of(const uint32_t *text, size_t length, uint32_t words)
{
	uint32_t *begins = learn_alloc(words + 1u, sizeof(*begins));

	for (size_t i = 0; i + 1 < length; i++) {
		begins[text[i] + 1]++;
		begins[text[i + 1] + 1]++;
	}
	for (uint32_t i = 0; i < words; i++)
		begins[i + 1] += begins[i];
	return begins;
}

static uint32_t *neighbours_of(const uint32_t *text, size_t length, uint32_t words,
			       const uint32_t *begins)
{
	uint32_t *neighbours = learn_alloc(2 * length, sizeof(*neighbours));
	uint32_t *used = learn_alloc(words, sizeof(*used));

	for (size_t i = 0; i + 1 < length; i++) {
		uint32_t a = text[i], b = text[i + 1];

		neighbours[begins[a] + used[a]++] = b;
		neighbours[begins[b] + used[b]++] = a;
	}
	return neighbours;
}

double learn_text_rank(size_t bytes)
{
	/* The text, and two neighbours for each word in it. */
	size_t length = bytes / (3 * sizeof(uint32_t));
	uint32_t words = (uint32_t)(length / WORDS_EACH), *begins, *neighbours;
	uint32_t *text = learn_alloc(length, sizeof(*text));
	float *ranks = learn_alloc(words, sizeof(*ranks));
	float *next = learn_alloc(words, sizeof(*next)), most = 0;
	uint64_t random = 11;

	for (size_t i = 0; i < length; i++)
		text[i] = word(&random, words);
	begins = begins_of(text, length, words);
	neighbours = neighbours_of(text, length, words, begins);
	for (uint32_t i = 0; i < words; i++)
		ranks[i] = 1;
	for (int pass = 0; pass < PASSES; pass++) {
		float *last = ranks;

		for (uint32_t i = 0; i < words; i++) {
			float sum = 0;

			for (uint32_t j = begins[i]; j < begins[i + 1]; j++) {
				uint32_t other = neighbours[j];

				sum += last[other] / (float)(begins[other + 1] - begins[other]);
			}
			next[i] = 1 - DAMPING + DAMPING * sum;
		}
		ranks = next;
		next = last;
	}
	for (uint32_t i = 0; i < words; i++)
		most = ranks[i] > most ? ranks[i] : most;
	return (double)most;
}
