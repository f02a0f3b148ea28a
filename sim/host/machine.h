/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * machine.h - sets the properties of the simulated machines.
 */
#ifndef RBX_SIM_HOST_MACHINE_H
#define RBX_SIM_HOST_MACHINE_H

#include <stdio.h>

#include "sim/fabric.h"

#define RBX_SIM_MEMORY_BYTES (1ull << 36)

/* Before a run: which device all nodes have. */
void rbx_sim_machines_init(uint64_t seed, const struct rbx_sim_fabric *with);

/* All machines have so much memory, and it is free. */
void rbx_sim_machines_have(uint64_t memory_bytes);

/* The free memory that a server sees on its machine. */
void rbx_sim_memory_left(uint32_t node, uint64_t available_bytes);

/* Where servers write their logs; NULL: nowhere. */
void rbx_sim_log_to(FILE *file);

#endif
