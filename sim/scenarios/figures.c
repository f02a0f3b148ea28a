/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* figures.c - the table of scenarios that measure. */
#include "sim/scenarios/figure.h"

const struct rbx_figure rbx_figures[] = {
	{ "calibrate-3", "the model beside what was measured of a ConnectX-3",
	  "connectx3", rbx_figure_calibrate },
	{ "calibrate-5", "the model beside what was measured of a ConnectX-5",
	  "connectx5", rbx_figure_calibrate },
	{ "fig1", "more threads on a queue pair, without a window", "connectx3",
	  rbx_figure_1 },
	{ "fig2", "ways of polling on three kinds of load", "connectx3",
	  rbx_figure_2 },
	{ "fig6", "ways of batching on paging, and table I", "connectx3",
	  rbx_figure_6 },
	{ "fig8", "threads on four queue pairs, with a window and without",
	  "connectx3", rbx_figure_8 },
	{ "fig9", "ways of polling, and 1 to 64 peers", "connectx3",
	  rbx_figure_9 },
	{ "n-to-one", "many threads ask one: four ways, 1 to 128 connections",
	  "connectx5", rbx_figure_n_to_one },
};

const uint32_t rbx_figures_count = sizeof(rbx_figures) / sizeof(rbx_figures[0]);
