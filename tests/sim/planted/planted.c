/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planted.c - how many seeds a simulation with a bug in it needs to find it, by the
 * check that is there for such a bug. Other checks may find it before.
 *
 * Usage: planted SCENARIO INVARIANT [seed=N] [SITE=P]...
 *
 * A site goes wrong with another chance where the bug hides behind what is rare. The first seed is
 * 1, or one that is known to find what few do: after a change of the code it may be another one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/command.h"

#define SEEDS_MAX 1000u

int main(int argc, char **argv)
{
	struct rbx_sim_command command = { .silent = true };
	struct rbx_sim_outcome outcome;
	uint64_t first = 1;

	if (argc < 3 || argc - 3 > (int)RBX_SIM_FAULTS_MAX)
		return 2;
	command.scenario = argv[1];
	for (int i = 3; i < argc; i++)
		if (sscanf(argv[i], "seed=%" SCNu64, &first) != 1)
			command.faults[command.faults_count++] = argv[i];
	for (command.seed = first; command.seed < first + SEEDS_MAX; command.seed++) {
		if (rbx_sim_command_run(&command, &outcome))
			return 2;
		if (outcome.failed[0] == '\0')
			continue;
		printf("seed %" PRIu64 ": %s: %s\n", command.seed,
		       outcome.failed, outcome.what);
		if (strcmp(outcome.failed, argv[2]) == 0)
			return 0;
	}
	printf("not found in %u seeds\n", SEEDS_MAX);
	return 1;
}
