/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tally.c - see tally.h. */
#include "sim/tally.h"

#include <string.h>

#define NAME_BYTES 24

uint64_t rbx_sim_tallies[RBX_SIM_TALLIES_COUNT];

const char *rbx_sim_tally_name(enum rbx_sim_tally tally)
{
	static char names[RBX_SIM_TALLIES_COUNT][NAME_BYTES] = {
#define X(name, what) #name,
		RBX_SIM_TALLIES(X)
#undef X
	};
	char *c;

	while ((c = strchr(names[tally], '_')))
		*c = '-';
	return names[tally];
}
