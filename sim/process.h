/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process.h - a run in a process of its own, and many of them in parallel.
 *
 * The outcome is in memory that both processes share, so it is known however the run ended:
 * by itself, by a signal, or because we ended it after it hung. Only for this is the clock of
 * the real machine used.
 */
#ifndef RBX_SIM_PROCESS_H
#define RBX_SIM_PROCESS_H

#include <sys/types.h>

#include "sim/command.h"
#include "sim/sim.h"

/* A run that takes longer has hung. */
#define RBX_SIM_RUN_SECONDS_MAX 300u

/* One seed in so many runs twice, and both runs must have the same result. */
#define RBX_SIM_REPEAT_ONE_IN 20u

struct rbx_sim_process {
	pid_t id; /* 0: none */
	uint64_t seed;
	bool is_repeat;
	uint64_t first_hash; /* of a repetition: the hash of the first run */
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
