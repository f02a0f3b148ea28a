/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* figures.c - the table of scenarios that measure. */
#include "sim/scenarios/figure.h"

const struct rbx_figure rbx_figures[] = {
	{ "calibrate", "the model beside what was measured of the NIC",
	  "connectx3", rbx_figure_calibrate },
};

const uint32_t rbx_figures_count = sizeof(rbx_figures) / sizeof(rbx_figures[0]);
