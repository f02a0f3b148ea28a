/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* trace.c - see trace.h. */
#include "sim/trace.h"

#include <inttypes.h>

#include "sim/events.h"

#define START 0x9ae16a3b2f90404fu

static uint64_t hash = START;
static FILE *lines;

static uint64_t mix(uint64_t state, uint64_t value)
{
	state = (state ^ value) * 0x9fb21c651e98df25u;
	return state ^ state >> 35;
}

/* By its text and not by its address, which differs between builds. */
static uint64_t name_hash(const char *name)
{
	uint64_t state = START;

	for (; *name != '\0'; name++)
		state = mix(state, (uint8_t)*name);
	return state | 1;
}

void rbx_sim_trace_add(struct rbx_sim_change *change, uint32_t node,
		       uint64_t first, uint64_t second)
{
	if (change->name_hash == 0)
		change->name_hash = name_hash(change->what);
	hash = mix(hash, rbx_sim_now());
	hash = mix(hash, change->name_hash + node);
	hash = mix(hash, first);
	hash = mix(hash, second);
	if (lines)
		fprintf(lines,
			"%12" PRIu64 " %3" PRIu32 " %-16s %s=%" PRIu64
			" %s=%" PRIu64 "\n",
			rbx_sim_now(), node, change->what, change->first_name,
			first, change->second_name, second);
}

void rbx_sim_trace_to(FILE *file)
{
	lines = file;
}

uint64_t rbx_sim_trace_hash(void)
{
	return hash;
}

void rbx_sim_trace_reset(void)
{
	hash = START;
}
