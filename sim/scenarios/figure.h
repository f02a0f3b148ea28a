/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * figure.h - scenarios that measure: the figures of the papers on a modelled NIC; and how long
 * the library takes by its messages alone, on plain devices.
 *
 * Each makes a whole sweep and reports tables. The same seed and NIC give the same tables, to
 * the last digit. A new one is a function and a line in figures.c.
 */
#ifndef RBX_SIM_FIGURE_H
#define RBX_SIM_FIGURE_H

#include "sim/nic/params.h"
#include "sim/report.h"

/* The conditions of a measurement. */
struct rbx_setting {
	const struct rbx_nic_params *params; /* NULL: plain devices */
	uint64_t seed;
	uint32_t nodes_count; /* instead of a sweep over them; 0: the sweep */
};

struct rbx_figure {
	const char *name;
	const char *purpose;
	/* Of NIC, unless another is asked for. NULL: it is about messages, on plain devices. */
	const char *generation;
	uint32_t nodes_max; /* 0: the number of nodes is fixed */
	void (*measure)(const struct rbx_setting *setting,
			struct rbx_report *report);
};

extern const struct rbx_figure rbx_figures[];
extern const uint32_t rbx_figures_count;

void rbx_figure_calibrate(const struct rbx_setting *setting,
			  struct rbx_report *report);
void rbx_figure_1(const struct rbx_setting *setting, struct rbx_report *report);
void rbx_figure_2(const struct rbx_setting *setting, struct rbx_report *report);
void rbx_figure_6(const struct rbx_setting *setting, struct rbx_report *report);
void rbx_figure_8(const struct rbx_setting *setting, struct rbx_report *report);
void rbx_figure_9(const struct rbx_setting *setting, struct rbx_report *report);
void rbx_figure_n_to_one(const struct rbx_setting *setting,
			 struct rbx_report *report);
void rbx_figure_opening(const struct rbx_setting *setting, struct rbx_report *report);

#endif
