/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* figures.c - the table of scenarios that measure. */
#include "sim/scenarios/figure.h"

#include "sim/scenarios/client.h"
#include "sim/scenarios/rpc.h"

const struct rbx_figure rbx_figures[] = {
	{ "calibrate", "the model beside what was measured of its NIC",
	  "connectx3", 0, rbx_figure_calibrate },
	{ "fig1", "more threads on a queue pair, without a window", "connectx3",
	  0, rbx_figure_1 },
	{ "fig2", "ways of polling on three kinds of load", "connectx3", 0,
	  rbx_figure_2 },
	{ "fig6", "ways of batching on paging, and table I", "connectx3", 0,
	  rbx_figure_6 },
	{ "fig8", "threads on four queue pairs, with a window and without",
	  "connectx3", 0, rbx_figure_8 },
	{ "fig9", "ways of polling, and 1 to 64 peers", "connectx3",
	  RBX_CLIENT_PEERS_MAX, rbx_figure_9 },
	{ "n-to-one", "many threads ask one, each on its own connection",
	  "connectx5", RBX_RPC_MACHINES_MAX, rbx_figure_n_to_one },
	{ "opening", "volumes of 1 TiB are opened, over 16 servers", NULL, 0,
	  rbx_figure_opening },
};

const uint32_t rbx_figures_count = sizeof(rbx_figures) / sizeof(rbx_figures[0]);
