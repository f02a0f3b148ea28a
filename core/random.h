/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * random.h - seeded random numbers for decisions, not for secrets.
 *
 * SplitMix64: a counter run through a mixer. The same seed gives the same numbers on every
 * host, so a simulated run can be repeated. The owner of the state holds any lock that it
 * needs.
 */
#ifndef RBX_RANDOM_H
#define RBX_RANDOM_H

#include "core/port.h"

struct rbx_random {
	uint64_t state;
};

static inline void rbx_random_seed(struct rbx_random *random, uint64_t seed)
{
	random->state = seed;
}

static inline uint64_t rbx_random_next(struct rbx_random *random)
{
	uint64_t mixed = random->state += 0x9e3779b97f4a7c15u;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
	return mixed ^ (mixed >> 31);
}

/* A number from 0 to limit - 1. */
static inline uint32_t rbx_random_below(struct rbx_random *random,
					uint32_t limit)
{
	RBX_ASSERT(limit > 0);
	return (uint32_t)(((rbx_random_next(random) >> 32) * limit) >> 32);
}

#endif
