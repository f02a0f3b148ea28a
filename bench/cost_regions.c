/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost_regions.c - uses a cache of registered regions, for counting its instructions.
 *
 * The cache has regions of 64 pages, registered in random order. An eighth of its budgets is free:
 * a sample of a full cache, as auto has it, would be a little too full, and register. Then requests
 * come for memory that is known: each acquires and releases. Nothing is registered any more.
 *
 *	exact  whole regions at random, each of which was used before: the table of last hits knows
 *	       most of them
 *	part   a few pages from anywhere in a region: the index is searched
 *
 * bench/cost runs it under callgrind, which counts from the entry to the end of round_trip(). What
 * comes before is not counted, and is quick if callgrind is told so (--instr-atstart=no).
 *
 * Usage: cost_regions POLICY REGIONS exact|part
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "core/random.h"
#include "core/region_auto.h"
#include "core/regions_play.h"

#define ROUNDS 16384u
#define REGION_BYTES (64u * RBX_PAGE_BYTES)
#define PART_BYTES (4u * RBX_PAGE_BYTES)

static struct rbx_regions regions;

/* The counted part. Not inlined, so that callgrind finds its beginning. */
__attribute__((noinline)) static int round_trip(uint64_t addr, uint64_t length)
{
	struct rbx_region_use use;
	int err = rbx_regions_acquire(&regions, &use, addr, length, 0);

	if (!err)
		rbx_regions_release(&regions, &use);
	return err;
}

/* In random order, each a gap apart from the next. */
static void fill(struct rbx_random *random, uint32_t count)
{
	uint32_t *order = malloc(count * sizeof(*order)), i;

	for (i = 0; i < count; i++) {
		uint32_t at = rbx_random_below(random, i + 1);

		order[i] = order[at];
		order[at] = i;
	}
	for (i = 0; i < count; i++)
		rbx_regions_play(&regions, order[i] * 2ull * REGION_BYTES, REGION_BYTES);
	for (i = 0; i < count; i++)
		rbx_regions_play(&regions, order[i] * 2ull * REGION_BYTES, REGION_BYTES);
	free(order);
}

static int use_all(struct rbx_random *random, uint32_t count, bool exact)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t addr = rbx_random_below(random, count) * 2ull * REGION_BYTES;
		uint64_t length = REGION_BYTES;

		if (!exact) {
			addr += rbx_random_below(random, REGION_BYTES - PART_BYTES);
			length = PART_BYTES;
		}
		if (round_trip(addr, length))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct rbx_region_policy *policy = argc == 4 ? rbx_region_policy_find(argv[1]) : NULL;
	uint32_t count = policy ? (uint32_t)atoi(argv[2]) : 0;
	struct rbx_regions_shape shape = {
		.bytes_max = (uint64_t)(count + count / 8) * REGION_BYTES,
		.regions_max = count + count / 8,
		.cost = { 770, 7420, 220, 1100 },
		.policy = policy,
	};
	struct rbx_random random;
	void *memory;

	if (!count || count > 1000000) {
		fprintf(stderr, "usage: cost_regions POLICY 1..1000000 exact|part\n");
		return 2;
	}
	memory = calloc(1, rbx_regions_size(&shape));
	if (!memory || rbx_regions_init(&regions, &shape, memory))
		return 2;
	rbx_random_seed(&random, 1);
	fill(&random, count);
	CALLGRIND_START_INSTRUMENTATION;
	if (use_all(&random, count, !strcmp(argv[3], "exact")))
		return 1;
	CALLGRIND_STOP_INSTRUMENTATION;
	printf("%llu\n", (unsigned long long)regions.counters.hits);
	/* What was used was known. */
	return regions.counters.hits == count + ROUNDS ? 0 : 1;
}
