/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sim.h - the parts of rdmabox sim.
 *
 *	sim.c      one run, and its result as JSON
 *	hunt.c     many runs
 *	options.c  the options, and the checks between them
 */
#ifndef CLI_SIM_H
#define CLI_SIM_H

#include "cli/cli.h"
#include "sim/command.h"

struct sim_options {
	char scenario[64];
	char nic[256];
	char json[256];
	uint32_t hunt_seconds; /* 0: one run */
	uint32_t seeds_max;
	uint32_t trace;
	uint32_t progress; /* also if stderr is no terminal */
};

extern struct sim_options sim_options;
extern struct rbx_sim_command sim_line; /* the same, for the simulator */
extern struct cli_command sim_command;

/* Returns 0 or an exit code. */
int sim_options_check(void);
int sim_hunt(void);

int cli_sim(int argc, char **argv);

#endif
