/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * storm_harm.h - harm of all kinds to the servers and slabs of a volume, at random.
 *
 * It is done only if it leaves a copy of all that was acknowledged, or it is noted
 * (storm_io.h) that it may cost a slab.
 */
#ifndef RBX_TEST_STORM_HARM_H
#define RBX_TEST_STORM_HARM_H

#include "core/random.h"
#include "tests/core/storm_io.h"

#define SECOND_NS 1000000000ull

/* Which harm there is. */
struct mix {
	const char *name;
	uint32_t seeds_count;
	bool on_demand, checksums; /* the volume */
	bool evicts; /* servers want memory back, or have revoked it */
	bool kills; /* servers; they come back */
	bool falls_silent; /* and what is elsewhere is done without (last_copies.h) */
	bool faults_here; /* of this machine */
	bool discards;
	bool reuses_keys; /* what is lent again has the same key */
	bool costs; /* harm is also done where it costs what is there */
	bool closes; /* in the middle of all that */
};

extern struct storm {
	const struct mix *mix; /* NULL: it is over */
	uint64_t seed;
	struct rbx_random random;
	struct host *host;
	struct storm_io io;
	uint32_t slabs, replicas;
	uint32_t down_count; /* servers */
	uint32_t silent; /* the server that was silent last */
} storm;

static inline uint32_t draw(uint32_t below)
{
	return rbx_random_below(&storm.random, below);
}

static inline bool one_of(uint32_t count)
{
	return draw(count) == 0;
}

/* One of all kinds, if the mix has it. */
void storm_harm(void);
/* A server is silent for a moment, and what is elsewhere is done without. */
void storm_silence(void);

#endif
