/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * generations.h - the NICs that can be modelled: those of generations/, which are part of the
 * program under the names of their files, and any other file.
 */
#ifndef RBX_SIM_NIC_GENERATIONS_H
#define RBX_SIM_NIC_GENERATIONS_H

#include "sim/nic/params.h"

/* "connectx3", or the path of a file. 0, or -errno and why, in RBX_NIC_ERROR_MAX
 * bytes. */
int rbx_nic_generation_find(const char *name, struct rbx_nic_params *params,
			    char *error);

/* The files, as `embed` has made them into C. */
struct rbx_nic_generation {
	const char *name;
	const char *text;
};

extern const struct rbx_nic_generation rbx_nic_generations[];
extern const uint32_t rbx_nic_generations_count;

#endif
