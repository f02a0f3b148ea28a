/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * "Did you mean": finds the word with the fewest slips, if they are not too many. A slip
 * is a letter that is wrong, missing, extra, or swapped with its neighbour.
 */
#include <string.h>

#include "cli/cli.h"

#define WORD_MAX 40u

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Restricted Damerau-Levenshtein distance, of words of at most WORD_MAX letters. */
static unsigned int slips(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned int at[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= a_len; i++)
		at[i][0] = i;
	for (size_t j = 0; j <= b_len; j++)
		at[0][j] = j;
	for (size_t i = 1; i <= a_len; i++)
		for (size_t j = 1; j <= b_len; j++) {
			unsigned int here = at[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			here = least(here, least(at[i - 1][j], at[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				here = least(here, at[i - 2][j - 2] + 1);
			at[i][j] = here;
		}
	return at[a_len][b_len];
}

/* One slip is allowed for every three letters, and one in any case; a word of one letter is like
 * none. */
const char *cli_nearest(const char *word, const char *(*next)(const void *of, size_t index),
			const void *of)
{
	size_t len = strlen(word);
	unsigned int fewest = (len < 3 ? 1 : len / 3) + 1;
	const char *other, *nearest = NULL;

	if (len < 2 || len > WORD_MAX)
		return NULL;
	for (size_t i = 0; (other = next(of, i)); i++) {
		size_t other_len = strlen(other);
		unsigned int count;

		if (other_len > WORD_MAX)
			continue;
		count = slips(word, len, other, other_len);
		if (count < fewest) {
			fewest = count;
			nearest = other;
		}
	}
	return nearest;
}
