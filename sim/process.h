/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process.h - a run in a process of its own, and many of them at once.
 *
 * The outcome is in memory that both processes share, so that what is known is
 * known however the run ended: by itself, by a signal, or by us because it stood
 * still. The clock of the machine has no part in a run but this one.
 */
#ifndef RBX_SIM_PROCESS_H
#define RBX_SIM_PROCESS_H

#include <sys/types.h>

#include "sim/command.h"
#include "sim/sim.h"

/* A run that takes longer hangs. */
#define RBX_SIM_RUN_SECONDS_MAX 300u

/* One seed in so many is run twice, which has to come out the same. */
#define RBX_SIM_REPEAT_ONE_IN 20u

struct rbx_sim_process {
	pid_t id; /* 0: none */
	uint64_t seed;
	bool is_repeat;
	uint64_t first_hash; /* of a repeat: of the run before */
	struct rbx_sim_outcome *outcome; /* shared */
};

int rbx_sim_process_start(struct rbx_sim_process *process,
			  const struct rbx_sim_options *options, bool silent);
void rbx_sim_process_wait(struct rbx_sim_process *process,
			  struct rbx_sim_outcome *outcome);
int64_t
rbx_sim_processes_run(const struct rbx_sim_options *options, uint32_t seconds,
		      uint64_t seeds_max, uint32_t processors_count,
		      bool (*goes_on)(void),
		      void (*told)(uint64_t seed,
				   const struct rbx_sim_outcome *outcome));

#endif
