/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * command.h - the interface of rdmabox-sim(1) to the simulator.
 *
 * Each run is a process of its own: a simulation is global, and a run that finds a failure
 * ends at that point. This is the only header here that a program sees.
 */
#ifndef RBX_SIM_COMMAND_H
#define RBX_SIM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/report.h"

#define RBX_SIM_FAULTS_MAX 32u
#define RBX_SIM_TEXT_BYTES 256u
#define RBX_SIM_COUNTS_MAX 128u

struct rbx_sim_command {
	uint64_t seed;
	const char *scenario;
	/* to be modelled: a name of ours or a file; "": a plain device, or that of the figure */
	const char *nic;
	uint32_t nodes_count; /* machines; 0: as the seed or the figure says */
	uint64_t events_max; /* of the load; 0: as the scenario says */
	const char *faults[RBX_SIM_FAULTS_MAX]; /* "qp-error=0.01" */
	uint32_t faults_count;
	bool hunts; /* runs many seeds (a hunt) */
	bool (*goes_on)(void); /* of a hunt: called often; false ends it. NULL: true */
	bool trace; /* a line for each change of state */
	bool silent; /* prints nothing */
};

/* The result of a run. */
struct rbx_sim_outcome {
	char failed[RBX_SIM_TEXT_BYTES]; /* the invariant that failed; "": none */
	char what[RBX_SIM_TEXT_BYTES];
	int32_t print_status; /* 0, or -errno: stdout did not take all of it */
	uint64_t hash;
	uint64_t events;
	uint64_t requests;
	uint64_t virtual_ns;
	uint64_t faults_fired;
	uint64_t counts[RBX_SIM_COUNTS_MAX]; /* see below */
	struct rbx_report report; /* of a scenario that measures */
};

/* The name of a count of a run: "fault late-completion", how often the fault happened, and
 * "proof units-read", how often that was checked. NULL: no more. */
const char *rbx_sim_command_count_name(uint32_t index);

/* Returns 0, or -EINVAL and in `reason` what would be right. */
int rbx_sim_command_check(const struct rbx_sim_command *command, char *reason,
			  size_t reason_bytes);

/* Runs it; the run prints to stdout. Returns 0; -errno if no process could be made. */
int rbx_sim_command_run(const struct rbx_sim_command *command,
			struct rbx_sim_outcome *outcome);

/*
 * Runs seeds from command->seed on, on so many processors in parallel, until the time is over
 * or seeds_max have run (0: no limit), and reports the result of each. Returns how many ran,
 * or -errno.
 */
int64_t rbx_sim_command_hunt(const struct rbx_sim_command *command,
			     uint32_t seconds, uint64_t seeds_max,
			     uint32_t processors_count,
			     void (*ended)(uint64_t seed,
					   const struct rbx_sim_outcome *outcome));

/* All scenarios and sites, a line each, for --help. */
const char *rbx_sim_command_notes(void);

/* Their names: "volume|reclaim", and "late-completion=|qp-error=". */
const char *rbx_sim_command_scenario_names(void);
const char *rbx_sim_command_site_names(void);

#endif
