/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planted.c - how many seeds a simulation with a bug in it needs to find it.
 *
 * Usage: planted [SCENARIO [SEEDS]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"

#define SEEDS_MAX 1000u

int main(int argc, char **argv)
{
	const char *const scenarios[] = { "volume", "reclaim", "partition" };
	uint64_t seeds_max = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS_MAX;
	struct rbx_sim_command command = { .silent = true };
	struct rbx_sim_outcome outcome;

	for (command.seed = 1; command.seed <= seeds_max; command.seed++) {
		for (size_t i = 0; i < 3; i++) {
			command.scenario = scenarios[i];
			if (argc > 1 && strcmp(argv[1], scenarios[i]))
				continue;
			if (rbx_sim_command_run(&command, &outcome))
				return 2;
			if (outcome.failed[0] == '\0')
				continue;
			printf("found by seed %" PRIu64 " of %s: %s: %s\n",
			       command.seed, command.scenario, outcome.failed,
			       outcome.what);
			return 0;
		}
	}
	printf("not found in %" PRIu64 " seeds\n", seeds_max);
	return 1;
}
