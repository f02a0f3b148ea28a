/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim.h - a run: its options and its result. */
#ifndef RBX_SIM_H
#define RBX_SIM_H

#include <stdint.h>
#include <stdio.h>

#include "sim/sites.h"

struct rbx_sim_scenario {
	const char *name;
	const char *purpose;
	/* Sites that may go wrong in it; the first ones are always on. */
	const enum rbx_sim_site *sites;
	uint32_t sites_count;
	uint32_t sure_count;
	/* Draws the world from the seed, before the machines are made. */
	void (*draw)(void);
	/* Changes what was drawn for the clients; NULL: nothing. */
	void (*adjust)(void);
	/* What happens in it; NULL: volumes are used, and harm is done. */
	void (*direct)(void);
};

struct rbx_figure;
struct rbx_nic_params;

struct rbx_sim_options {
	uint64_t seed;
	/* The scenario, which checks or measures. */
	const struct rbx_sim_scenario *scenario;
	const struct rbx_figure *figure;
	uint32_t nodes_count; /* memory servers; 0: drawn */
	uint64_t events_max; /* of the load; 0: as the scenario says */
	const struct rbx_nic_params *nic; /* NULL: plain devices */
	bool is_forced[RBX_SIM_SITES_COUNT];
	uint32_t chances[RBX_SIM_SITES_COUNT]; /* of those, of a million */
	bool trace;
};

extern const struct rbx_sim_scenario rbx_sim_scenarios[];
extern const uint32_t rbx_sim_scenarios_count;

struct rbx_sim_outcome;

/* Runs in this process, once; returns if no failure was found. */
void rbx_sim_run(const struct rbx_sim_options *options);

/* The outcome so far. */
void rbx_sim_take_outcome(struct rbx_sim_outcome *outcome);

#endif
