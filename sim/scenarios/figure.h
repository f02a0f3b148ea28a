/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * figure.h - scenarios that measure: the papers' figures on a modelled NIC.
 *
 * Each runs its whole sweep and prints a table; the same parameters make the same
 * table, to the last digit. 0, or the exit code of the program.
 */
#ifndef RBX_SIM_FIGURE_H
#define RBX_SIM_FIGURE_H

#include <stdio.h>

#include "sim/nic/params.h"

struct rbx_figure {
	const char *name;
	const char *purpose;
	const char *generation; /* of NIC, unless another is asked for */
	int (*run)(const struct rbx_nic_params *params, FILE *out);
};

extern const struct rbx_figure rbx_figures[];
extern const uint32_t rbx_figures_count;

int rbx_figure_1(const struct rbx_nic_params *params, FILE *out);
int rbx_figure_2(const struct rbx_nic_params *params, FILE *out);
int rbx_figure_6(const struct rbx_nic_params *params, FILE *out);
int rbx_figure_8(const struct rbx_nic_params *params, FILE *out);
int rbx_figure_9(const struct rbx_nic_params *params, FILE *out);
int rbx_figure_n_to_one(const struct rbx_nic_params *params, FILE *out);
int rbx_figure_calibrate(const struct rbx_nic_params *params, FILE *out);

#endif
