/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* measure.h - runs a scenario that measures, from its options to its report. */
#ifndef RBX_SIM_MEASURE_H
#define RBX_SIM_MEASURE_H

#include "sim/command.h"
#include "sim/sim.h"

/* Runs in this process, once; prints its tables and fills in the outcome. */
void rbx_sim_measure(const struct rbx_sim_options *options,
		     struct rbx_sim_outcome *outcome);

#endif
