/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * random.h - random numbers, from one seed.
 *
 * Each part of a simulation has a generator of its own, split from the seed by the part's
 * name and number. So one more draw in one part does not change what happens in the others.
 * Chances are in millionths, so no float decides anything.
 */
#ifndef RBX_SIM_RANDOM_H
#define RBX_SIM_RANDOM_H

#include "core/random.h"

#define RBX_SIM_MILLION 1000000u

/* The generator of a part, for example "link", 3. */
static inline void rbx_sim_random_split(struct rbx_random *random,
					uint64_t seed, const char *name,
					uint32_t number)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
	rbx_random_seed(random, seed ^ hash ^ (uint64_t)number << 32);
	rbx_random_seed(random, rbx_random_next(random));
}

static inline bool rbx_sim_chance(struct rbx_random *random,
				  uint32_t of_a_million)
{
	return rbx_random_below(random, RBX_SIM_MILLION) < of_a_million;
}

/* From low to high, both included. */
static inline uint64_t rbx_sim_between(struct rbx_random *random, uint64_t low,
				       uint64_t high)
{
	RBX_ASSERT(low <= high && high - low < UINT64_MAX);
	return low + rbx_random_next(random) % (high - low + 1);
}

#endif
