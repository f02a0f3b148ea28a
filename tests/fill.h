/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fill.h - fills memory with random bytes, the same for the same seed. */
#ifndef RBX_TESTS_FILL_H
#define RBX_TESTS_FILL_H

#include <string.h>

#include "core/random.h"

/* Eight at a time: TSan looks at each store, and tests fill megabytes. */
static inline void fill_bytes(uint8_t *bytes, size_t length_bytes, uint64_t seed)
{
	struct rbx_random random;

	rbx_random_seed(&random, seed);
	for (size_t i = 0; i < length_bytes; i += 8) {
		uint64_t word = rbx_random_next(&random);

		memcpy(bytes + i, &word, RBX_MIN(length_bytes - i, sizeof(word)));
	}
}

#endif
